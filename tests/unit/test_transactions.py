"""The transaction topic: counts in the order of Java's hash map."""

from __future__ import annotations

import numpy as np

from floodmark.events.transactions import hash_map_order


def test_texts_hash_as_in_java() -> None:
    # "hello".hashCode() is 99162322, "" is 0, "Aa" and "BB" collide at 2112.
    names = ["hello", "", "BB", "Aa"]
    order = hash_map_order(np.zeros(4, np.int64), np.arange(4), names)
    # Buckets of 16: 99162322 ^ (99162322 >>> 16) ends in 11 (b), 0, 2112 in 0; equal ones stay in their order.
    assert [names[i] for i in order.tolist()] == ["", "BB", "Aa", "hello"]


def test_groups_stay_apart_and_a_large_one_has_more_buckets() -> None:
    names = [f"public.table_{number}" for number in range(40)]
    group = np.array([0] * 12 + [1] * 13 + [3] * 40)
    name = np.concatenate([np.arange(12), np.arange(13), np.arange(40)])
    order = hash_map_order(group, name, names)
    assert (np.diff(group[order]) >= 0).all()
    small, middle = order[:12], order[12:25]
    assert sorted(name[small].tolist()) == list(range(12))
    assert sorted(name[middle].tolist()) == list(range(13))


def test_no_entries() -> None:
    none = np.empty(0, np.int64)
    assert hash_map_order(none, none, []).tolist() == []
