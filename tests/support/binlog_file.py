"""Row events of a binlog file, found by a plain loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.values.layouts import Layout, parse_layouts
from tests.support.row_columns import RowColumns, row_columns

TABLE_MAP = 19
KINDS = {
    23: "write",
    24: "update",
    25: "delete",
    30: "write",
    31: "update",
    32: "delete",
    39: "partial",
}
MAGIC_BYTES, HEADER_BYTES, CHECKSUM_BYTES = 4, 19, 4


@dataclass
class RowEvents:
    """Events of one kind and table: where their rows are, and which columns they hold."""

    kind: str
    layouts: tuple[Layout, ...]
    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    present: list[bytes] = field(default_factory=list)
    present_after: list[bytes] = field(default_factory=list)

    def columns(self, buf: np.ndarray, columns: tuple[Column, ...], hidden: bool = False) -> RowColumns:
        """Return the rows as raw columns."""
        return row_columns(
            buf,
            np.array(self.begins),
            np.array(self.ends),
            self.kind,
            columns,
            self.layouts,
            _matrix(self.present),
            _matrix(self.present_after) if self.present_after else None,
            hidden,
        )


def _matrix(bitmaps: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(bitmaps), np.uint8).reshape(len(bitmaps), -1)


def row_events(path: Path, table: str) -> tuple[np.ndarray, list[RowEvents]]:
    """Return a binlog file, and its row events of a table, those of one kind together."""
    data = path.read_bytes()
    found: dict[tuple[str, tuple[Layout, ...]], RowEvents] = {}
    maps: dict[int, tuple[str, tuple[Layout, ...]]] = {}
    for code, at, end in _events(data):
        if code == TABLE_MAP:
            number, name, layouts = _table_map(data, at)
            maps[number] = (name, layouts)
        elif code in KINDS:
            name, layouts = maps[int.from_bytes(data[at : at + 6], "little")]
            if name == table:
                kind = KINDS[code]
                events = found.setdefault((kind, layouts), RowEvents(kind, layouts))
                _add(events, data, code, at, end)
    return np.frombuffer(data, np.uint8), list(found.values())


def _events(data: bytes) -> Iterator[tuple[int, int, int]]:
    at = MAGIC_BYTES
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        yield data[at + 4], at + HEADER_BYTES, at + size - CHECKSUM_BYTES
        at += size


def _table_map(data: bytes, at: int) -> tuple[int, str, tuple[Layout, ...]]:
    number = int.from_bytes(data[at : at + 6], "little")
    at += 8
    at += data[at] + 2
    size = data[at]
    name = data[at + 1 : at + 1 + size].decode()
    count, at = _packed(data, at + size + 2)
    types = data[at : at + count]
    size, at = _packed(data, at + count)
    return number, name, parse_layouts(types, data[at : at + size])


def _packed(data: bytes, at: int) -> tuple[int, int]:
    if data[at] < 251:
        return data[at], at + 1
    assert data[at] == 252
    return int.from_bytes(data[at + 1 : at + 3], "little"), at + 3


def _add(events: RowEvents, data: bytes, code: int, at: int, end: int) -> None:
    at += 8
    if code >= 30:
        at += int.from_bytes(data[at : at + 2], "little")
    count, at = _packed(data, at)
    size = (count + 7) // 8
    events.present.append(data[at : at + size])
    at += size
    if events.kind in ("update", "partial"):
        events.present_after.append(data[at : at + size])
        at += size
    events.begins.append(at)
    events.ends.append(end)
