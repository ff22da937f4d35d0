"""The ``source`` block of a notebook's events."""

from __future__ import annotations

from floodmark._version import __version__
from floodmark.events.connect_schema import field_schema, source_struct
from floodmark.events.json_text import Text, dumps
from tests.toy.notebook.database.notebook import SCHEMA

SOURCE_SCHEMA = source_struct(
    [field_schema({"type": "string"}, False, "table"), field_schema({"type": "int64"}, False, "transaction")],
    "tests.toy.Source",
)


def block(prefix: str, marker: str, millis: Text, micros: Text, table: Text, transaction: Text) -> list[Text]:
    """Return the pieces of source blocks: each is the same for all events, or has one text an event.

    Args:
        prefix: the option ``topic.prefix``.
        marker: the field ``snapshot``.
        millis: when the transaction was committed, milliseconds since the epoch.
        micros: the same in microseconds.
        table: the table's name in JSON.
        transaction: the transaction's number.
    """
    head = f'{{"version":"{__version__}","connector":"notebook","name":{dumps(prefix)},"ts_ms":'
    return [
        head,
        millis,
        f',"snapshot":"{marker}","db":"{SCHEMA}","sequence":null,"ts_us":',
        micros,
        ',"ts_ns":',
        micros,
        '000,"table":',
        table,
        ',"transaction":',
        transaction,
        "}",
    ]
