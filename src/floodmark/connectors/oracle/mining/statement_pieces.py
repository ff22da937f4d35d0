"""Puts statements together that ``V$LOGMNR_CONTENTS`` has cut: a row with ``CSF`` = 1 is followed by the rest.

Oracle's documentation of the view: all rows of a statement have the same change number and record; the last one has 0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_STATEMENT, _CONTINUES = "SQL_REDO", "CSF"


class StatementPieces:
    """Puts the statements of consecutive rows together, also of those that come later."""

    def __init__(self) -> None:
        self._begun: pa.Table | None = None

    def whole(self, rows: pa.Table) -> pa.Table:
        """Return rows, one for each whole statement: with the columns of its first row, and all of its text.

        What isn't whole yet is kept for the next call.

        Args:
            rows: in the view's order.
        """
        if self._begun is not None:
            rows = pa.concat_tables([self._begun, rows])
            self._begun = None
        continues = rows[_CONTINUES].to_numpy() != 0
        if not continues.any():
            return rows
        ends = np.flatnonzero(~continues)
        whole = int(ends[-1]) + 1 if len(ends) else 0
        if whole < len(rows):
            self._begun = rows.slice(whole)
            rows, continues = rows.slice(0, whole), continues[:whole]
        # A statement begins behind one that is whole.
        begins = np.concatenate([[True], ~continues[:-1]])[:whole]
        first = np.flatnonzero(begins)
        texts = rows[_STATEMENT].combine_chunks().fill_null("")
        bounds = np.append(first, whole).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(bounds), texts)
        joined = pc.binary_join(lists, "")
        taken = rows.take(pa.array(first))
        # A statement of one piece may be null.
        single = np.diff(bounds) == 1
        kept = pc.if_else(pa.array(single), taken[_STATEMENT].combine_chunks(), joined)
        return taken.set_column(taken.schema.get_field_index(_STATEMENT), _STATEMENT, kept)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is kept."""
        return self._begun is None
