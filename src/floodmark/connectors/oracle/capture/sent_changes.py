"""Changes of committed transactions that a server sends, on their way into segments."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from floodmark.connectors.oracle.capture.cutting import Cutter, segments_of
from floodmark.connectors.oracle.capture.left_out import leave_out
from floodmark.connectors.oracle.capture.stream import CaptureState
from floodmark.connectors.oracle.ddl.changes import Kind
from floodmark.connectors.oracle.decode.segment import Part
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import Position

_NUMBER = "SEQUENCE#"
_GONE_CURE = (
    "Ways out: leave the table out; read it again later (execute-snapshot) with "
    "event.processing.failure.handling.mode=warn, which tells of the gap and goes on."
)


@dataclass(frozen=True)
class SentChanges:
    """Consecutive changes of a committed transaction, or one statement about tables.

    Attributes:
        commit: the position of the commit, with the number 0.
        seconds: when it was committed, since the epoch, as far as the server says.
        rows: the changes of captured tables, with the columns of the view, numbered in ``SEQUENCE#``; there may be
            none.
        is_statement: whether it is a statement.
        ends: whether nothing else of the transaction follows.
    """

    commit: Position
    seconds: int
    rows: pa.Table
    is_statement: bool
    ends: bool


class Taker:
    """Takes changes over into segments.

    Args:
        options: the source's options.
        state: what the source keeps.
        cutter: cuts the segments.
        delivered: the position that was opened.
    """

    def __init__(self, options: OracleOptions, state: CaptureState, cutter: Cutter, delivered: Position) -> None:
        self._options = options
        self._state = state
        self._cutter = cutter
        self._delivered = delivered

    def undelivered(self, found: SentChanges) -> pa.Table:
        """Return the changes that come behind the position that was opened."""
        place, delivered = found.commit, self._delivered
        if place.commit != delivered.commit:
            return found.rows if place.commit > delivered.commit else found.rows.slice(0, 0)
        numbers = found.rows[_NUMBER].to_numpy()
        return found.rows.slice(int(np.searchsorted(numbers, delivered.number, side="right")))

    def add(self, found: SentChanges, rows: pa.Table) -> list[tuple[Part, pa.Table]]:
        """Add changes of rows to segments; return the parts that they are added in."""
        added = []
        tables, missing = self._state.schema.tables_of(rows, found.commit.scn)
        for name in missing:
            what = f"The log has changes of {name}, which the dictionary doesn't have any more."
            leave_out(self._options, self._state.gaps, found.commit.scn, what, _GONE_CURE)
        first_scn, first_seconds = rows["SCN"][0].as_py(), rows["TIMESTAMP"][0].value
        for begin, end in segments_of(rows, self._options.segment_bytes):
            some = rows.slice(begin, end - begin)
            ends = found.ends and end == len(rows)
            done = some[_NUMBER][0].as_py() - 1
            part = Part(
                *(found.commit, found.seconds, first_scn, first_seconds, done, len(some), ends, last_number(some))
            )
            self._cutter.add(part, some, tables)
            added.append((part, some))
        return added

    def follow(self, found: SentChanges, rows: pa.Table, named: pa.Table, lcr: str | None = None) -> None:
        """Follow a statement about tables.

        Args:
            found: the statement.
            rows: its row.
            named: the same, with the place by which the schema history names it.
            lcr: its position as XStream names it; None: it isn't XStream's.
        """
        place, number = found.commit, last_number(rows)
        for kind, logged in self._state.schema.follow(named, place.scn):
            part = Part(place, found.seconds, place.scn, found.seconds, number - 1, 1, found.ends, number)
            if kind is Kind.TRUNCATE:
                if not self._options.skips("t"):
                    self._cutter.add(part, rows, self._state.schema.tables)
            elif logged.changes and self._options.include_schema_changes:
                own = replace(logged, thread=0) if lcr is None else replace(logged, thread=0, lcr=lcr)
                self._cutter.add(part.without(1), rows.slice(0, 0), {}, own)


def last_number(rows: pa.Table) -> int:
    """Return the number of the last change."""
    return int(rows[_NUMBER][-1].as_py())
