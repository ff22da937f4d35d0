"""Options of Debezium's connectors that keep offsets and the schema history in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.conformance.debezium.debezium import MYSQL_CONNECTORS, schemas

POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
NOT_DEBEZIUMS = ("connector", "state.dir", "segment.bytes", "slot.max.retries", "slot.retry.delay.ms", "snapshot.mode")


def debezium_options(options: Mapping[str, str], directory: Path, **more: str) -> dict[str, str]:
    """Return the options of a connector that reads the same source.

    Args:
        options: the query's.
        directory: gets ``offsets.dat`` and ``history.dat``.
        more: further options, with ``_`` for ``.``.
    """
    connector = options["connector"]
    taken = {name: value for name, value in options.items() if name not in NOT_DEBEZIUMS}
    own = {
        "name": "reference",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(directory / "offsets.dat"),
        "offset.flush.interval.ms": "300",
        "poll.interval.ms": "20",
        "topic.prefix": options["topic.prefix"],
        **schemas(False),
    }
    if connector == "postgres":
        own |= {"connector.class": POSTGRES, "plugin.name": "pgoutput", "database.password": ""}
    else:
        own |= {
            "connector.class": MYSQL_CONNECTORS[connector],
            "database.server.id": "5400",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(directory / "history.dat"),
        }
    return {**taken, **own, **{name.replace("_", "."): value for name, value in more.items()}}
