"""Splits a table into ranges of its rows' ROWIDs, which tasks read in parallel.

The bounds come from a sample, so they only decide how large the ranges are. Every row is in exactly one range: the
first has no lower bound, the last no upper one, and each begins where the one before it ends. A ROWID doesn't change
unless a row is moved to another segment or partition, which the read point doesn't see.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from floodmark.connectors.oracle.server.connection import Connection, run
from floodmark.connectors.schema_history.files import HistoryFiles
from floodmark.errors import FloodmarkError
from floodmark.logger import get_logger

log = get_logger(__name__)

SAMPLED, LEAST_ROWS = 32, 4
"""How many sampled rows make a range, and how many rows it has at least."""
MOST_RANGES = 4096
LEAST_PERCENT, MOST_PERCENT = 0.000001, 99.9


@dataclass(frozen=True)
class Ranges:
    """The ranges of a table.

    Attributes:
        bounds: where all but the first one begin, ascending.
    """

    bounds: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.bounds) + 1

    @property
    def digest(self) -> str:
        """A text that differs for other ranges."""
        return hashlib.sha256("".join(self.bounds).encode()).hexdigest()[:16] if self.bounds else ""

    def condition(self, first: int, last: int) -> tuple[str, list[str]]:
        """Return the condition of the rows in the ranges ``[first, last)``, and its binds; empty: all rows."""
        parts, binds = [], []
        if first > 0:
            binds.append(self.bounds[first - 1])
            parts.append(f"ROWID >= CHARTOROWID(:{len(binds)})")
        if last < self.count:
            binds.append(self.bounds[last - 1])
            parts.append(f"ROWID < CHARTOROWID(:{len(binds)})")
        return " AND ".join(parts), binds


class RowRanges:
    """The ranges of all tables: they stay the same as long as a snapshot may go on.

    Args:
        files: where they are stored.
        chunk_bytes: the size of a range.
    """

    def __init__(self, files: HistoryFiles, chunk_bytes: int) -> None:
        self._files = files
        self._chunk_bytes = chunk_bytes
        self._known: dict[str, Ranges] = {}

    def of(self, conn: Connection, table: str, identity: str, size: int, rows: int) -> Ranges:
        """Return a table's ranges.

        Args:
            conn: the connection.
            table: the table's name for SQL.
            identity: what tells the table from others, and from itself after it was altered.
            size: its size in bytes, roughly.
            rows: how many rows it has, roughly.
        """
        name = f"{hashlib.sha256(f'{identity} {self._chunk_bytes}'.encode()).hexdigest()[:32]}.ranges"
        if name not in self._known:
            self._known[name] = self._stored(name) or self._sampled(conn, table, name, size, rows)
        return self._known[name]

    def _stored(self, name: str) -> Ranges | None:
        try:
            (line,) = self._files.read(name)
        except (OSError, ValueError):
            return None
        bounds = json.loads(line)
        return Ranges(tuple(str(one) for one in bounds))

    def _sampled(self, conn: Connection, table: str, name: str, size: int, rows: int) -> Ranges:
        count = min(size // self._chunk_bytes, rows // LEAST_ROWS, MOST_RANGES)
        if count < 2:
            return Ranges()
        percent = min(max(100 * SAMPLED * count / rows, LEAST_PERCENT), MOST_PERCENT)
        query = f"SELECT ROWIDTOCHAR(ROWID) FROM {table} SAMPLE ({percent:.6f}) ORDER BY ROWID"
        try:
            found = [str(row[0]) for row in run(conn, query, f"sampling {table}")]
        except FloodmarkError as exc:
            # Some tables can't be sampled; then they are read as a whole.
            log.info("table_is_not_split", table=table, reason=str(exc))
            return Ranges()
        ranges = Ranges(_evenly(found, count))
        self._files.write(name, [json.dumps(list(ranges.bounds)).encode()])
        return ranges


def _evenly(found: Sequence[str], count: int) -> tuple[str, ...]:
    """Return up to ``count - 1`` of sorted ROWIDs, in equal distances."""
    step = max(len(found) / count, 1)
    places = {int(step * number) for number in range(1, count)}
    return tuple(dict.fromkeys(found[place] for place in sorted(places) if place < len(found)))
