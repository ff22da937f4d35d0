"""What ``floodmark offsets`` does, apart from its command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

from floodmark.cli.output import printable
from floodmark.cli.settings_file import client_settings_in, settings_in
from floodmark.config.kafka_clients import client_is_missing
from floodmark.debezium.file_store import FileOffsets
from floodmark.debezium.history import FileHistory, HistoryStore
from floodmark.debezium.offsets import OffsetStore, stored_offsets
from floodmark.errors import ConfigError
from floodmark.json_data import Json
from floodmark.moving.jdbc_store import SCHEME, JdbcOffsets
from floodmark.moving.mover import Mover, Plan, shown_fields
from floodmark.spark.pipelines.file import load_file

KAFKA = "kafka://"


@dataclass(frozen=True)
class Stores:
    """Where a connector of Debezium keeps what is moved, as the command line names it.

    Attributes:
        offsets: a file, ``kafka://<brokers>/<topic>``, or a JDBC URL; None: not given.
        history: the schema history: a file or a topic.
        settings: a file with settings, ``<name>=<value>`` a line: those of Kafka's Java client, or a database's; None:
            none are needed.
        name: the connector's name; None: the only one of the source.
    """

    offsets: str | None = None
    history: str | None = None
    settings: Path | None = None
    name: str | None = None

    def offset_store(self, stamp: str) -> OffsetStore:
        """Return the offsets' store.

        Args:
            stamp: what the names of copies end with.

        Raises:
            ConfigError: what names it is wrong, or the package for Kafka is not installed.
        """
        text = self.offsets or ""
        if text.startswith(SCHEME):
            return JdbcOffsets(text, settings_in(self.settings))
        if not text.startswith(KAFKA):
            return FileOffsets(Path(text), stamp)
        try:
            from floodmark.debezium.topics import TopicOffsets
        except ModuleNotFoundError as exc:
            raise client_is_missing("--debezium", "names a Kafka topic", exc) from None
        return TopicOffsets(text, client_settings_in(self.settings))

    def history_store(self, stamp: str) -> HistoryStore | None:
        """Return the schema history's store; None if it isn't given. Arguments and errors as of ``offset_store``."""
        text = self.history
        if text is None or not text.startswith(KAFKA):
            return None if text is None else FileHistory(Path(text), stamp)
        try:
            from floodmark.debezium.topics import TopicHistory
        except ModuleNotFoundError as exc:
            raise client_is_missing("--history", "names a Kafka topic", exc) from None
        return TopicHistory(text, client_settings_in(self.settings))


def show_offsets(path: Path, sink: str | None, stores: Stores, as_json: bool) -> None:
    """Print where a pipeline is, and Debezium's offsets.

    Args:
        path: the pipeline's file.
        sink: the name of one of several sinks.
        stores: Debezium's; without one of offsets only the pipeline is shown.
        as_json: whether to print JSON, for programs.
    """
    mover = _mover(path, sink)
    offset = mover.delivered()
    stored = [] if stores.offsets is None else stored_offsets(stores.offset_store(mover.stamp))
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


def import_offsets(path: Path, sink: str | None, stores: Stores, yes: bool) -> None:
    """Let a pipeline go on from Debezium's offset.

    Args:
        path: the pipeline's file.
        sink: the name of one of several sinks.
        stores: Debezium's; without a schema history the structures of tables are those of now.
        yes: whether to write.
    """
    mover = _mover(path, sink)
    history = stores.history_store(mover.stamp)
    records = None if history is None else history.read()
    _finish(mover, mover.from_debezium(stores.offset_store(mover.stamp), stores.name, records), yes)


def export_offsets(path: Path, sink: str | None, stores: Stores, yes: bool) -> None:
    """Let Debezium's connector go on from a pipeline's position; the arguments are those of ``import_offsets``."""
    mover = _mover(path, sink)
    store = stores.offset_store(mover.stamp)
    _finish(mover, mover.to_debezium(store, stores.name), yes, store, stores.history_store(mover.stamp))


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
