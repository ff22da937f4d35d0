"""What one side's records of a topic have that the other's haven't, by changes and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from floodmark.comparison.positions import UNSETTLED
from floodmark.comparison.records import NO_KEY, Mask, Records
from floodmark.verification.hashes import Hashes

Kind = Literal["missing", "additional", "different", "order"]
Side = Literal["theirs", "ours"]
Place = tuple[int, int]
"""Partition and offset of a record."""
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Difference:
    """A change that both sides don't have in the same way.

    Attributes:
        kind: ``missing``, only theirs has it; ``additional``, only ours; ``different``, they say something else of it;
            ``order``, the first change of a key that doesn't come in the same order.
        places: where records of it are.
    """

    kind: Kind
    places: Mapping[Side, Place]


@dataclass(frozen=True)
class Differences:
    """What a comparison of a topic has found.

    Attributes:
        compared: changes that both sides have, or one of them, in the part of the log that both cover.
        outside: how many changes each side has beyond that part.
        read: how many rows snapshots have read; they are counted only, since each side reads at a time of its own.
        others: how many records each side has that are no events of rows.
        duplicates: how many records each side has once more, as at-least-once delivery allows.
        counts: how many differences there are of each kind.
        found: the first ones, in the order of the log.
    """

    compared: int
    outside: Mapping[Side, int]
    read: Mapping[Side, int]
    others: Mapping[Side, int]
    duplicates: Mapping[Side, int]
    counts: Mapping[Kind, int]
    found: list[Difference] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether there is no difference."""
        return not any(self.counts.values())


@dataclass(frozen=True)
class Covered:
    """The part of the log in which both sides must have all changes, by the order of their transactions.

    Attributes:
        after: changes that come later than this one; None: each side's first one in any topic isn't known.
        before: … and earlier than this one.
    """

    after: int | None
    before: int | None

    @classmethod
    def of(cls, theirs: Sequence[Records], ours: Sequence[Records]) -> Covered:
        """Return what both sides cover, by all of their topics.

        The transactions at both ends may be there in part, so they don't count.
        """
        ends = []
        for side in (theirs, ours):
            orders = [one.order[one.is_change] for one in side]
            every = np.concatenate(orders) if orders else np.zeros(0, np.int64)
            if not len(every):
                return cls(None, None)
            ends.append((int(every.min()), int(every.max())))
        return cls(max(first for first, _ in ends), min(last for _, last in ends))

    def holds(self, records: Records) -> Mask:
        """Return which records are compared."""
        if self.after is None or self.before is None:
            return np.zeros(len(records.order), bool)
        return records.is_change & (records.order > self.after) & (records.order < self.before)


def settled(theirs: Sequence[Records], ours: Sequence[Records]) -> tuple[list[Records], list[Records]]:
    """Return the records of all topics with an order for each change.

    A side that doesn't know it takes it from the other one; if neither does, it is that of the record before.
    """
    known = [one.take(one.order >= 0) for one in (*theirs, *ours)]
    numbers, first = np.unique(np.concatenate([one.transaction for one in known]), return_index=True)
    orders = np.concatenate([one.order for one in known])[first]

    def with_orders(one: Records) -> Records:
        at = np.flatnonzero(one.order == UNSETTLED)
        if not len(at):
            return one
        place = np.searchsorted(numbers, one.transaction[at])
        order = one.order.copy()
        there = np.zeros(len(at), bool) if not len(numbers) else numbers[place % len(numbers)] == one.transaction[at]
        order[at[there]] = orders[place[there]]
        for number in np.unique(one.partition):
            own = np.flatnonzero(one.partition == number)
            own = own[np.argsort(one.offset[own])]
            before = np.maximum.accumulate(np.maximum(order[own], 0))
            order[own] = np.where(order[own] == UNSETTLED, before, order[own])
        return replace(one, order=order)

    return [with_orders(one) for one in theirs], [with_orders(one) for one in ours]


