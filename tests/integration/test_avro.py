"""Events in Avro, with a real registry, read by Confluent's own deserializer."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import drop, make_source
from tests.support.avro import Consumer, avro_options, plain
from tests.support.inprocess import InProcess
from tests.support.schema_registry import RunningRegistry

TABLES = (
    "CREATE TABLE orders (id int PRIMARY KEY, name text NOT NULL DEFAULT 'none', price numeric(10,2), "
    "tags text[], made timestamptz, raw bytea, ok boolean, weight float8, due date, doc jsonb)",
    "CREATE TABLE notes (note text)",
)
ROWS = (
    "INSERT INTO orders VALUES (1, 'ä\"😀', 12.34, ARRAY['x', NULL], '2024-01-01 00:00:00+00', '\\x00ff', true, "
    "'NaN', '2024-02-29', '{\"a\": 1}'), (2, DEFAULT, NULL, NULL, NULL, NULL, NULL, -0.5, NULL, NULL)",
    "INSERT INTO notes VALUES ('keyless')",
)


pytestmark = pytest.mark.usefixtures("other_process")


def comparable(event: Any) -> Any:
    """Return an event without what depends on when it was made, and on the slot of a snapshot."""
    kept = {name: one for name, one in event.items() if not name.startswith("ts_")}
    if kept.get("op") == "r":
        volatile = ("ts_ms", "ts_us", "ts_ns", "lsn", "sequence", "txId")
        kept["source"] = {name: one for name, one in kept["source"].items() if name not in volatile}
    # In JSON, it is a text that this isn't a number.
    if math.isnan(float((kept.get("after") or {}).get("weight") or 0)):
        kept["after"]["weight"] = None
    return kept


def test_events_are_those_in_json(server: EmbeddedPostgres, registry: RunningRegistry, tmp_path: Path) -> None:
    options = {"decimal.handling.mode": "string", "topic.prefix": "same", "skipped.operations": "none"}
    source = make_source(server, tmp_path / "state", **options)
    source.execute(*TABLES, *ROWS)
    text = InProcess({**source.options, "slot.name": "text", "publication.name": "text"})
    bytes_ = InProcess({**source.options, **avro_options(registry.url), "state.dir": str(tmp_path / "avro")})
    given, found = text.drain(), bytes_.drain()
    source.execute(
        "UPDATE orders SET price = 9.99 WHERE id = 1",
        "UPDATE orders SET id = 3 WHERE id = 2",
        "DELETE FROM orders WHERE id = 3",
        "TRUNCATE notes",
    )
    given, found = given + text.drain(), found + bytes_.drain()
    assert bytes_.schema.field("key").type == bytes_.schema.field("value").type == "binary"
    read = Consumer(registry.url)
    assert len(given) == len(found) == 10
    for one, other in zip(given, found, strict=True):
        assert (one["topic"], one["op"], one["headers"] or []) == (other["topic"], other["op"], other["headers"])
        for side in ("key", "value"):
            if one[side] is None:
                assert other[side] is None
                continue
            wanted, shown = (comparable(event) for event in (json.loads(one[side]), plain(read(other, side))))
            assert shown == wanted
    assert set(registry.ask("subjects")) >= {
        "same.public.orders-key",
        "same.public.orders-value",
        "same.public.notes-value",
    }
    for query in (text, bytes_):
        query.stop()
    drop(source)
