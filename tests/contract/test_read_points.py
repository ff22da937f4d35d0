"""A snapshot is what the source was at one position of its log, whatever is committed meanwhile."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence

from tests.contract.conftest import Start
from tests.contract.query import PAD, SMALL, Query, Rows, changes
from tests.contract.under_test import SourceUnderTest, Writer
from tests.support.patience import within

TABLES = ("t", "u")
KEYS = 24
AFTER = 10
"""How many transactions are committed before the snapshot begins and, at least, after it has ended."""
Ledger = dict[int, int]
"""``v`` by key."""


class Committer:
    """Commits transactions that set ``v`` of a row in both tables to their number, and that overlap.

    One session changes even keys, the other odd ones, so the numbers say which transactions a row has seen.

    Attributes:
        order: the numbers in the order of the commits.
    """

    def __init__(self, writers: Sequence[Writer], chance: random.Random) -> None:
        self._writers = writers
        self._chance = chance
        self._open: list[int | None] = [None, None]
        self._number = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None
        self.order: list[int] = []

    def __enter__(self) -> Committer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join(within(30))
        assert not self._thread.is_alive()
        for side in (0, 1):
            self._end(side)
        if self._error is not None:
            raise self._error

    def step(self) -> None:
        """Begin a transaction, or commit the one that is open."""
        side = self._chance.randrange(2)
        if self._open[side] is not None:
            self._end(side)
            return
        self._number += 1
        for table in TABLES:
            self._writers[side].update(table, key_of(self._number, side), self._number)
        self._open[side] = self._number

    def state(self, commits: int) -> Ledger:
        """Return the rows after the first commits."""
        return {key: max((n for n in self.order[:commits] if SIDES[n] == key), default=0) for key in range(1, KEYS + 1)}

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._chance.choice((0.0, 0.001, 0.003))):
                self.step()
        except BaseException as exc:
            self._error = exc

    def _end(self, side: int) -> None:
        number = self._open[side]
        if number is not None:
            self._writers[side].commit()
            self.order.append(number)
            self._open[side] = None


SIDES: Ledger = {}
"""The key that each transaction changed."""


def key_of(number: int, side: int) -> int:
    SIDES[number] = 1 + (2 * number + side) % KEYS
    return SIDES[number]


def test_a_snapshot_is_the_state_after_some_commits(start: Start, source: SourceUnderTest) -> None:
    source.create(*TABLES)
    with source.writer() as first, source.writer() as second:
        for table in TABLES:
            first.insert(table, [(key, 0, PAD) for key in range(1, KEYS + 1)])
        first.commit()
        with Committer((first, second), random.Random(1)) as committer:
            wait(committer, AFTER)
            query = start(*TABLES, **SMALL)
            query.step()
            query.until(lambda: not query.snapshots)
            seen = len(committer.order)
            query.until(lambda: len(committer.order) >= seen + AFTER)
        query.drain()
    check(query, committer)


def wait(committer: Committer, commits: int) -> None:
    moment = threading.Event()
    while len(committer.order) < commits:
        moment.wait(0.002)


def check(query: Query, committer: Committer) -> None:
    """Prove that one prefix of the commits is in the snapshot, and the others are in the stream, in their order."""
    rows = sorted(changes(query.rows), key=lambda row: str(row["position"]))
    read, streamed = by_table(rows, "r"), by_table(rows, "u")
    commits = len(committer.order) - len(streamed["t"])
    for table in TABLES:
        assert [v for _, v in streamed[table]] == committer.order[commits:], table
        assert len(read[table]) == KEYS
        assert dict(read[table]) == committer.state(commits), table
    assert commits >= AFTER
    places = [str(row["position"]) for row in rows]
    assert max(place for place, row in zip(places, rows, strict=True) if row["op"] == "r") < min(
        place for place, row in zip(places, rows, strict=True) if row["op"] == "u"
    )
    assert len(rows) == len(TABLES) * (KEYS + len(committer.order) - commits)


def by_table(rows: Rows, op: str) -> dict[str, list[tuple[int, int]]]:
    """Return key and ``v`` of the events with an operation, in their order."""
    found: dict[str, list[tuple[int, int]]] = {table: [] for table in TABLES}
    for row in rows:
        if row["op"] == op:
            after = json.loads(row["value"])["after"]
            found[row["table"]].append((after["id"], after["v"]))
    return found
