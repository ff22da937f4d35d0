"""Options of the replication stream and its sessions, and records that can't be decoded."""

from __future__ import annotations

import base64
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.capture.retry import RetryPolicy
from floodmark.changes.table_version import TableVersion
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors import side_statements
from floodmark.connectors.load import load_options
from floodmark.connectors.postgres.server import slots
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import DecodeError, SourceStateError
from floodmark.events.json_text import Fragment
from floodmark.spark.stream import readers
from tests.conftest import Source
from tests.support.inprocess import InProcess
from tests.support.patience import within
from tests.support.recording import Recorder

WAIT_S = within(20.0)


@pytest.fixture
def server(pg18: EmbeddedPostgres) -> EmbeddedPostgres:
    return pg18


@pytest.fixture
def shop(source: Source) -> Source:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, v text)", "ALTER TABLE t REPLICA IDENTITY FULL")
    source.options["snapshot.mode"] = "no_data"
    return source


def confirmed(source: Source) -> str:
    with psycopg.connect(source.conninfo) as conn:
        row = conn.execute(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s",
            [source.options["slot.name"]],
        ).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize("option", ["lsn.flush.mode=manual", "flush.lsn.source=false", "lsn.flush.mode=connector"])
def test_who_flushes(shop: Source, option: str) -> None:
    name, value = option.split("=")
    query = InProcess({**shop.options, name: value})
    query.drain()
    before = confirmed(shop)
    for number in range(3):
        shop.execute(f"INSERT INTO t VALUES ({number}, 'x')")
        assert len(query.drain()) == 1
    query.stop()
    if value == "connector":
        deadline = time.monotonic() + WAIT_S
        while confirmed(shop) == before:
            assert time.monotonic() < deadline
    else:
        assert confirmed(shop) == before


@pytest.mark.parametrize("strategy", ["trust_slot", "trust_greater_lsn"])
def test_a_slot_beyond_the_checkpoint_can_be_trusted(
    shop: Source, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, slots.__name__)
    query = InProcess(shop.options)
    query.drain()
    query.stop()
    name = shop.options["slot.name"]
    shop.execute(
        f"SELECT pg_drop_replication_slot('{name}')",
        "INSERT INTO t VALUES (1, 'lost')",
        f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')",
        "INSERT INTO t VALUES (2, 'there')",
    )
    again = InProcess({**shop.options, "offset.mismatch.strategy": strategy}, query.offset)
    gap, change = sorted(again.drain(), key=lambda row: str(row["position"]))
    assert (gap["op"], json.loads(gap["value"])["option"]) == ("gap", f"offset.mismatch.strategy={strategy}")
    assert json.loads(change["key"]) == {"id": 2}
    again.stop()
    assert recorder.of("slot_is_beyond_checkpoint")[0]["strategy"] == strategy


def test_initial_statements(shop: Source) -> None:
    query = InProcess({**shop.options, "database.initial.statements": "SET application_name = 'a;;b'; SET jit = off"})
    query.drain()
    with psycopg.connect(shop.conninfo) as conn:
        row = conn.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'a;b'").fetchone()
    query.stop()
    assert row is not None
    assert row[0] >= 1
    broken = InProcess({**shop.options, "database.initial.statements": "SET nonsense = 1"}, query.offset)
    with pytest.raises(SourceStateError, match=r"statement 1 of database\.initial\.statements \(SET …\).*42704"):
        broken.drain()
    broken.stop()


def test_query_timeout(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, side_statements.__name__)
    options = {
        "heartbeat.interval.ms": "1",
        "heartbeat.action.query": "SELECT pg_sleep(100)",
        "database.query.timeout.ms": "1000",
    }
    query = InProcess({**shop.options, **options})
    deadline = time.monotonic() + WAIT_S
    while not recorder.of("heartbeat_action_failed"):
        query.step()
        assert time.monotonic() < deadline
    query.stop()
    assert "statement timeout" in recorder.of("heartbeat_action_failed")[0]["error"]


def test_wait_before_reconnecting(shop: Source) -> None:
    policy = RetryPolicy.from_options(load_options({**shop.options, "retriable.restart.connector.wait.ms": "1500"}))
    assert [policy.delay_s(failures) for failures in (1, 2, 9)] == [1.5, 1.5, 1.5]
    policy = RetryPolicy.from_options(load_options(shop.options))
    assert policy.delay_s(1) == 0.3


@pytest.fixture
def undecodable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rows that hold the text ``bad`` be undecodable."""
    encode = TableVersion.encode

    def refuse(self: TableVersion, columns: Sequence[RawColumn]) -> list[Fragment]:
        if any("bad" in column.values.to_pylist() for column in columns):
            raise DecodeError("A value is bad.")
        return encode(self, columns)

    monkeypatch.setattr(TableVersion, "encode", refuse)


def letters(source: Source) -> list[dict[str, Any]]:
    files = sorted(Path(source.options["state.dir"]).glob("*/dead-letters/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.usefixtures("undecodable")
@pytest.mark.parametrize("mode", ["warn", "skip", "ignore"])
def test_records_that_cannot_be_decoded_are_left_out_and_kept(
    shop: Source, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, readers.__name__)
    shop.execute("CREATE TABLE other (id integer PRIMARY KEY, v text)")
    query = InProcess({**shop.options, "event.processing.failure.handling.mode": mode})
    query.drain()
    shop.execute(
        "INSERT INTO t SELECT g, CASE WHEN g IN (3, 700) THEN 'bad' ELSE 'good' END FROM generate_series(1, 1000) g",
        "UPDATE t SET v = 'bad' WHERE id = 5",
        "INSERT INTO other VALUES (1, 'good'), (2, 'bad')",
        "DELETE FROM t WHERE id = 5",
    )
    query.restart()
    query.reader.prepareForTriggerAvailableNow()
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    query.run(end)
    rows = query.run(end)  # a batch that is repeated keeps its letters once
    query.offset = end
    rows += query.drain()
    assert query.offset["aside"] == []
    query.stop()
    created = [json.loads(row["key"])["id"] for row in rows if row["table"] == "t"]
    assert created == [number for number in range(1, 1001) if number not in (3, 700)]
    assert [row["key"] for row in rows if row["table"] == "other"] == ['{"id":1}']
    found = letters(shop)
    kinds = Counter((one["table"], one["operation"]) for one in found)
    assert kinds == {("public.t", "c"): 2, ("public.t", "u"): 1, ("public.t", "d"): 1, ("public.other", "c"): 1}
    assert all(b"bad" in base64.b64decode(one["record"]) and one["error"] == "A value is bad." for one in found)
    assert len({one["position"] for one in found}) == 5
    warned = recorder.of("record_is_left_out")
    assert (len(warned) >= 5) if mode == "warn" else not warned


@pytest.mark.usefixtures("undecodable")
def test_without_the_option_the_table_is_set_aside(shop: Source) -> None:
    query = InProcess(shop.options)
    query.drain()
    shop.execute("INSERT INTO t VALUES (1, 'good'), (2, 'bad')")
    assert query.drain() == []
    assert [table["name"] for table in query.offset["aside"]] == ["public.t"]
    query.stop()
    assert letters(shop) == []
