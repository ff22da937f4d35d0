"""Encode rows of eight columns in Avro, beside the same in JSON, and beside fastavro, which writes them one by one."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from benchmarks.common import Leg, Result, Scale
from floodmark.codecs.base64_text import encode_integers
from floodmark.events.connect_schema import ConnectSchema, field_schema, source_struct
from floodmark.events.envelope import EnvelopeBuilder
from floodmark.events.json_text import Fragment, Pieces, string
from floodmark.transforms.avro.binary import joined
from floodmark.transforms.avro.encoding import encode
from floodmark.transforms.avro.schemas import SchemaSettings, avro_schema
from floodmark.transforms.envelopes import envelopes

BLOCK = 20_000
ROUNDS = 5
ROW_BY_ROW = 10
"""fastavro gets one row of so many."""
FIGURE = "rows per CPU s"
DECIMAL: ConnectSchema = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "2", "connect.decimal.precision": "12"},
}


def run(scale: Scale) -> Result:
    """Encode updates with their state before and after; all ways give the same values."""
    result = Result("avro", scale.name, "no server")
    rows = scale.snapshot_rows // 10
    builder, row, source = _columns()
    schema = builder.schema
    parsed = fastavro.parse_schema(json.loads(avro_schema(schema, SchemaSettings())))

    def in_json() -> pa.Array:
        return builder.values("u", BLOCK, row, row, source)

    def in_avro() -> pa.Array:
        value = envelopes(schema, "u", BLOCK, row, row, source, None)
        return joined(encode(value, schema, BLOCK), BLOCK)

    written = in_avro().to_pylist()
    events = [fastavro.schemaless_reader(io.BytesIO(one), parsed, None) for one in written[::ROW_BY_ROW]]

    def one_by_one() -> list[bytes]:
        return [_written(event, parsed) for event in events]

    if one_by_one() != written[::ROW_BY_ROW]:
        raise RuntimeError("fastavro writes other bytes")
    for name, action, count in (
        ("JSON", in_json, BLOCK),
        ("Avro", in_avro, BLOCK),
        ("fastavro, row by row", one_by_one, len(events)),
    ):
        seconds = _seconds(action, max(1, rows // BLOCK // ROUNDS if count == BLOCK else 1))
        result.legs.append(Leg(name, {FIGURE: count / seconds}))
    result.add_ratio(FIGURE, "x JSON", "JSON")
    sizes = [sum(map(len, made.to_pylist())) / BLOCK for made in (in_json(), in_avro())]
    result.notes.append(f"{sizes[0]:.0f} bytes a row in JSON, {sizes[1]:.0f} in Avro; best of {ROUNDS} rounds")
    return result


def _seconds(action: Callable[[], object], times: int) -> float:
    """Return the CPU seconds that an action takes in the fastest round."""
    found = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(times):
            action()
        found.append((time.process_time() - begin) / times)
    return min(found)


def _written(event: Any, schema: Any) -> bytes:
    content = io.BytesIO()
    fastavro.schemaless_writer(content, schema, event)
    return content.getvalue()


def _columns() -> tuple[EnvelopeBuilder, Sequence[Fragment], Pieces]:
    """Return what makes the events, the fields of rows, and the pieces of the source block."""
    chance = np.random.default_rng(1)
    numbers = [pa.array(chance.integers(0, most, BLOCK)).cast(pa.string()) for most in (10**9, 10**6, 10**3)]
    cents = chance.integers(0, 10**8, BLOCK)
    texts = [pa.array([f"a text of row {number * step}" for number in range(BLOCK)]) for step in (1, 7)]
    fields: list[tuple[str, ConnectSchema, Fragment]] = [
        ("id", {"type": "int64"}, Fragment(numbers[0])),
        ("a", {"type": "int32"}, Fragment(numbers[1])),
        ("b", {"type": "int32"}, Fragment(numbers[2])),
        ("name", {"type": "string"}, string(texts[0])),
        ("note", {"type": "string"}, string(texts[1])),
        ("weight", {"type": "double"}, Fragment(pa.array(chance.random(BLOCK)).cast(pa.string()))),
        ("price", DECIMAL, Fragment(encode_integers(cents, pa.array(cents)), quoted=True)),
        ("done", {"type": "boolean"}, Fragment(pa.array(chance.random(BLOCK) < 0.5).cast(pa.string()))),
    ]
    schemas = [field_schema(schema, name != "id", name) for name, schema, _ in fields]
    own = [field_schema({"type": "string"}, False, name) for name in ("schema", "table")]
    own += [field_schema({"type": "int64"}, True, name) for name in ("txId", "lsn", "xmin")]
    source = source_struct(own, "io.debezium.connector.postgresql.Source")
    lsn = pa.array(np.arange(BLOCK) + 28297144).cast(pa.string())
    pieces: Pieces = [
        '{"version":"3.6.3.Final","connector":"postgresql","name":"shop","ts_ms":1795291840434,"snapshot":"false",'
        '"db":"shop","sequence":"[\\"28297144\\",\\"',
        lsn,
        '\\"]","ts_us":1795291840434391,"ts_ns":1795291840434391000,"schema":"public","table":"orders","txId":',
        numbers[2],
        ',"lsn":',
        lsn,
        ',"xmin":null}',
    ]
    names = [name for name, _, _ in fields]
    builder = EnvelopeBuilder("shop.public.orders", names, schemas, names[:1], schemas[:1], source, with_schemas=False)
    return builder, [fragment for _, _, fragment in fields], pieces
