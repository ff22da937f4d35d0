"""A query goes on from each of its offsets, in another process, with an empty ``state.dir``."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

from tests.contract.collecting import needs, of_snapshots
from tests.contract.conftest import Start
from tests.contract.query import PAD, SMALL, Query, Rows, applied_rows, changes, events_of, facts, of_log, reads
from tests.contract.under_test import SourceUnderTest
from tests.support.applying import duplicates, time_travel

TABLES = ("t", "u")
ROWS = 24
LARGE, LARGE_PAD = 16, "y" * 50_000
"""Rows of a transaction that takes several segments, and what they hold."""

CUTS = ("before planning", "before reading", "before the commit")
LARGE_BATCHES = {"max.batch.rows": "4", "max.batch.bytes": "262144"}


def fill(source: SourceUnderTest, rows: int = ROWS) -> None:
    source.create(*TABLES)
    with source.writer() as writer:
        for table in TABLES:
            writer.insert(table, [(key, 0, PAD) for key in range(1, rows + 1)])
        writer.commit()


def change(source: SourceUnderTest, v: int, large: bool = False) -> None:
    """Commit some small transactions, and a large one if wanted."""
    with source.writer() as writer:
        writer.update("t", 1, v)
        writer.update("u", 2, v)
        writer.commit()
        writer.insert("t", [(1000 * v, v, "new")])
        writer.commit()
        if large:
            writer.insert("t", [(1000 * v + number, v, LARGE_PAD) for number in range(1, LARGE)])
            writer.update("t", 1000 * v, v + 1)
            writer.commit()
        writer.update("u", 3, v, "y")
        writer.delete("t", 1000 * v)
        writer.commit()


def resume(query: Query, directory: Path, number: int) -> tuple[Query, Rows]:
    """Resume after a micro-batch, deliver everything, and return the rows."""
    with query.resumed(directory / f"after{number}", number) as again:
        return again, again.drain(commit=False)


def test_a_stream_goes_on_from_each_offset(start: Start, source: SourceUnderTest, tmp_path: Path) -> None:
    fill(source)
    query = start(*TABLES, **{**SMALL, **LARGE_BATCHES}, snapshot_mode="no_data")
    query.drain(commit=False)
    for v in (1, 2, 3):
        change(source, v, large=v == 2)
        query.drain(commit=False)
    query.stop()
    transactions = [{row["txid"] for row in batch.rows} for batch in query.batches]
    assert any(one & other for one, other in itertools.pairwise(transactions)), "none is large"
    for number in range(len(query.batches)):
        expected = facts([row for batch in query.batches[number + 1 :] for row in batch.rows])
        _, rows = resume(query, tmp_path, number)
        assert facts(rows) == expected, number


def test_a_snapshot_goes_on_from_each_offset(start: Start, source: SourceUnderTest, tmp_path: Path) -> None:
    fill(source)
    query = start(*TABLES, **SMALL)
    query.drain(commit=False)
    query.stop()
    within = [number for number, batch in enumerate(query.batches) if batch.end["snapshot"]]
    assert len(within) >= 3
    for number in within:
        check_the_rest(query, tmp_path, number)
    change(source, 1)
    query.die()
    query.drain(commit=False)
    query.stop()
    for number in within[::2]:
        check_changes(query, tmp_path, number)


@needs("incremental")
@of_snapshots
def test_an_incremental_snapshot_goes_on_from_each_offset(
    start: Start, source: SourceUnderTest, tmp_path: Path
) -> None:
    fill(source, ROWS // 6)
    query = start(*TABLES, **SMALL, snapshot_mode="no_data")
    query.drain(commit=False)
    query.signal("execute-snapshot", {"data-collections": [rf"{source.schema}\.(t|u)"]})
    query.until(lambda: bool(query.offset["incremental"]), commit=False)
    query.drain(commit=False)
    query.stop()
    within = [number for number, batch in enumerate(query.batches) if batch.end["incremental"]]
    assert len(within) >= 3
    for number in within:
        check_the_rest(query, tmp_path, number)
    change(source, 1)
    query.die()
    query.drain(commit=False)
    query.stop()
    for number in within[::2]:
        check_changes(query, tmp_path, number)


def check_the_rest(query: Query, directory: Path, number: int) -> None:
    """Prove that exactly the rows come that are missing, with those of the last micro-batch at most once more.

    Which of these its tasks have read, only ``state.dir`` tells.
    """
    _, rows = resume(query, directory, number)
    missing = Counter(reads([row for batch in query.batches[number + 1 :] for row in batch.rows]))
    again = Counter(reads(query.batches[number].rows))
    found = Counter(reads(rows))
    assert not missing - found, number
    assert not found - missing - again, number
    assert not of_log(facts(rows))
    last = max(str(row["position"]) for batch in query.batches[: number + 1] for row in [*batch.rows, {"position": ""}])
    assert all(row["position"] >= last for row in rows)


def check_changes(query: Query, directory: Path, number: int) -> None:
    """Prove that what was changed meanwhile comes once, and that the result is the source."""
    again, rows = resume(query, directory / "changed", number)
    later = facts([row for batch in query.batches[number + 1 :] for row in batch.rows])
    assert of_log(facts(rows)) == of_log(later), number
    events = events_of([*query.batches[: number + 1], *again.batches])
    assert not time_travel(events)
    for table in TABLES:
        assert applied_rows(query.source, table, events) == sorted(query.source.rows(table))


def test_a_planned_micro_batch_has_the_same_rows_in_another_process(
    start: Start, source: SourceUnderTest, tmp_path: Path
) -> None:
    """Of tables a process that can't read what the first one saw delivers fewer rows, and the others later."""
    fill(source)
    query = start(*TABLES, **SMALL)
    query.drain(commit=False)
    change(source, 1)
    query.drain(commit=False)
    query.stop()
    for number, batch in enumerate(query.batches):
        with query.resumed(tmp_path / f"again{number}", number, planned=True) as again:
            expected, rows = facts(batch.rows), again.run(batch.end)
            assert of_log(facts(rows)) == of_log(expected)
            assert set(facts(rows)) <= set(expected)
            assert len(facts(rows)) == len(set(facts(rows)))
            assert facts(again.run(batch.end)) == facts(rows)
            if len(facts(rows)) < len(expected):
                again.take(batch.end, rows)
                rows = [*rows, *again.drain(commit=False)]
                missing = reads([row for later in query.batches[number:] for row in later.rows])
                assert {cell[:2] for cell in missing} <= {cell[:2] for cell in reads(rows)}


