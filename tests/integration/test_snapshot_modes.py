"""What each snapshot mode does at a real server, when a query is started again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import CheckpointError, ConfigError, LogGoneError
from tests.conftest import Source, drop_slots, make_source
from tests.integration.test_postgres import payload
from tests.support.inprocess import InProcess

BASED = "snapshot.mode.configuration.based"


@pytest.fixture
def shop(source: Source) -> Source:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer)", "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
    return source


class Runs:
    """Runs of one query, each with the checkpoint of the one before."""

    def __init__(self, source: Source, **options: str) -> None:
        self.source = source
        self.options = {**source.options, **{name.replace("__", "."): value for name, value in options.items()}}
        self.offset: dict[str, Any] | None = None
        self.rows: list[dict[str, Any]] = []

    def run(self, **options: str) -> list[tuple[str, Any]]:
        """Run until nothing is left; return operation and row of the events."""
        changed = {name.replace("__", "."): value for name, value in options.items()}
        query = InProcess({**self.options, **changed}, self.offset)
        try:
            rows = query.drain()
            assert query.drain() == []
        finally:
            query.stop()
        self.offset = query.offset
        self.rows += rows
        return [(row["op"], event(row)) for row in rows if row["value"] is not None]

    @property
    def log(self) -> str:
        """The log position of the checkpoint."""
        assert self.offset is not None
        return str(self.offset["log"])

    def applied(self) -> dict[int, int]:
        """Return the table that all events so far make, which must come in the order of their positions."""
        positions = [row["position"] for row in self.rows]
        assert positions == sorted(positions)
        state: dict[int, int] = {}
        for row in self.rows:
            if row["value"] is None or row["op"] == "gap":
                continue
            if row["op"] == "d":
                state.pop(payload(row)["before"]["id"], None)
            else:
                state[payload(row)["after"]["id"]] = payload(row)["after"]["v"]
        return state

    def actual(self) -> dict[int, int]:
        """Return the table."""
        with psycopg.connect(self.source.conninfo) as conn:
            return dict(conn.execute("SELECT id, v FROM t").fetchall())


def event(row: dict[str, Any]) -> Any:
    """Return the row of a change, or what a gap says."""
    if row["op"] == "gap":
        return payload(row)
    value = payload(row)["after"] or payload(row)["before"]
    return value["id"], value["v"]


def reads(*rows: tuple[int, int]) -> list[tuple[str, tuple[int, int]]]:
    return [("r", row) for row in rows]


def test_always_takes_a_snapshot_at_each_start_after_the_log(shop: Source) -> None:
    query = Runs(shop, snapshot__mode="always")
    assert query.run() == reads((1, 0), (2, 0), (3, 0))
    shop.execute("UPDATE t SET v = 1 WHERE id = 2", "DELETE FROM t WHERE id = 3")
    second = query.run()
    assert second == [("u", (2, 1)), ("d", (3, None)), *reads((1, 0), (2, 1))]
    assert query.run() == reads((1, 0), (2, 1))
    assert query.applied() == query.actual()


def test_always_finishes_a_snapshot_that_was_interrupted(shop: Source) -> None:
    shop.execute("CREATE TABLE more AS SELECT g AS id, 0 AS v, repeat('x', 500) FROM generate_series(1, 400) g")
    options = {
        **shop.options,
        "snapshot.mode": "always",
        "snapshot.chunk.bytes": "8192",
        "max.batch.bytes": "8192",
    }
    query = InProcess(options)
    first = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    rows = query.run(first)
    query.stop()
    again = InProcess(options, first)
    rest = again.drain()
    assert again.drain() == []
    again.stop()
    # What the last micro-batch had may come once more if it has changed; here nothing has.
    assert len(rows) + len(rest) == 403


def test_a_micro_batch_of_always_is_planned_before_the_next_snapshot(shop: Source) -> None:
    query = Runs(shop, snapshot__mode="always")
    query.run()
    shop.execute("INSERT INTO t VALUES (4, 0)")
    died = InProcess(query.options, query.offset)
    died.reader.prepareForTriggerAvailableNow()
    end = died.reader.latestOffset(died.offset, died.reader.getDefaultReadLimit())
    died.stop()
    again = InProcess(query.options, query.offset)
    rows = again.run(end)
    again.offset = end
    rows += again.drain()
    again.stop()
    assert [row["op"] for row in rows] == ["c", "r", "r", "r", "r"]


def create_slot(source: Source) -> None:
    source.execute(f"SELECT pg_create_logical_replication_slot('{source.options['slot.name']}', 'pgoutput')")


@pytest.mark.parametrize("made_again", [False, True])
def test_when_needed_takes_a_new_snapshot_if_the_log_is_gone(shop: Source, made_again: bool) -> None:
    query = Runs(shop, snapshot__mode="when_needed")
    query.run()
    shop.execute("UPDATE t SET v = 1 WHERE id = 2")
    assert query.run() == [("u", (2, 1))]
    drop_slots(shop)
    shop.execute("UPDATE t SET v = 2 WHERE id = 1", "INSERT INTO t VALUES (4, 2)")
    if made_again:
        create_slot(shop)
    shop.execute("UPDATE t SET v = 3 WHERE id = 4")
    delivered = query.log
    gap, *rest = query.run()
    assert gap[0] == "gap"
    assert gap[1]["after"] == delivered < gap[1]["upto"]
    assert gap[1]["option"] == "snapshot.mode=when_needed"
    assert f"'{shop.options['slot.name']}'" in gap[1]["reason"]
    assert sorted(rest) == reads((1, 2), (2, 1), (3, 0), (4, 3))
    shop.execute("UPDATE t SET v = 4")
    assert [op for op, _ in query.run()] == ["u"] * 4
    assert query.applied() == query.actual()
    assert query.run() == []


def test_when_needed_replaces_an_invalidated_slot(tmp_path: Path) -> None:
    settings = {"max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    with EmbeddedPostgres(16, settings) as server:
        source = make_source(server, tmp_path / "state")
        source.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer)", "INSERT INTO t VALUES (1, 0)")
        query = Runs(source, snapshot__mode="when_needed")
        query.run()
        source.execute("UPDATE t SET v = 1")
        for _ in range(6):
            source.execute("SELECT pg_logical_emit_message(false, 'x', 'x')", "SELECT pg_switch_wal()", "CHECKPOINT")
        with pytest.raises(LogGoneError, match="invalidated"):
            query.run(snapshot__mode="initial")
        assert query.run()[1:] == reads((1, 1))
        source.execute("UPDATE t SET v = 2")
        assert query.run() == [("u", (1, 2))]
        assert query.applied() == query.actual()


def test_when_needed_finishes_no_micro_batch_whose_log_is_gone(shop: Source) -> None:
    query = Runs(shop, snapshot__mode="when_needed")
    query.run()
    shop.execute("UPDATE t SET v = 1")
    died = InProcess(query.options, query.offset)
    died.reader.prepareForTriggerAvailableNow()
    end = died.reader.latestOffset(died.offset, died.reader.getDefaultReadLimit())
    died.stop()
    drop_slots(shop)
    again = InProcess(query.options, query.offset)
    assert again.run(end) == []
    again.offset = end
    gap, *rows = again.drain()
    again.stop()
    assert gap["op"] == "gap"
    # What the micro-batch would have held belongs to the gap.
    assert payload(gap)["after"] == query.log < end["log"] < payload(gap)["upto"]
    assert sorted(event(row) for row in rows) == [(1, 1), (2, 1), (3, 1)]


def test_the_new_snapshot_goes_on_after_its_first_micro_batch_died(shop: Source) -> None:
    query = Runs(shop, snapshot__mode="when_needed")
    query.run()
    drop_slots(shop)
    died = InProcess(query.options, query.offset)
    end = died.reader.latestOffset(died.offset, died.reader.getDefaultReadLimit())
    died.stop()
    assert end["gap"]
    shop.execute("UPDATE t SET v = 5 WHERE id = 1")
    again = InProcess(query.options, query.offset)
    rows = again.run(end)
    again.offset = end
    rows += again.drain()
    query.offset = again.offset
    query.rows += rows
    again.stop()
    assert query.applied() == query.actual()
    assert sorted(row["op"] for row in rows).count("u") == 1


def test_when_needed_during_a_snapshot(shop: Source) -> None:
    options = {**shop.options, "snapshot.mode": "when_needed"}
    query = InProcess(options)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    query.stop()
    drop_slots(shop)
    again = InProcess(options, end)
    assert [row["op"] for row in again.drain()] == ["gap", "r", "r", "r"]
    again.stop()


def test_a_gap_of_typed_rows(shop: Source) -> None:
    options = {**shop.options, "snapshot.mode": "when_needed", "format": "rows"}
    query = InProcess(options)
    query.drain()
    query.stop()
    drop_slots(shop)
    again = InProcess(options, query.offset)
    gap, *rows = again.drain()
    again.stop()
    told = {"op": "gap", "position": again.offset["log"]}
    assert gap == {**dict.fromkeys(rows[0]), **told}
    assert [row["after"]["id"] for row in rows] == [1, 2, 3]
    assert all(gap["position"] < row["position"] for row in rows)


def test_a_gap_is_announced_once_and_with_a_schema(shop: Source) -> None:
    options = {**shop.options, "snapshot.mode": "when_needed", "schemas.enable": "true", "topic.gap": "lücke"}
    query = InProcess({**options, "topic.gap": "missing"})
    query.drain()
    query.stop()
    drop_slots(shop)
    again = InProcess({**options, "topic.gap": "missing"}, query.offset)
    gap = again.drain()[0]
    again.restart()
    assert again.drain() == []
    again.stop()
    assert gap["topic"] == "test.missing"
    names = [field["field"] for field in payload(gap)["schema"]["fields"]]
    assert names == list(payload(gap)["payload"]) == ["server_name", "after", "upto", "reason", "option"]
    with pytest.raises(ConfigError, match=r"topic\.gap"):
        InProcess(options)


def test_when_needed_refuses_another_server(shop: Source) -> None:
    query = Runs(shop, snapshot__mode="when_needed")
    query.run()
    drop_slots(shop)
    assert query.offset is not None
    query.offset["source"]["system"] = "1"
    with pytest.raises(CheckpointError, match="another source"):
        query.run()


def test_when_needed_refuses_to_go_back(shop: Source) -> None:
    query = Runs(shop, snapshot__mode="when_needed")
    query.run()
    drop_slots(shop)
    assert query.offset is not None
    query.offset["log"] = "7" + query.offset["log"][1:]
    with pytest.raises(LogGoneError, match="restored from a backup"):
        query.run()


def test_a_mode_can_be_changed_under_a_checkpoint(shop: Source) -> None:
    query = Runs(shop, snapshot__mode="no_data")
    assert query.run() == []
    assert query.run(snapshot__mode="always") == reads((1, 0), (2, 0), (3, 0))
    shop.execute("UPDATE t SET v = 1 WHERE id = 1")
    assert query.run(snapshot__mode="initial_only") == []
    assert query.run(snapshot__mode="initial") == [("u", (1, 1))]


def test_no_data_gives_up_a_snapshot(shop: Source) -> None:
    query = InProcess(shop.options)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    query.stop()
    shop.execute("UPDATE t SET v = 1 WHERE id = 1")
    again = InProcess({**shop.options, "snapshot.mode": "no_data"}, end)
    assert [event(row) for row in again.drain()] == [(1, 1)]
    assert again.offset["snapshot"] is None
    again.stop()


def test_configuration_based_snapshots_without_log(shop: Source) -> None:
    query = Runs(shop, snapshot__mode="configuration_based", **{f"{BASED}.snapshot.data": "true"})
    assert query.run() == reads((1, 0), (2, 0), (3, 0))
    shop.execute("UPDATE t SET v = 1 WHERE id = 1")
    assert sorted(query.run()) == reads((1, 1), (2, 0), (3, 0))
    assert query.offset is not None
    assert query.offset["ended"]


def test_configuration_based_log_without_snapshot(shop: Source) -> None:
    query = Runs(shop, snapshot__mode="configuration_based", **{f"{BASED}.start.stream": "true"})
    assert query.run() == []
    shop.execute("UPDATE t SET v = 1 WHERE id = 1")
    assert query.run() == [("u", (1, 1))]
    drop_slots(shop)
    with pytest.raises(LogGoneError):
        query.run()
    rows = query.run(**{f"{BASED}.snapshot.on.data.error": "true"})
    assert [op for op, _ in rows] == ["gap", "r", "r", "r"]


def test_configuration_based_with_nothing(shop: Source) -> None:
    query = Runs(shop, snapshot__mode="configuration_based")
    assert query.run() == []
    shop.execute("UPDATE t SET v = 1 WHERE id = 1")
    assert query.run() == []


def test_delays(shop: Source) -> None:
    begun = time.monotonic()
    query = Runs(shop, snapshot__delay__ms="300", streaming__delay__ms="400")
    assert len(query.run()) == 3
    assert time.monotonic() - begun > 0.7
