"""``floodmark status``: shows where a pipeline is, from its checkpoint and from the source."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from floodmark.cli.output import human_time, output_console, printable
from floodmark.cli.running.failures import SinkFailure, remembered
from floodmark.cli.status.progress_from_offsets import PipelineProgress, TimedOffset, pipeline_progress
from floodmark.cli.status.view import Lake, as_json_data, render
from floodmark.connectors.contract.log_status import LogStatus
from floodmark.connectors.registry import connector_module
from floodmark.errors import FloodmarkError, describe
from floodmark.json_data import Json
from floodmark.logger import get_logger
from floodmark.redact import without_uri_secrets
from floodmark.sinks.state.targets_aside import TargetAside, targets_aside
from floodmark.spark.checkpoint import Checkpoint
from floodmark.spark.pipelines.file import PipelineFile
from floodmark.spark.pipelines.model import Pipeline

if TYPE_CHECKING:
    from floodmark.sinks.rebuilds.mark import RebuildMark

log = get_logger(__name__)

# The speed of a snapshot is measured over that many micro-batches.
WINDOW = 10


def status(file: PipelineFile, path: str, as_json: bool) -> int:
    """Print where a pipeline is.

    Args:
        file: the pipeline.
        path: its file, for the commands that are recommended.
        as_json: whether to print JSON, for programs.

    Returns:
        The exit code: 1 if the state of one of several sinks can't be read.

    Raises:
        CheckpointError: there is no checkpoint yet, or it is not one that this Floodmark reads. With several sinks
            that is printed instead.
    """
    if not file.several:
        shown = _Shown.of(file.only, path)
        if as_json:
            typer.echo(json.dumps(shown.json_data(), indent=2))
        else:
            output_console().print(shown.text())
        return 0
    states = [(one, _state(one, path), remembered(one)) for one in file.pipelines]
    if as_json:
        sinks = [_sink_data(*state) for state in states]
        typer.echo(json.dumps({"pipeline": file.title, "errors": file.errors, "sinks": sinks}, indent=2))
    else:
        for state in states:
            output_console().print(_sink_text(*state))
    return 1 if any(isinstance(found, FloodmarkError) for _, found, _ in states) else 0


@dataclass(frozen=True)
class _Shown:
    """The state of a query, and what is needed to show it."""

    pipeline: Pipeline
    path: str
    found: PipelineProgress
    log: LogStatus
    lake: Lake

    @classmethod
    def of(cls, pipeline: Pipeline, path: str) -> _Shown:
        found = read_progress(pipeline.checkpoint)
        log = read_log(pipeline, found)
        lake = Lake(pipeline.sink.path or "", read_aside(pipeline), read_rebuilt(pipeline))
        return cls(pipeline, path, found, log, lake)

    def json_data(self) -> dict[str, Json]:
        one = self.pipeline
        return as_json_data(one.title, self.path, self.found, self.log, self.lake, one.label)

    def text(self) -> Group:
        one = self.pipeline
        return render(one.title, self.path, self.found, self.log, self.lake, one.label)


def _state(pipeline: Pipeline, path: str) -> _Shown | FloodmarkError:
    """Return the state of one of several sinks, or why it can't be read."""
    try:
        return _Shown.of(pipeline, path)
    except FloodmarkError as exc:
        return exc


def _sink_data(pipeline: Pipeline, found: _Shown | FloodmarkError, failure: SinkFailure | None) -> dict[str, Json]:
    age = None if failure is None else round(max(time.time() - failure.at, 0.0), 1)
    failed: Json = None if failure is None else {"error": failure.error, "age_s": age}
    head: dict[str, Json] = {"sink": pipeline.label, "type": pipeline.sink.type, "failed": failed}
    if isinstance(found, FloodmarkError):
        return {**head, "error": str(found)}
    return {**head, "error": None, **found.json_data()}


def _sink_text(pipeline: Pipeline, found: _Shown | FloodmarkError, failure: SinkFailure | None) -> Group:
    parts: list[RenderableType] = [Text(f"── {pipeline.label} ({pipeline.sink.type})", style="bold")]
    if failure is not None:
        age = human_time(max(time.time() - failure.at, 0.0))
        parts.append(Text(f"failed {age} ago, and not started since: {printable(failure.error)}", style="bold red"))
    parts.append(Text(printable(str(found))) if isinstance(found, FloodmarkError) else found.text())
    return Group(*parts, Text())


def read_progress(uri: str) -> PipelineProgress:
    """Return where a pipeline is, from its checkpoint.

    Raises:
        CheckpointError: there is none yet, or it is not one that this Floodmark reads.
    """
    checkpoint = Checkpoint(uri)
    checkpoint.require()
    commits = checkpoint.commits()
    files = checkpoint.offsets()[-WINDOW:]
    offsets = [TimedOffset(file.batch, checkpoint.read_offset(file), file.written) for file in files]
    committed = commits[-1] if commits else None
    return pipeline_progress(
        offsets, committed.batch if committed else None, committed.written if committed else None, time.time()
    )


def read_aside(pipeline: Pipeline) -> list[TargetAside]:
    """Return the targets of a mirror or the sink jdbc that are set aside; none for another sink.

    Raises:
        StateDirError: the state directory can't be read.
        CheckpointError: the checkpoint can't be, or what the state directory has is damaged.
    """
    query = Checkpoint(pipeline.checkpoint).query() if pipeline.sink.type in ("mirror", "jdbc") else ""
    return targets_aside(pipeline.options, query) if query else []


def read_rebuilt(pipeline: Pipeline) -> list[RebuildMark]:
    """Return the tables whose targets are being rebuilt; none if the targets can't be read, which is logged."""
    path = pipeline.sink.path
    try:
        if pipeline.sink.type == "jdbc":
            return _rebuilt_relations(pipeline)
        if pipeline.sink.type == "mirror" and path is not None and ("://" in path or Path(path).is_dir()):
            return _rebuilt_files(path)
    except FloodmarkError as error:
        log.warning("rebuilt_tables_are_not_known", error=describe(error))
    return []


def _rebuilt_files(path: str) -> list[RebuildMark]:
    from obstore.exceptions import BaseError

    from floodmark.sinks.delta.rebuilding.marks import RebuildMarks

    try:
        return list(RebuildMarks(path).all().values())
    except (BaseError, OSError) as error:
        log.warning("rebuilt_tables_are_not_known", error=without_uri_secrets(path, describe(error)))
        return []


def _rebuilt_relations(pipeline: Pipeline) -> list[RebuildMark]:
    from floodmark.sinks.relational.options import JdbcOptions
    from floodmark.sinks.relational.rebuilding.target import rebuilt_tables

    query = Checkpoint(pipeline.checkpoint).query()
    return rebuilt_tables(JdbcOptions.parse(pipeline.sink.options), query) if query else []


def read_log(pipeline: Pipeline, found: PipelineProgress) -> LogStatus:
    """Return the status of the source's log, from ``log_status`` in the connector's module of that name.

    Raises:
        ConfigError: the connector's driver is not installed.
    """
    options = pipeline.options
    module = connector_module(options.connector, "log_status")
    # A pipeline that has ended needs no log any more, so it can't miss any.
    position = "" if found.phase == "ended" else found.position
    reported: LogStatus = module.log_status(options, position)
    return reported