def test_a_planned_micro_batch_has_the_same_rows_twice(start: Start, source: SourceUnderTest) -> None:
    fill(source)
    query = start(*TABLES, **SMALL)
    while not facts(query.rows):
        end = query.plan()
        rows = query.run(end)
        assert facts(query.run(end)) == facts(rows)
        query.take(end, rows)
    query.drain()
    change(source, 1)
    query.until(lambda: end_of_changes(query.rows), commit=False)
    last = query.batches[-1]
    query.process.offset = last.start
    assert facts(query.run(last.end)) == facts(last.rows)


def end_of_changes(rows: Rows) -> bool:
    return any(row["op"] == "d" for row in rows)


@needs("network")
def test_broken_connections_lose_and_double_nothing(start: Start, source: SourceUnderTest) -> None:
    fill(source)
    query = start(*TABLES, **SMALL, errors_max_retries="50")
    query.step()
    # A snapshot that loses its read point looks at all rows once more, so it needs some rounds without a break.
    for number, cut in enumerate(CUTS, 1):
        assert number > 1 or query.snapshots
        round_with_cut(query, number, cut)
    query.until(lambda: not query.snapshots)
    for number, cut in enumerate(CUTS * 2, len(CUTS) + 1):
        round_with_cut(query, number, cut)
    # The same process goes on: another one would read the log again.
    query.until(lambda: newest(query.rows) == 3 * len(CUTS))
    assert not duplicates([one for one in query.events if one.op != "r"])
    assert not time_travel(query.events)
    for table in TABLES:
        assert applied_rows(source, table, query.events) == sorted(source.rows(table))


def round_with_cut(query: Query, number: int, cut: str) -> None:
    """Run a micro-batch; at some point in it connections break, and a row changes before the query notices."""
    if cut == "before planning":
        cut_and_change(query.source, number)
    end = query.plan()
    if cut == "before reading":
        cut_and_change(query.source, number)
    rows = query.run(end)
    if cut == "before the commit":
        cut_and_change(query.source, number)
    query.take(end, rows)
    query.process.reader.commit(end)


def newest(rows: Rows) -> int:
    """Return the highest ``v`` that was delivered."""
    return max((json.loads(row["value"])["after"]["v"] for row in changes(rows)), default=0)


def cut_and_change(source: SourceUnderTest, v: int) -> None:
    source.cut_connections()
    with source.writer() as writer:
        writer.update("t", 1 + v % ROWS, v)
        writer.commit()
