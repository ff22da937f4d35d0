"""Compares Debezium's schema history with the dictionary, and makes a history for Debezium.

LogMiner names columns by the dictionary as it is when it is asked, so a query goes on with the tables as they are now.
A table that Debezium knows otherwise was altered since Debezium stopped.

Source: Debezium's ``HistoryRecord``, ``JsonTableChangeSerializer`` and ``AbstractLogMinerStreamingAdapter``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.catalog import StoredTable
from floodmark.connectors.oracle.structures.described import described_column, described_table, table_id
from floodmark.connectors.oracle.structures.table import Table
from floodmark.errors import OffsetError
from floodmark.json_data import Json, JsonObject

HISTORY_CURE = "Give the schema history of the connector whose offset it is."
_NULLABLE = ("charsetName", "comment")


def check_history(records: Iterable[Mapping[str, Json]], now: Sequence[StoredTable], options: OracleOptions) -> None:
    """Verify that no captured table was altered since Debezium stopped.

    Args:
        records: Debezium's history, the oldest first.
        now: the captured tables as the dictionary has them.
        options: the source's options.

    Raises:
        OffsetError: one was, or the history is another one, or damaged.
    """
    known: dict[str, tuple[str, ...]] = {}
    count = 0
    for record in records:
        stored = JsonObject(record, "a record", _damaged)
        if stored.member("source").value("server") != options.topic_prefix:
            continue
        count += 1
        for change in stored.members("tableChanges") if "tableChanges" in stored else ():
            name = change.text("id")
            known.pop(change.optional_text("previousId") or "", None)
            if change.text("type") == "DROP":
                known.pop(name, None)
            elif change.value("table") is not None:
                known[name] = tuple(one.text("name") for one in change.member("table").members("columns"))
    if not count:
        raise OffsetError(
            f"Debezium's schema history has no record of the topic.prefix '{options.topic_prefix}'.", HISTORY_CURE
        )
    for table in now:
        there = tuple(column.name for column in table.table.columns)
        virtual = set(table.table.virtual)
        # A table that Debezium doesn't know was made since, and the log has its statement.
        before = tuple(name for name in known.get(table_id(table.table), there) if name not in virtual)
        if before != there:
            raise OffsetError(
                f"The table {table.full_name} was altered since Debezium stopped: it had the columns "
                f"{', '.join(before)}, and has {', '.join(there)}. LogMiner shows what was logged before without "
                "names.",
                "Let Debezium go on until it has delivered that, stop it, and import its offset then. Without "
                "--history the query goes on, and sets such a table aside.",
            )


def _damaged(problem: str) -> OffsetError:
    return OffsetError(f"Debezium's schema history cannot be used: {problem}.", HISTORY_CURE)


def debezium_image(tables: Iterable[Table], server: str, position: Mapping[str, Json]) -> list[dict[str, Json]]:
    """Return the records of a history of Debezium that holds tables.

    Args:
        tables: the tables.
        server: the option ``topic.prefix``.
        position: Debezium's form of the position at which they are in force.
    """
    return [
        {
            "source": {"server": server},
            "position": {**position, "snapshot": "INITIAL", "snapshot_completed": True},
            "databaseName": table.database,
            "schemaName": table.owner,
            "ddl": "",
            "tableChanges": [{"type": "CREATE", "id": table_id(table), "table": _stored(table), "comment": None}],
        }
        for table in tables
    ]


def _stored(table: Table) -> dict[str, Json]:
    """Return a table as in Debezium's history: without members that are null, and with ``hasDefaultValue``."""
    columns: list[Json] = []
    for place, column in enumerate(table.columns, start=1):
        described = described_column(column, place)
        default = described.pop("defaultValueExpression")
        del described["enumValues"]
        stored = {name: one for name, one in described.items() if one is not None or name in _NULLABLE}
        # A column that may be null has the default null.
        stored["hasDefaultValue"] = default is not None or column.optional
        if default is not None:
            stored["defaultValueExpression"] = default
        columns.append({**stored, "enumValues": []})
    return {**described_table(table), "columns": columns, "attributes": []}
