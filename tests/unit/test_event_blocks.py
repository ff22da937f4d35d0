"""Blocks of events: no event is lost, those of a key stay together and come in their order."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.changes.event_blocks import blocks_of, in_order, kept_columns, part_of
from floodmark.events.columns import EVENT_SCHEMA

Event = tuple[str, str | None, str | None]
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["t.a", "t.b", "täble"]),
        st.one_of(st.none(), st.text(max_size=3), st.sampled_from(["x" * 300 + "1", "y" * 300 + "1", "x" * 300 + "2"])),
        st.one_of(st.none(), st.text(max_size=3)),
    ),
    max_size=30,
)


def batch_of(events: list[Event], positions: list[int], begin: int = 0) -> pa.RecordBatch:
    """Return events as a batch whose arrays may begin in the middle of their buffers."""
    rows = [
        {"topic": topic, "key": key, "value": value, "position": f"{position:08x}"}
        for (topic, key, value), position in zip(events, positions, strict=True)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=EVENT_SCHEMA)[begin:]


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENTS, max_size=4), st.integers(1, 5), st.randoms(use_true_random=False), st.integers(0, 2))
def test_a_part_has_all_events_of_its_keys_in_their_order(
    batches: list[list[Event]], parts: int, chance: st.DrawFn, begin: int
) -> None:
    total = sum(map(len, batches))
    order = list(range(total))
    # Positions of several batches overlap, and those within a batch are in any order.
    chance.shuffle(order)  # type: ignore[attr-defined]
    given_events: list[tuple[str, ...]] = []
    by_part: dict[int, list[tuple[str, str, pa.Buffer]]] = defaultdict(list)
    counted = at = 0
    for events in batches:
        batch = batch_of(events, order[at : at + len(events)], begin)
        at += len(events)
        given_events += [
            tuple(map(str, row.values())) for row in batch.select(kept_columns(batch.schema).names).to_pylist()
        ]
        for row in blocks_of(batch, parts).to_pylist():
            by_part[row["part"]].append((row["first"], row["last"], pa.py_buffer(row["events"])))
            counted += row["count"]
    found: list[tuple[str, ...]] = []
    parts_of_keys: dict[str, set[int]] = defaultdict(set)
    for part, blocks in by_part.items():
        rows = [row for table in in_order(sorted(blocks, key=lambda one: one[0])) for row in table.to_pylist()]
        positions = [row["position"] for row in rows]
        assert positions == sorted(positions)
        for row in rows:
            parts_of_keys[row["topic"] if row["key"] is None else row["key"]].add(part)
        found += [tuple(map(str, row.values())) for row in rows]
    assert sorted(found) == sorted(given_events)
    assert counted == len(given_events)
    assert all(len(of_key) == 1 for of_key in parts_of_keys.values())


def test_keys_are_spread_over_the_parts() -> None:
    schema = '{"schema":' + "x" * 1000 + ',"payload":'
    for prefix in ("", schema):
        keys = [f'{prefix}{{"id":{number}}}' for number in range(4000)]
        rows = pa.table({"topic": ["t"] * len(keys), "key": keys})
        counts = [int((part_of(rows, 4) == part).sum()) for part in range(4)]
        assert min(counts) > 800, counts


def test_only_a_key_decides_on_its_part() -> None:
    keys = ["", "a", "ab" * 4, "ü" * 5, "long" * 90, "x" * 255, "y" * 257]
    alone = [int(part_of(pa.table({"topic": ["t"], "key": [key]}), 1000)[0]) for key in keys]
    assert len(set(alone)) == len(keys)
    together = pa.table({"topic": ["t"] * len(keys), "key": keys})
    assert part_of(together, 1000).tolist() == alone
    # As a slice, whose keys have others before and after them.
    assert part_of(pa.concat_tables([together] * 3).combine_chunks()[5:12], 1000).tolist() == alone[5:] + alone[:5]


def test_blocks_that_follow_one_another_are_not_held_back() -> None:
    events: list[Event] = [("t", str(number), "v") for number in range(6)]
    first, second = batch_of(events, [0, 1, 2, 3, 4, 5])[:3], batch_of(events, [0, 1, 2, 3, 4, 5])[3:]
    blocks = [row for batch in (first, second) for row in blocks_of(batch, 1).to_pylist()]
    taken = iter([(row["first"], row["last"], pa.py_buffer(row["events"])) for row in blocks])
    sizes = [table.num_rows for table in in_order(taken)]
    assert sizes == [3, 3]