def compare(theirs: Records, ours: Records, covered: Covered, limit: int) -> Differences:
    """Compare the records of a topic.

    Args:
        theirs: Debezium's, settled.
        ours: Floodmark's, too.
        covered: what is compared.
        limit: how many differences are returned, at most.
    """
    sides: Mapping[Side, Records] = {"theirs": theirs, "ours": ours}
    whole = {name: one.with_tombstones() for name, one in sides.items()}
    chosen = {name: _once(one.take(covered.holds(one))) for name, one in whole.items()}
    left, right = chosen["theirs"], chosen["ours"]
    lacking = ~np.isin(_events(left), _events(right)), ~np.isin(_events(right), _events(left))
    in_both = np.isin(left.change, right.change), np.isin(right.change, left.change)
    of_left = {"missing": lacking[0] & ~in_both[0], "different": lacking[0] & in_both[0]}
    of_right = {"additional": lacking[1] & ~in_both[1], "different": lacking[1] & in_both[1]}
    disordered = _disordered(left.take(in_both[0] & ~lacking[0]), right.take(in_both[1] & ~lacking[1]))
    differing = np.union1d(left.change[of_left["different"]], right.change[of_right["different"]])
    changes: Mapping[Kind, Hashes] = {
        "missing": np.unique(left.change[of_left["missing"]]),
        "additional": np.unique(right.change[of_right["additional"]]),
        "different": differing,
        "order": disordered,
    }
    return Differences(
        compared=len(np.union1d(left.change, right.change)),
        outside={name: int((one.is_change & ~covered.holds(one)).sum()) for name, one in sides.items()},
        read={name: int(one.is_read.sum()) for name, one in sides.items()},
        others={name: int((~one.is_change & ~one.is_read & ~one.is_tombstone).sum()) for name, one in sides.items()},
        duplicates={name: int(covered.holds(one).sum()) - len(chosen[name].order) for name, one in whole.items()},
        counts={kind: len(found) for kind, found in changes.items()},
        found=_first(changes, chosen, limit),
    )


def _once(records: Records) -> Records:
    """Return records without those that come again, by the first of each, in the order of the topic's places."""
    order = np.lexsort((records.offset, records.partition))
    ordered = records.take(order)
    _, first = np.unique(_events(ordered), return_index=True)
    return ordered.take(np.sort(first))


def _events(records: Records) -> Hashes:
    """Return what tells events from others: changes, and what they say of them."""
    found: Hashes = records.change * np.uint64(3) + records.content
    return found


def _disordered(left: Records, right: Records) -> Hashes:
    """Return the first change of each key whose changes come in another order; both have the same events.

    Within a partition only: where the number of partitions was raised, there is no order.
    """
    places = []
    for one in (left, right):
        # Those of a key in the order of the topic, once each.
        _, first = np.unique(one.change, return_index=True)
        own = one.take(np.sort(first))
        order = np.lexsort((own.offset, own.partition, own.key))
        places.append(own.take(order))
    mine, other = places
    same = (mine.change == other.change) | (mine.key == NO_KEY) | ~_in_one_partition(mine) | ~_in_one_partition(other)
    wrong = ~same
    _, first = np.unique(mine.key[wrong], return_index=True)
    found: Hashes = mine.change[wrong][first]
    return found


def _in_one_partition(records: Records) -> Mask:
    """Return whether all records of a record's key are in one partition; records are sorted by their keys."""
    _, group, counts = np.unique(records.key, return_inverse=True, return_counts=True)
    least, most = (np.full(len(counts), value, np.int64) for value in (np.iinfo(np.int32).max, -1))
    np.minimum.at(least, group, records.partition)
    np.maximum.at(most, group, records.partition)
    one: Mask = least[group] == most[group]
    return one


def _first(changes: Mapping[Kind, Hashes], sides: Mapping[Side, Records], limit: int) -> list[Difference]:
    """Return the first differences, in the order of the log."""
    found: list[tuple[int, Difference]] = []
    for kind, some in changes.items():
        if not len(some) or not limit:
            continue
        places: dict[np.uint64, dict[Side, Place]] = {}
        orders: dict[np.uint64, int] = {}
        for name, one in sides.items():
            at = np.flatnonzero(np.isin(one.change, some))
            at = at[np.argsort(one.order[at], kind="stable")][: 2 * limit]
            for index in at:
                change = one.change[index]
                orders.setdefault(change, int(one.order[index]))
                places.setdefault(change, {}).setdefault(name, (int(one.partition[index]), int(one.offset[index])))
        found += [(orders[change], Difference(kind, where)) for change, where in places.items()]
    return [one for _, one in sorted(found, key=lambda pair: pair[0])[:limit]]
