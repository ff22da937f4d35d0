"""``floodmark status``: shows where a pipeline is, from its checkpoint and from the source."""

from __future__ import annotations

import json
import time

import typer

from floodmark.cli.output import output_console
from floodmark.cli.status.progress_from_offsets import PipelineProgress, TimedOffset, pipeline_progress
from floodmark.cli.status.view import Lake, as_json_data, render
from floodmark.connectors.contract.log_status import LogStatus
from floodmark.connectors.registry import connector_module
from floodmark.sinks.targets_aside import TargetAside, targets_aside
from floodmark.spark.checkpoint import Checkpoint
from floodmark.spark.pipeline_file import Pipeline

# The speed of a snapshot is measured over that many micro-batches.
WINDOW = 10


def status(pipeline: Pipeline, file: str, as_json: bool) -> None:
    """Print where a pipeline is.

    Args:
        pipeline: the pipeline.
        file: its file, for the commands that are recommended.
        as_json: whether to print JSON, for programs.

    Raises:
        CheckpointError: there is no checkpoint yet, or it is not one that this Floodmark reads.
    """
    found = read_progress(pipeline.checkpoint)
    log = read_log(pipeline, found)
    lake = Lake(pipeline.sink.path or "", read_aside(pipeline))
    if as_json:
        typer.echo(json.dumps(as_json_data(pipeline.title, file, found, log, lake), indent=2))
    else:
        output_console().print(render(pipeline.title, file, found, log, lake))


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
