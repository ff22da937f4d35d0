"""What a consumer sees of each key in a topic, in which micro-batches may have been written more than once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message

PLACE = ("lsn", "txId", "gtid", "file", "pos", "row")
"""What of an event's ``source`` says where in the log it is, for any database."""
CLOCKS = ("ts_ms", "ts_us", "ts_ns")
"""When an event was made, which isn't the same when it is made again."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """A record of a key.

    Attributes:
        value: the envelope; None for a tombstone.
        op: its operation; empty for a tombstone.
    """

    value: dict[str, Any] | None
    op: str

    @property
    def place(self) -> tuple[object, ...]:
        """Where in the log it is."""
        assert self.value is not None
        return (self.op, *(self.value["source"].get(name) for name in PLACE))

    @property
    def content(self) -> str:
        """What must be the same in each copy."""
        assert self.value is not None
        return json.dumps({name: part for name, part in self.value.items() if name not in CLOCKS})


def records_by_key(messages: Iterable[Message]) -> dict[str, list[Record]]:
    """Return the records of each key in their order; a key's must all be in one partition."""
    found: dict[str, list[Record]] = defaultdict(list)
    partitions: dict[str, int | None] = {}
    for message in messages:
        key, value = message.key(), message.value()
        assert key is not None
        name = key.decode()
        assert partitions.setdefault(name, message.partition()) == message.partition(), name
        envelope = None if value is None else json.loads(value)
        found[name].append(Record(envelope, "" if envelope is None else envelope["op"]))
    return found


def rebuilt(records: Sequence[Record]) -> Row | None:
    """Return the row that a consumer has that applies a key's records as they come; None if it has none."""
    row: Row | None = None
    for record in records:
        if record.value is None or record.op == "d":
            row = None
        else:
            known = row or {}
            row = {
                name: known.get(name) if value == "__debezium_unavailable_value" else value
                for name, value in record.value["after"].items()
            }
    return row


def verify_order(records: Sequence[Record], most: int, version: str = "v") -> int:
    """Prove that a key's records go forward in the log, except where a micro-batch begins again.

    Where one begins again its records are repeated from there on without a gap. Only rows of a snapshot may be missing
    then: rows that have changed meanwhile are left out, since their changes follow. A delete is followed by its
    tombstone.

    Args:
        records: the key's.
        most: how often micro-batches may have begun again.
        version: a column that grows with every change of the key.

    Returns:
        How often they have.
    """
    order: dict[tuple[object, ...], int] = {}
    copies: dict[int, str] = {}
    operations: list[str] = []
    at, newest, rewinds = -1, -1, 0
    before: Record | None = None
    for record in records:
        if record.value is None:
            assert before is not None, records
            assert before.op == "d", (before, record)
            place = (*before.place, "tombstone")
        else:
            place = record.place
        index = order.setdefault(place, len(order))
        if index == len(operations):
            operations.append(record.op)
            if record.value is not None and record.value["after"] is not None:
                number = int(record.value["after"][version])
                assert number >= newest, (number, newest, record)
                newest = number
        if record.value is not None:
            assert copies.setdefault(index, record.content) == record.content, (copies[index], record.content)
        if index <= at:
            rewinds += 1
        else:
            assert set(operations[at + 1 : index]) <= {"r"}, (operations, at, index)
            assert before is None or before.op != "d" or record.value is None, (before, record)
        at, before = index, record
    assert before is None or before.op != "d", before
    assert set(operations[at + 1 :]) <= {"r"}, (operations, at)
    assert rewinds <= most, rewinds
    return rewinds
