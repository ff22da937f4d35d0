"""Micro-batches of random changes, in several tasks and together with rows that are read, end in the source's rows."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.jdbc import Event, Query, block, target_on

COLUMNS = pa.schema([("id", pa.int32()), ("part", pa.string()), ("v", pa.int64()), ("big", pa.string())])
KEY = ["part", "id"]
IDS, PARTS = 3, ("a", "A")
SEEDS = int(os.environ.get("FLOODMARK_JDBC_SEEDS", "8"))
Key = tuple[str, int]


@dataclass
class World:
    """A source's table, and what its log and its snapshots deliver."""

    chance: random.Random
    rows: dict[Key, dict[str, Any]] = field(default_factory=dict)
    unread: set[int] = field(default_factory=lambda: set(range(IDS)))
    number: int = 0

    def position(self) -> str:
        self.number += 1
        return f"{self.number:016X}-00"

    def row(self, key: Key) -> dict[str, Any]:
        self.number += 1
        return {"part": key[0], "id": key[1], "v": self.number, "big": f"big\t{self.number}\\"}

    def changes(self, count: int) -> list[Event]:
        """Change the table, and return the events."""
        found: list[Event] = []
        while len(found) < count:
            key = (self.chance.choice(PARTS), self.chance.randrange(IDS))
            found += self.change(key)
        return found

    def change(self, key: Key) -> list[Event]:
        chance = self.chance.random()
        old = self.rows.get(key)
        if chance < 0.03:
            self.rows.clear()
            return [{"op": "t", "position": self.position()}]
        if old is None:
            self.rows[key] = self.row(key)
            return [{"op": "c", "position": self.position(), "after": self.rows[key]}]
        if chance < 0.2:
            del self.rows[key]
            return [{"op": "d", "position": self.position(), "before": old}]
        other = (self.chance.choice(PARTS), self.chance.randrange(IDS))
        moves = chance < 0.4 and other not in self.rows
        # What the target hasn't got yet can't be moved there.
        lacks = self.chance.random() < 0.6 and not (moves and key[1] in self.unread)
        new = self.row(other if moves else key)
        if lacks:
            new["big"] = old["big"]
        shown = {**new, "big": None} if lacks else new
        lacking = ["big"] if lacks else []
        if not moves:
            self.rows[key] = new
            return [{"op": "u", "position": self.position(), "after": shown, "unavailable": lacking}]
        del self.rows[key]
        self.rows[other] = new
        # The log's old row has only the key.
        before = {"part": key[0], "id": key[1], "v": None, "big": None}
        moved = [
            {"op": "d", "position": self.position(), "before": before},
            {"op": "c", "position": self.position(), "before": before, "after": shown, "unavailable": lacking},
        ]
        # Another row often follows under the old key, since that is where values could be mistaken.
        return [*moved, *self.change(key)] if self.chance.random() < 0.6 else moved

    def read(self, ids: set[int]) -> list[Event]:
        """Return the rows with some ids as a snapshot reads them now."""
        at = self.position()
        self.unread -= ids
        return [{"op": "r", "position": at, "after": row} for row in self.rows.values() if row["id"] in ids]


def cut(chance: random.Random, events: list[Event], parts: int) -> list[list[Event]]:
    """Divide events among tasks; the two of a changed key belong together."""
    places = sorted(chance.randrange(len(events) + 1) for _ in range(parts - 1))
    found, begin = [], 0
    for place in (*places, len(events)):
        end = place + 1 if place < len(events) and events[place].get("before") and events[place]["op"] == "c" else place
        end = max(end, begin)
        found.append(events[begin:end])
        begin = end
    return [one for one in found if one]


@pytest.fixture(params=["pg18", "mysql", "mariadb"])
def query(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Query]:
    with target_on(request.getfixturevalue(request.param)) as target:
        yield Query(target, tmp_path / "state")


def test_random_changes(query: Query) -> None:
    batch = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        world = World(chance)
        table = f"public.t{seed}"
        world.changes(6)
        known = [world.read({0})]
        for _ in range(6):
            reads = [one for one in known if one]
            events: list[Event] = []
            for _ in range(chance.randint(1, 3)):
                events += world.changes(chance.randint(1, 8))
                ids = {chance.randrange(IDS)} if chance.random() < 0.5 else set()
                reads += [found for one in ids if (found := world.read({one}))]
            query.staged = chance.random() < 0.3
            tasks = [*reads, *cut(chance, events, chance.randint(1, 3))]
            chance.shuffle(tasks)
            blocks = [block(COLUMNS, KEY, one) for one in tasks]
            query.write(batch, {table: blocks})
            if chance.random() < 0.3:
                # As Spark does if a driver dies before it has noted that the micro-batch is done.
                query.start()
                query.write(batch, {table: blocks})
            batch += 1
            known = []
        last = [found for one in range(IDS) if (found := world.read({one}))] if world.unread else []
        query.write(batch, {table: [block(COLUMNS, KEY, one) for one in last]} if last else {})
        batch += 1
        rows = query.target.rows(f"SELECT part, id, v, big FROM public_t{seed}")
        expected = sorted((row["part"], row["id"], row["v"], row["big"]) for row in world.rows.values())
        assert sorted(rows) == expected, seed


def test_rows_that_are_read_after_their_key_was_another_row_s(query: Query) -> None:
    def row(number: int, big: str | None) -> dict[str, Any]:
        return {"part": "a", "id": number, "v": 0, "big": big}

    query.write(0, {"public.t": [block(COLUMNS, KEY, [{"op": "c", "position": "1", "after": row(1, "old")}])]})
    log = [
        {"op": "d", "position": "2", "before": row(1, None)},
        {"op": "c", "position": "3", "before": row(1, None), "after": row(2, None), "unavailable": ["big"]},
        {"op": "c", "position": "4", "after": row(1, "new")},
    ]
    read = [{"op": "r", "position": "5", "after": one} for one in (row(1, "new"), row(3, "other"))]
    later = [
        {"op": "u", "position": "6", "after": row(1, None), "unavailable": ["big"]},
        {"op": "d", "position": "7", "before": row(3, None)},
    ]
    query.write(1, {"public.t": [block(COLUMNS, KEY, one) for one in (later, read, log)]})
    assert sorted(query.target.rows("SELECT id, big FROM public_t")) == [(1, "new"), (2, "old")]
