"""What ``floodmark offsets`` does, apart from its command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import typer

from floodmark.cli.output import printable
from floodmark.debezium.file_store import FileOffsets
from floodmark.debezium.history import FileHistory, HistoryStore
from floodmark.debezium.offsets import OffsetStore, stored_offsets
from floodmark.errors import ConfigError
from floodmark.json_data import Json
from floodmark.moving.mover import Mover, Plan, shown_fields
from floodmark.spark.pipelines.file import load_file


def show_offsets(path: Path, sink: str | None, debezium: str | None, as_json: bool) -> None:
    """Print where a pipeline is, and Debezium's offsets.

    Args:
        path: the pipeline's file.
        sink: the name of one of several sinks.
        debezium: Debezium's store; None: only the pipeline is shown.
        as_json: whether to print JSON, for programs.
    """
    mover = _mover(path, sink)
    offset = mover.delivered()
    stored = stored_offsets(_store(debezium, mover)) if debezium is not None else []
    if as_json:
        found: dict[str, Json] = {
            "position": None if offset is None else offset.log,
            "offset": None if offset is None else offset.to_json(),
            "debezium": [{"name": one.name, "partition": one.partition, "offset": one.fields} for one in stored],
        }
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(f"pipeline  {'new' if offset is None else _shown(offset.to_json())}")
    for one in stored:
        typer.echo(printable(f"Debezium  {one.name} ({one.server}): {shown_fields(one.fields)}"))


def import_offsets(
    path: Path, sink: str | None, debezium: str, name: str | None, yes: bool, history: str | None = None
) -> None:
    """Let a pipeline go on from Debezium's offset.

    Args:
        path: the pipeline's file.
        sink: the name of one of several sinks.
        debezium: Debezium's store.
        name: the name of Debezium's connector; None: the only one of the source.
        yes: whether to write.
        history: Debezium's schema history; None: the structures of tables are those of now.
    """
    mover = _mover(path, sink)
    records = None if history is None else FileHistory(Path(history)).read()
    _finish(mover, mover.from_debezium(_store(debezium, mover), name, records), yes)


def export_offsets(
    path: Path, sink: str | None, debezium: str, name: str | None, yes: bool, history: str | None = None
) -> None:
    """Let Debezium's connector go on from a pipeline's position; the arguments are those of ``import_offsets``."""
    mover = _mover(path, sink)
    store = _store(debezium, mover)
    records = None if history is None else FileHistory(Path(history), mover.stamp)
    _finish(mover, mover.to_debezium(store, name), yes, store, records)


def move(path: Path, sink: str | None, position: str | None, yes: bool) -> None:
    """Let a pipeline go on elsewhere.

    Args:
        path: the pipeline's file.
        sink: the name of one of several sinks.
        position: where; None: at the end of the log.
        yes: whether to write.
    """
    mover = _mover(path, sink)
    _finish(mover, mover.to_position(position), yes)


def reset(path: Path, sink: str | None, yes: bool) -> None:
    """Let a pipeline begin anew; the arguments are those of ``move``."""
    mover = _mover(path, sink)
    _finish(mover, mover.from_the_start(), yes)


def _mover(path: Path, sink: str | None) -> Mover:
    found = load_file(path).named(sink)
    if len(found) > 1:
        names = ", ".join(one.label for one in found)
        raise ConfigError(f"The pipeline file has several sinks: {names}.", "Name one of them with --sink.")
    return Mover(found[0])


def _store(text: str, mover: Mover) -> OffsetStore:
    return FileOffsets(Path(text), mover.stamp)


def _finish(
    mover: Mover, plan: Plan, yes: bool, store: OffsetStore | None = None, history: HistoryStore | None = None
) -> None:
    for line in plan.lines:
        typer.echo(printable(line))
    if not yes:
        typer.echo("Nothing was written. Give --yes to do it.")
        return
    for line in mover.carry_out(plan, store, history):
        typer.echo(printable(line))


def _shown(offset: Mapping[str, Json]) -> str:
    parts = [f"position {offset['log']}"]
    for name, text in (("snapshot", "a snapshot is in progress"), ("lane", "new tables are being read")):
        parts += [text] if offset.get(name) else []
    return ", ".join(parts)
