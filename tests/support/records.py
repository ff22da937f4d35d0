"""Records as transforms get them, and chains of transforms."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.events.connect_schema import field_schema, struct
from floodmark.events.json_text import Fragment, Text, string
from floodmark.transforms.chain import Chain
from floodmark.transforms.envelopes import envelopes
from floodmark.transforms.records import Records
from floodmark.transforms.structs import Struct
from tests.support.options import REQUIRED

SOURCE = struct(
    [
        field_schema({"type": "string"}, True, "table"),
        field_schema({"type": "int64"}, True, "lsn"),
        field_schema({"type": "boolean"}, True, "sure"),
        field_schema({"type": "string", "default": "false"}, True, "snapshot"),
    ],
    False,
    "Source",
)
ROW = struct([field_schema({"type": "string"}, True, "v"), field_schema({"type": "int32"}, True, "n")], True, "t.Value")
KEY = struct([field_schema({"type": "int32"}, False, "n")], False, "t.Key")
ENVELOPE = struct(
    [
        field_schema(ROW, True, "before"),
        field_schema(ROW, True, "after"),
        field_schema(SOURCE, False, "source"),
        field_schema(struct([field_schema({"type": "string"}, False, "id")], True, "event.block"), True, "transaction"),
        *(field_schema({"type": "string"}, False, name) for name in ("op", "ts_ms", "ts_us", "ts_ns")),
    ],
    False,
    "t.Envelope",
)


def chain(kind: str, own: dict[str, str], **others: str) -> Chain:
    """Return a chain of one transform, named ``one``; ``__`` in the names of other options is a dot."""
    every = {f"transforms.one.{name}": value for name, value in own.items()}
    given = {"transforms": "one", "transforms.one.type": kind, **every}
    return Chain(PostgresOptions.parse({**REQUIRED, **given, **{k.replace("__", "."): v for k, v in others.items()}}))


def texts(*values: str | None) -> Fragment:
    return string(pa.array(values, pa.string()))


def changes(topic: Text, *values: str | None, op: str = "c") -> Records:
    """Return creates, or deletes, of rows with these texts."""
    rows = len(values)
    row = [texts(*values), Fragment(pa.array([str(n) for n in range(rows)]))]
    source = [f'{{"table":"{op}","lsn":', pa.array([str(n) for n in range(rows)]), ',"sure":true,"snapshot":"false"}']
    before, after = (row, None) if op == "d" else (None, row)
    value = envelopes(ENVELOPE, op, rows, before, after, source, None)
    key = Struct(KEY, [row[1]])
    return Records("rows of s.t", rows, topic, key, value, (), np.arange(rows))


def headers(columns: dict[str, pa.Array]) -> list[dict[str, str | None]]:
    lists = columns["headers"].to_pylist()
    return [{one["key"]: one["value"] and one["value"].decode() for one in each} for each in lists]


def updates(topic: Text, old: list[str | None], new: list[str | None]) -> Records:
    """Return updates of rows with these texts; the log has all of the old rows."""
    rows = len(old)
    numbers = Fragment(pa.array([str(n) for n in range(rows)]))
    source = ['{"table":"u","lsn":1,"sure":true,"snapshot":"false"}']
    value = envelopes(ENVELOPE, "u", rows, [texts(*old), numbers], [texts(*new), numbers], source, None)
    return Records("rows of s.t", rows, topic, Struct(KEY, [numbers]), value, (), np.arange(rows))
