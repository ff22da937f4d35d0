"""Decides whether keys that seemed to differ do so for certain, while the source is written to and the stream goes on.

In each round the source is read (at a read point), then the target once it has everything up to there, then the source
again. What that proves is in ``judged``. A difference counts when two rounds, one after the other, have proven it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.verifiable import VerifiableTarget
from floodmark.verification.candidates import KEY_HASH
from floodmark.verification.hashes import row_hashes
from floodmark.verification.lookup import KeyLookup
from floodmark.verification.results import Kind
from floodmark.verification.source import SourceTables
from floodmark.verification.tasks import Compared

Verdict = Kind | Literal["equal", "open", "ambiguous"]
"""``open``: nothing is proven. ``ambiguous``: the source has several rows with the key."""

ROUNDS = 2
"""How many rounds must prove a difference."""
_LATEST = "\x7f"
"""Sorts behind all positions."""
Wait = Callable[[str], bool]
"""Waits until the target has everything up to a position; returns False if that takes too long."""


@dataclass(frozen=True)
class Held:
    """The rows of some keys on one side.

    Attributes:
        rows: the compared columns; of a target also the positions.
        hashes: of the compared columns.
        at: numbers of the rows, by the key's hash.
    """

    rows: pa.Table
    hashes: list[int]
    at: dict[int, list[int]]

    @classmethod
    def of(cls, rows: pa.Table, compared: Compared) -> Held:
        """Return rows by their keys."""
        at: dict[int, list[int]] = {}
        for number, key in enumerate(row_hashes(rows, compared.key).tolist()):
            at.setdefault(key, []).append(number)
        return cls(rows, row_hashes(rows, compared.columns.names).tolist(), at)

    def found(self, key: int) -> list[int]:
        """Return the hashes of a key's rows."""
        return [self.hashes[number] for number in self.at.get(key, ())]

    def position(self, key: int) -> str:
        """Return the position of a key's newest row; empty without one."""
        positions = [self.rows[POSITION][number].as_py() or "" for number in self.at.get(key, ())]
        return max(positions, default="")


def judged(before: list[int], target: list[int], after: list[int], position: str, seen: str) -> Verdict:
    """Return what a round proves of a key.

    Args:
        before: hashes of the source's rows at a read point.
        target: hashes of the target's rows, once it had everything up to that read point.
        after: hashes of the source's rows at a later read point.
        position: of the target's row.
        seen: everything that was committed up to this position was visible at the first read point.
    """
    if len(before) > 1 or len(after) > 1:
        return "ambiguous"
    if len(target) > 1:
        # No version of a target may have a key twice, whatever the source does.
        return "doubled"
    if target in (before, after):
        return "equal"
    if target:
        # The row hasn't changed since before the read point, at which the source should have had the same one.
        if position < seen:
            return "differs" if before else "surplus"
        return "open"
    # The source had the row before and after, so the target should have had it meanwhile.
    return "missing" if before == after else "open"


@dataclass
class Settled:
    """What rounds have decided.

    Attributes:
        proven: the differences, by the key's hash.
        ambiguous: hashes of keys of which the source has several rows.
        open: keys of which nothing is certain.
        source: the source's rows when that was decided.
        target: the target's rows.
        waited: whether the target followed; otherwise ``open`` are those that it may still change.
    """

    open: pa.Table
    proven: dict[int, Kind] = field(default_factory=dict)
    ambiguous: set[int] = field(default_factory=set)
    source: Held | None = None
    target: Held | None = None
    waited: bool = True


class Recheck:
    """Looks at keys again until it is certain whether they differ.

    Args:
        source: the source.
        lookup: reads the source's rows of keys.
        target: the target.
        wait: waits for the target.
        at_rest: whether nothing is written to the source, so that the target needs not follow.
    """

    def __init__(
        self, source: SourceTables, lookup: KeyLookup, target: VerifiableTarget, wait: Wait, at_rest: bool
    ) -> None:
        self._source = source
        self._lookup = lookup
        self._target = target
        self._compared = lookup.compared
        self._wait = wait
        self._at_rest = at_rest

    def settle(self, keys: pa.Table, seen: str, until: float) -> Settled:
        """Return what is certain about keys.

        Args:
            keys: the keys, with their hashes.
            seen: the position of a read point that was opened before.
            until: when to give up keys that change all the time, by the monotonic clock.
        """
        settled = Settled(keys)
        streak: dict[int, tuple[Verdict, int]] = {}
        before, position = self._look(keys)
        while settled.open.num_rows:
            if not self._at_rest and not self._wait(position):
                settled.waited = False
                break
            target = Held.of(self._target_rows(settled.open), self._compared)
            after, later = self._look(settled.open)
            self._judge(settled, streak, before, target, after, _LATEST if self._at_rest else seen)
            seen, before, position = position, after, later
            if time.monotonic() >= until:
                break
        return settled

    def _judge(
        self,
        settled: Settled,
        streak: dict[int, tuple[Verdict, int]],
        before: Held,
        target: Held,
        after: Held,
        seen: str,
    ) -> None:
        left = []
        proven = False
        for number, key in enumerate(settled.open[KEY_HASH].to_pylist()):
            verdict = judged(before.found(key), target.found(key), after.found(key), target.position(key), seen)
            last, count = streak.get(key, (verdict, 0))
            streak[key] = (verdict, count + 1 if last == verdict else 1)
            if verdict == "equal":
                continue
            if verdict == "ambiguous":
                settled.ambiguous.add(key)
            elif verdict != "open" and streak[key][1] >= ROUNDS:
                settled.proven[key] = verdict
                proven = True
            else:
                left.append(number)
        if proven:
            settled.source = _together(settled.source, before)
            settled.target = _together(settled.target, target)
        settled.open = settled.open.take(pa.array(left, pa.int64()))

    def _look(self, keys: pa.Table) -> tuple[Held, str]:
        point = self._source.open()
        try:
            return Held.of(self._lookup.rows(point, keys), self._compared), point.position
        finally:
            point.release()

    def _target_rows(self, keys: pa.Table) -> pa.Table:
        return self._target.view().with_keys(keys.select(list(self._compared.key)), self._compared.columns)


def _together(one: Held | None, other: Held) -> Held:
    """Return the rows of both; of a key that both have, those of the other."""
    if one is None:
        return other
    shift = one.rows.num_rows
    moved = {key: [number + shift for number in numbers] for key, numbers in other.at.items()}
    return Held(pa.concat_tables([one.rows, other.rows]), [*one.hashes, *other.hashes], {**one.at, **moved})


def as_keys(table: pa.Table, hashes: set[int]) -> pa.Table:
    """Return those of some keys that have one of the hashes."""
    wanted = np.isin(np.asarray(table[KEY_HASH].to_numpy(), np.uint64), np.array(sorted(hashes), np.uint64))
    return table.filter(pa.array(wanted))
