"""What a checkpoint holds, with any part of it missing or replaced: it is read, or refused with the ways out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from floodmark.capture.gaps import Gap
from floodmark.connectors.postgres.continuity.bookmark import Commit, LogBookmark, Piece
from floodmark.connectors.postgres.continuity.published import Seen
from floodmark.errors import CheckpointError
from floodmark.json_data import Json
from floodmark.notifications.records import Notification, pack_notifications, unpack_notifications
from floodmark.packing import pack, pack_names, unpack, unpack_names
from floodmark.signals.records import Condition, ExecuteSnapshot

ORDERS = Notification("1", "STARTED", "Initial Snapshot", {"connector_name": "shop", "tables": "a.b"}, 7)
LONG = Notification("2", "STARTED", "Initial Snapshot", {"connector_name": "shop", "tables": "a.b," * 5000}, 8)
ACTION = ExecuteSnapshot("s", ("a.b",), True, (Condition("a.b", "id > 5"),), "code", True)
BOOKMARK = LogBookmark(5, 2, 1 << 33, Commit(1 << 34, 99), Piece(1 << 35, 512, 7), (1 << 34, 99))
SEEN = Seen(12, (13, 14), (15,))
GAP = Gap("0001", "0002", "The slot was moved.", "offset.mismatch.strategy=trust_slot")
NAMES = tuple(f"public.t{number}" for number in range(200))

# What is written, what reads it, and what it reads.
STORED: dict[str, tuple[Json, Callable[[Json], object], object]] = {
    "gap": (GAP.to_json(), Gap.from_json, GAP),
    "publication": (SEEN.to_json(), Seen.from_json, SEEN),
    "bookmark": (BOOKMARK.to_json(), LogBookmark.from_json, BOOKMARK),
    "request": (ACTION.to_json(), ExecuteSnapshot.from_json, ACTION),
    "notification": (ORDERS.to_json(), Notification.from_json, ORDERS),
    "notifications": (pack_notifications([ORDERS]), unpack_notifications, (ORDERS,)),
    "names": (pack_names(NAMES[:3]), unpack_names, NAMES[:3]),
}
OTHERS: tuple[Json, ...] = (None, True, 5, -1, 0.5, "", "x", [], ["x"], [1], {}, {"x": 1})


def variants(data: Json) -> Iterator[Json]:
    """Yield the data with each of its parts missing, and replaced by data of each kind."""
    yield from OTHERS
    if isinstance(data, dict):
        for name, value in data.items():
            yield {key: one for key, one in data.items() if key != name}
            yield from ({**data, name: other} for other in variants(value))
    elif isinstance(data, list):
        for at, value in enumerate(data):
            yield [*data[:at], *data[at + 1 :]]
            yield from ([*data[:at], other, *data[at + 1 :]] for other in variants(value))


def refusals(read: Callable[[Json], object], data: Iterator[Json]) -> list[str]:
    """Return the messages of what is refused; anything but a refusal of the checkpoint fails the test."""
    found = []
    for one in data:
        try:
            read(one)
        except CheckpointError as exc:
            found.append(str(exc))
    return found


@pytest.mark.parametrize("name", STORED)
def test_damaged_data_is_refused_with_the_ways_out(name: str) -> None:
    written, read, expected = STORED[name]
    assert read(json.loads(json.dumps(written))) == expected
    found = refusals(read, variants(written))
    assert len(found) > 10
    for message in found:
        assert message.startswith("The checkpoint is damaged: ")
        assert message.endswith("or start the query with a new checkpoint, which takes a new snapshot.")


def test_packed_notifications() -> None:
    written = pack_notifications([ORDERS, LONG])
    assert isinstance(written, str)
    assert unpack_notifications(written) == (ORDERS, LONG)
    found = refusals(lambda data: unpack_notifications(pack(data)), variants(unpack(written)))
    assert len(found) > 50


@pytest.mark.parametrize("written", [pack_names(NAMES), pack_notifications([LONG])])
def test_compressed_text_is_refused_wherever_it_is_cut_or_changed(written: str) -> None:
    read = unpack_names if written == pack_names(NAMES) else unpack_notifications
    cut = [written[:at] for at in range(0, len(written), 3)]
    changed = [f"{written[:at]}!{written[at + 1 :]}" for at in range(0, len(written), 7) if written[at] != "!"]
    assert len(refusals(read, iter(cut))) == len(cut)
    assert len(refusals(read, iter(changed))) > len(changed) // 2


def test_a_message_names_the_part_that_is_wrong() -> None:
    with pytest.raises(CheckpointError, match="A gap has no 'upto' that is a text"):
        Gap.from_json({**GAP.to_json(), "upto": 5})
    with pytest.raises(CheckpointError, match="'additional_data' has no 'tables' that is a text"):
        Notification.from_json({**ORDERS.to_json(), "additional_data": {"tables": None}})
    with pytest.raises(CheckpointError, match="'0-1' is not an LSN"):
        LogBookmark.from_json({**BOOKMARK.to_json(), "began": "0-1"})


def test_a_bookmark_without_a_timeline_is_of_an_earlier_version() -> None:
    assert LogBookmark.from_json({"publication": None}) is None
