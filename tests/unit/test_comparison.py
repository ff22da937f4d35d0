"""Differences between what Debezium and Floodmark have written: planted ones are found, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from floodmark.comparison.differences import Covered, Differences, Kind, compare, settled
from floodmark.comparison.events import shown
from floodmark.comparison.positions import CONNECTORS, UNKNOWN
from floodmark.comparison.records import Reading, Records
from floodmark.errors import ComparisonError
from tests.conformance.golden import load

Record = tuple[str | None, str | None]
WHO = {
    "theirs": {"version": "3.6.3.Final", "name": "dbserver", "ts": 1700000000000},
    "ours": {"version": "1.0", "name": "spark", "ts": 1800000000000},
}


def event(
    side: str, number: int, key: int | None = 1, op: str = "u", v: Any = 0, schemas: bool = False, **source: Any
) -> Record:
    who = WHO[side]
    block = {
        "version": who["version"],
        "connector": "postgresql",
        "name": who["name"],
        "snapshot": "false",
        "sequence": f'["{number - 1}","{number}"]',
        "txId": number,
        "lsn": number,
        **source,
    }
    value: Any = {"before": None, "after": {"id": key, "v": v}, "source": block, "op": op}
    value |= {f"ts_{unit}": who["ts"] for unit in ("ms", "us", "ns")}
    found: Any = {"id": key}
    if schemas:
        value = {"schema": {"type": "struct", "name": f"{who['name']}.public.t.Envelope"}, "payload": value}
        found = {"schema": {"type": "struct", "name": f"{who['name']}.public.t.Key"}, "payload": found}
    text, keyed = (json.dumps(one, separators=(",", ":")) for one in (value, found))
    return None if key is None else keyed, text


def tombstone(key: int = 1) -> Record:
    return json.dumps({"id": key}, separators=(",", ":")), None


def records(given: Sequence[Record], partitions: Sequence[int] | None = None, size: int = 3) -> Records:
    """Return records of a topic, read in batches of a size."""
    reading, parts = Reading("t"), []
    for first in range(0, len(given), size):
        some = given[first : first + size]
        keys, values = (
            pa.array([None if one is None else one.encode() for one in column], pa.binary())
            for column in zip(*some, strict=True)
        )
        where = np.zeros(len(some), np.int32)
        if partitions is not None:
            where = np.array(partitions[first : first + size], np.int32)
        parts.append(reading.read(keys, values, where, np.arange(first, first + len(some))))
    return Records.concat(parts) if parts else reading.none()


def between(theirs: Sequence[Record], ours: Sequence[Record], **more: Any) -> Differences:
    """Compare what lies between a first and a last transaction."""
    ends = {side: (event(side, 1, 0), event(side, 1_000_000, 0)) for side in WHO}
    left, right = (
        records([ends[side][0], *some, ends[side][1]]) for side, some in (("theirs", theirs), ("ours", ours))
    )
    ((left,), (right,)) = settled([left], [right])
    return compare(left, right, Covered.of([left], [right]), more.get("limit", 20))


def counted(found: Differences) -> dict[Kind, int]:
    return {kind: count for kind, count in found.counts.items() if count}


def stream(side: str, **more: Any) -> list[Record]:
    return [event(side, 10 * number, number % 4, "cud"[number % 3], number, **more) for number in range(1, 20)]


@pytest.mark.parametrize("schemas", [False, True])
def test_what_may_differ_is_no_difference(schemas: bool) -> None:
    ours = stream("ours", schemas=schemas)
    # What comes again, as after a kill, is none either.
    found = between(stream("theirs", schemas=schemas), [*ours[:7], *ours[3:]])
    assert found.equal
    assert (found.compared, found.duplicates) == (19, {"theirs": 0, "ours": 4})
    assert found.outside == {"theirs": 2, "ours": 2}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda ours: ours[:5] + ours[6:], {"missing": 1}),
        (lambda ours: [*ours, event("ours", 777, 9)], {"additional": 1}),
        (lambda ours: [*ours[:5], event("ours", 60, 2, "c", "other"), *ours[6:]], {"different": 1}),
        (lambda ours: [*ours[:5], event("ours", 60, 2, "c", 6.0), *ours[6:]], {"different": 1}),
        # Another place of the same change.
        (lambda ours: [*ours[:5], event("ours", 61, 2, "c", 6), *ours[6:]], {"missing": 1, "additional": 1}),
        # Twice, and not the same.
        (lambda ours: [*ours[:6], event("ours", 60, 2, "c", "other"), *ours[6:]], {"different": 1}),
        (lambda ours: [ours[4], *ours[1:4], ours[0], *ours[5:]], {"order": 1}),
        # Of different keys there is no order.
        (lambda ours: [ours[1], ours[0], *ours[2:]], {}),
        (lambda ours: [*ours[:3], tombstone(3), *ours[3:]], {"different": 1}),
        (lambda ours: [*ours, event("ours", 500, 3, "r", "read")], {}),
    ],
)
def test_planted_differences(change: Any, expected: dict[Kind, int]) -> None:
    found = between(stream("theirs"), change(stream("ours")))
    assert counted(found) == expected
    assert len(found.found) == sum(expected.values())
    assert {one.kind for one in found.found} == set(expected)


def test_what_only_one_side_covers_is_not_compared() -> None:
    """Transactions at the ends may be there in part."""
    theirs, ours = records(stream("theirs")), records(stream("ours")[4:15])
    covered = Covered.of([theirs], [ours])
    found = compare(theirs, ours, covered, 5)
    assert found.equal
    assert found.compared == 9
    assert found.outside == {"theirs": 10, "ours": 2}
    nothing = records([])
    assert compare(theirs, nothing, Covered.of([theirs], [nothing]), 5).compared == 0


def test_a_topic_without_events_lacks_what_the_other_has() -> None:
    """What is covered follows from all topics of a side."""
    theirs, ours, other = records(stream("theirs")), records(stream("ours")), records([])
    assert counted(compare(theirs, other, Covered.of([theirs], [ours, other]), 3)) == {"missing": 17}


def test_a_key_in_several_partitions_has_no_order() -> None:
    theirs = records(stream("theirs"))
    moved = stream("ours")
    moved[4], moved[8] = moved[8], moved[4]
    one = records(moved)
    covered = Covered.of([theirs], [one])
    assert counted(compare(theirs, one, covered, 3)) == {"order": 1}
    several = records(moved, [number // 4 % 2 for number in range(len(moved))])
    assert counted(compare(theirs, several, covered, 3)) == {}


def test_rows_without_a_key() -> None:
    theirs, ours = ([event(side, 10, None, "c", v) for v in range(5)] for side in WHO)
    assert between(theirs, ours[::-1]).equal
    assert counted(between(theirs, ours[:3])) == {"different": 1}


def test_what_is_shown_of_differences() -> None:
    theirs = [event("theirs", 10, 7, "u", {"a": [1], "b": 'x"\\n'}), event("theirs", 20, 8, "d", 1), tombstone(8)]
    ours = [event("ours", 10, 7, "u", {"a": [2], "c": None}), event("ours", 20, 8, "d", 1)]
    texts = {"theirs": [event("theirs", 1, 0), *theirs], "ours": [event("ours", 1, 0), *ours]}
    found = between(theirs, ours)
    made = [
        shown(one, {side: texts[side][offset] for side, (_, offset) in one.places.items()}, CONNECTORS["postgresql"])
        for one in found.found
    ]
    assert [(one.kind, one.key, one.op, one.position, one.form) for one in made] == [
        ("different", '{"id":7}', "u", "lsn 10, txId 10", False),
        ("different", '{"id":8}', "d", "lsn 20, txId 20", True),
    ]
    assert [(one.path, one.theirs, one.ours) for one in made[0].fields] == [
        ("after.v.a", "[1]", "[2]"),
        ("after.v.b", json.dumps('x"\\n'), None),
        ("after.v.c", None, "null"),
    ]


@pytest.mark.parametrize(
    ("connector", "places"),
    [
        ("postgresql", [{"sequence": '["8","10"]', "lsn": 10}, {"sequence": '["9","7"]', "lsn": 7}]),
        ("mysql", [{"file": "binlog.000009", "pos": 900, "row": 1}, {"file": "binlog.000010", "pos": 4, "row": 0}]),
        ("oracle", [{"scn": "9", "commit_scn": "10"}, {"scn": "7", "commit_scn": "11"}]),
        ("oracle", [{"scn": "9", "commit_scn": None}, {"scn": "7", "commit_scn": "11"}]),
    ],
)
def test_the_order_of_transactions(connector: str, places: list[dict[str, Any]]) -> None:
    positions = CONNECTORS[connector]
    first, second = positions.order(pa.Table.from_pylist(places, schema=positions.schema))
    assert UNKNOWN < first < second
    assert positions.order(pa.Table.from_pylist([{}], schema=positions.schema)) == [UNKNOWN]


def test_transactions_before_which_a_connector_knew_no_other() -> None:
    """Each side has some of these, at its starts; rows of a transaction begin before the commit of the one before."""

    def made(side: str, unknown: Sequence[int]) -> Records:
        given = []
        for number in range(1, 20):
            before = "null" if number in unknown else f'"{10 * number - 5}"'
            given += [
                event(side, 10 * number - 9 + row, row, sequence=f'[{before},"1"]', txId=number) for row in (0, 8)
            ]
        return records(given)

    (theirs,), (ours,) = settled([made("theirs", [1, 2, 9])], [made("ours", [1, 3, 4, 9])])
    found = compare(theirs, ours, Covered.of([theirs], [ours]), 5)
    assert found.equal
    assert found.compared == 2 * 17
    (left,), (right,) = settled([theirs], [ours.take(ours.transaction != 9)])
    assert counted(compare(left, right, Covered.of([left], [right]), 5)) == {"missing": 2}


@pytest.mark.parametrize(
    ("case", "connector"), [("workload", "postgres"), ("workload", "mysql"), ("workload", "mariadb")]
)
def test_recorded_events_equal_themselves(case: str, connector: str) -> None:
    topics: dict[str, list[Record]] = {}
    for one in load(case, connector):
        topics.setdefault(one.topic, []).append((one.key, one.value))
    every, _ = settled([records(given, size=50) for given in topics.values()], [])
    read = dict(zip(topics, every, strict=True))
    covered = Covered.of([*read.values()], [*read.values()])
    found = [compare(one, one, covered, 5) for one in read.values()]
    assert all(one.equal for one in found)
    assert sum(one.compared for one in found) > 100
    # Each change that is left out is noticed.
    some = max(read.values(), key=lambda one: int(covered.holds(one).sum()))
    for lost in np.flatnonzero(covered.holds(some))[::20]:
        # Where it is a delete, its tombstone follows another event now.
        assert not compare(some, some.take(np.arange(len(some.order)) != lost), covered, 5).equal


@pytest.mark.parametrize(
    "value",
    ['{"source":{"version":"1","connector":"postgresql","name":"p","lsn":"x"}}', "{", "{}{}", b"\xff\xfe"],
)
def test_records_that_are_not_events_as_json(value: str | bytes) -> None:
    content = value if isinstance(value, bytes) else value.encode()
    events = [(None, event("ours", 5)[1]), (None, "x")]
    keys = pa.array([None, None], pa.binary())
    values = pa.array([str(events[0][1]).encode(), content], pa.binary())
    with pytest.raises(ComparisonError, match="Records of the topic 't' are not JSON"):
        Reading("t").read(keys, values, np.zeros(2, np.int32), np.arange(2))


def test_other_records_are_counted() -> None:
    others = [(None, "plain text"), (None, "[1"), (None, "{}"), (None, '{"op":"c"}')]
    assert between(stream("theirs"), [*stream("ours"), *others]).others == {"theirs": 0, "ours": 4}


def test_other_connectors() -> None:
    with pytest.raises(ComparisonError, match="events of the connector 'mongodb'"):
        records([event("theirs", 1, connector="mongodb")])
