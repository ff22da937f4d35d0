"""Reads many statements of SQL_REDO at once: their values by column, as they stand in the text.

The text is searched for quotes, which divide it into literals and gaps. Many statements of a table have the same gaps
(`Templates`). The gaps of the others are numbered, and each is scanned once for each state (`Steps`). What they hold is
then known for all statements together, as places in the text, so that values are cut out of it column by column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.connectors.oracle.redo.gaps import Quotes, gaps_between, quotes_in, split
from floodmark.connectors.oracle.redo.lookup import Lookup
from floodmark.connectors.oracle.redo.scanner import Form
from floodmark.connectors.oracle.redo.steps import Numbers, Steps
from floodmark.connectors.oracle.redo.templates import Templates, keep, matching
from floodmark.connectors.oracle.redo.values import Statements
from floodmark.errors import DecodeError

_ALIKE = 64
"""From how many statements on it is worth while to look for a template."""
_FEW = 8
"""So many of the first `_ALIKE` statements at most have the first one's template where it isn't worth while."""


class StatementReader:
    """Reads statements of one table.

    Args:
        columns: the names of the table's columns, in their order.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._count = len(columns)
        self._steps = Steps(columns)
        self._templates = Templates(self._steps)
        # A quote in a name isn't one of a literal.
        self._one_by_one = any("'" in name for name in columns)

    def read(self, statements: pa.StringArray) -> Statements:
        """Return the values of statements, none of which is null."""
        rows = len(statements)
        _, offsets, text = statements.buffers()
        bounds = np.frombuffer(offsets, np.int32, rows + 1, statements.offset * 4)
        found = Statements.without_values(self._count, bounds, text if text is not None else pa.py_buffer(b""))
        if not rows:
            return found
        content = np.frombuffer(found.text, np.uint8)
        alone = np.arange(rows) if self._one_by_one else self._read_together(found, content, bounds)
        for row in alone.tolist():
            self._read_alone(found, row, int(bounds[row]), content[bounds[row] : bounds[row + 1]].tobytes())
        return found

    def _read_together(self, found: Statements, content: NDArray[np.uint8], bounds: NDArray[np.int32]) -> Numbers:
        """Read statements whose quotes are those of literals; return the numbers of others, and of those that fail."""
        quotes = quotes_in(content, bounds)
        left = quotes.counts % 2 == 0
        failed = ~left
        if left.any():
            for count, rows in enumerate(np.bincount(quotes.counts[left]).tolist()):
                if rows >= _ALIKE:
                    self._read_alike(found, content, bounds, quotes, left, count)
        rest = np.flatnonzero(left)
        if len(rest):
            gaps = gaps_between(quotes.of(left), bounds[rest], bounds[rest + 1], found.text)
            failed[Lookup(self._steps, gaps, found, rest).read()] = True
        return np.flatnonzero(failed)

    def _read_alike(
        self,
        found: Statements,
        content: NDArray[np.uint8],
        bounds: NDArray[np.int32],
        quotes: Quotes,
        left: NDArray[np.bool_],
        count: int,
    ) -> None:
        """Read those of the statements with so many quotes that have a template; they are no longer left then."""
        rows = np.flatnonzero(left & (quotes.counts == count))
        firsts = np.cumsum(quotes.counts) - quotes.counts
        own = quotes.places[firsts[rows] + np.arange(count)[:, None]]
        begins, ends = np.vstack([bounds[rows], own[1::2] + 1]), np.vstack([own[::2], bounds[rows + 1]])
        while len(rows) >= _ALIKE:
            first = list(zip(begins[:, 0].tolist(), ends[:, 0].tolist(), strict=True))
            template = self._templates.template([content[begin:end].tobytes() for begin, end in first])
            if (
                template.error is not None
                or matching(template, content, begins[:, :_ALIKE], ends[:, :_ALIKE]).sum() <= _FEW
            ):
                return
            same = matching(template, content, begins, ends)
            keep(found, template, rows[same], begins[:, same])
            left[rows[same]] = False
            rows, begins, ends = rows[~same], begins[:, ~same], ends[:, ~same]

    def _read_alone(self, found: Statements, row: int, begin: int, statement: bytes) -> None:
        """Read a statement whose quotes may not all be those of literals."""
        found.forms[:, :, row] = Form.ABSENT
        try:
            gaps = split(statement)
        except DecodeError as error:
            found.problems[row] = error.what
            return
        template = self._templates.template([statement[first:end] for first, end in gaps])
        if template.error is not None:
            found.problems[row] = template.error
            return
        keep(found, template, np.array([row]), np.array([[begin + first] for first, _ in gaps]))
