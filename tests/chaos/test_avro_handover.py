"""Debezium itself with Confluent's converter and the registry, and a query that goes on in its place."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conformance.debezium.debezium import Debezium, postgres_options
from tests.conftest import drop, make_source
from tests.support.avro import Consumer, avro_options, plain
from tests.support.inprocess import InProcess
from tests.support.patience import within
from tests.support.schema_registry import RunningRegistry

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("other_process")]
TABLE = """
CREATE TABLE t (
    id bigint PRIMARY KEY, v text NOT NULL DEFAULT 'ä"', n numeric(12,3) DEFAULT 1.5, m numeric, d date, s timestamp(3),
    z timestamptz, b bytea DEFAULT '\\x00ff', f real DEFAULT 0.1, g double precision, o boolean DEFAULT true,
    a text[], i interval, u uuid, j jsonb, x int DEFAULT 7, y smallint NOT NULL DEFAULT -1, p point
)
"""
INSERT = """
INSERT INTO t VALUES ({}, 'x😀', 12.345, 1e20, '2024-02-29', '2024-01-01 01:02:03.004', '2024-01-01 00:00:00+02',
    '\\x01', 1.1, -0.0, false, ARRAY['q', NULL], '1 day', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{{"k": 1}}',
    NULL, 3, '(1,2)')
"""
MODES: dict[str, dict[str, str]] = {
    "defaults": {},
    "connect": {"time.precision.mode": "connect", "decimal.handling.mode": "double"},
    "adjusted": {"schema.name.adjustment.mode": "avro", "provide.transaction.metadata": "true"},
}


@pytest.mark.parametrize("mode", MODES)
def test_a_registry_gets_no_schema_that_it_does_not_have(
    mode: str, pg18: EmbeddedPostgres, registry: RunningRegistry, tmp_path: Path
) -> None:
    prefix = f"taken.{mode}"
    source = make_source(pg18, tmp_path / "state", **{"topic.prefix": prefix, **MODES[mode]})
    source.execute(TABLE, INSERT.format(1), "INSERT INTO t (id) VALUES (2)")
    own = {
        **postgres_options("127.0.0.1", pg18.port, pg18.user, source.dbname),
        **avro_options(registry.url),
        **MODES[mode],
        "topic.prefix": prefix,
        "slot.name": f"d_{source.dbname}",
        "publication.name": f"d_{source.dbname}",
        "poll.interval.ms": "20",
    }
    changes = (INSERT.format(3), "UPDATE t SET x = x + 1", "DELETE FROM t WHERE id = 2")
    with (
        Debezium(own, tmp_path / "records.jsonl", jvm_args=("-Duser.timezone=UTC",)) as debezium,
        psycopg.connect(source.conninfo, autocommit=True) as session,
    ):
        debezium.wait_records(2, within(60))
        query = InProcess({**source.options, **avro_options(registry.url)})
        found = query.drain()
        for change in changes:
            session.execute(change.encode())
        found += query.drain()
        debezium.wait_records(len(found), within(60))
        theirs = debezium.records()
    query.stop()
    known = {name: registry.schemas(name) for name in registry.ask("subjects") if name.startswith(prefix)}
    # Debezium has registered them, and Floodmark's are the same: no version follows, and the ids are Debezium's.
    assert {len(versions) for versions in known.values()} == {1}
    read = Consumer(registry.url)
    mine = [event(row, read) for row in found]
    wanted = [event({"topic": one.topic, "key": decoded(one.key), "value": decoded(one.value)}, read) for one in theirs]
    assert sorted(map(str, mine)) == sorted(map(str, wanted))
    with psycopg.connect(source.conninfo, autocommit=True) as session:
        session.execute("SELECT pg_drop_replication_slot(%s)", [own["slot.name"]])
    drop(source)


def decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def event(row: dict[str, Any], read: Consumer) -> tuple[Any, ...]:
    """Return a record: its topic, its schemas' ids, and its content without what depends on the slot."""
    parts = []
    for side in ("key", "value"):
        content = row[side]
        shown = None if content is None else plain(read(row, side))
        parts += [None if content is None else content[:5], json.dumps(settled(shown), sort_keys=True, default=str)]
    return row["topic"], *parts


VOLATILE = ("lsn", "sequence", "snapshot", "transaction", "txId", "id", "version")


def settled(value: Any, volatile: tuple[str, ...] = ("source", "transaction")) -> Any:
    if not isinstance(value, dict):
        return value
    kept = {name: one for name, one in value.items() if not name.startswith("ts_")}
    for name in volatile:
        if isinstance(kept.get(name), dict):
            kept[name] = {key: one for key, one in settled(kept[name], ()).items() if key not in VOLATILE}
    if "status" in kept:
        kept["id"] = None
    return kept
