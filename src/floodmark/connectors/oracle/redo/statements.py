"""Reads many statements of SQL_REDO at once: their values by column, as they stand in the text.

The text is searched for quotes, which divide it into literals and gaps. Most statements of a table have one of few
patterns (`patterns`), in which each column is null or has a value. The gaps of the others are numbered, and each is
scanned once for each state (`Steps`). What they hold is then known for all statements together, as places in the text,
so that values are cut out of it column by column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.connectors.oracle.redo.alike import ALIKE, AlikeReader
from floodmark.connectors.oracle.redo.gaps import Numbers, gaps_in, ranges, split
from floodmark.connectors.oracle.redo.lookup import Chosen, Lookup
from floodmark.connectors.oracle.redo.patterns import Learner
from floodmark.connectors.oracle.redo.scanner import Form, Scanner
from floodmark.connectors.oracle.redo.set_clauses import SetClauses
from floodmark.connectors.oracle.redo.steps import Steps
from floodmark.connectors.oracle.redo.templates import Templates, keep
from floodmark.connectors.oracle.redo.values import Statements
from floodmark.errors import DecodeError


class StatementReader:
    """Reads statements of one table.

    Args:
        columns: the names of the table's columns, in their order.
        numbered: whether statements may have numbers instead; see ``Scanner``.
    """

    def __init__(self, columns: Sequence[str], numbered: bool = False) -> None:
        self._count = len(columns)
        scanner = Scanner(columns, numbered)
        self._steps = Steps(scanner, len(columns))
        self._templates = Templates(self._steps)
        self._alike = AlikeReader(Learner(scanner), SetClauses(self._steps, self._templates))
        # A quote in a name isn't one of a literal.
        self._one_by_one = any("'" in name for name in columns)

    def read(self, statements: pa.StringArray) -> Statements:
        """Return the values of statements, none of which is null."""
        rows = len(statements)
        _, offsets, text = statements.buffers()
        bounds = np.frombuffer(offsets, np.int32, rows + 1, statements.offset * 4)
        text = text if text is not None else pa.py_buffer(b"")
        content = np.frombuffer(text, np.uint8)
        found = Statements.without_values(self._count, gaps_in(content, bounds, text))
        if not rows:
            return found
        alone = np.arange(rows) if self._one_by_one else self._read_together(found, content, bounds)
        for row in alone.tolist():
            begin, end = bounds[row : row + 2].tolist()
            self._read_alone(found, row, begin, content[begin:end].tobytes())
        return found

    def _read_together(self, found: Statements, content: NDArray[np.uint8], bounds: NDArray[np.int32]) -> Numbers:
        """Read statements whose quotes are those of literals; return the numbers of others, and of those that fail."""
        left = found.gaps.counts > 0
        failed = ~left
        kinds = np.zeros(len(left), np.uint8)
        some = left & (bounds[1:] > bounds[:-1])
        kinds[some] = content[bounds[:-1][some]]
        for kind, count in enumerate(np.bincount(kinds).tolist()):
            if kind and count >= ALIKE:
                read, unread = self._alike.read(found, np.flatnonzero(kinds == kind), kind)
                left[read] = False
                failed[unread] = True
        rest = np.flatnonzero(left)
        if len(rest):
            first, counts = found.gaps.firsts[rest], found.gaps.counts[rest]
            chosen = Chosen(rest, first, counts, found.gaps.texts(ranges(first, counts)))
            failed[Lookup(self._steps, found, chosen).read()] = True
        return np.flatnonzero(failed)

    def _read_alone(self, found: Statements, row: int, begin: int, statement: bytes) -> None:
        """Read a statement whose quotes may not all be those of literals."""
        found.forms[:, :, row] = Form.ABSENT
        found.forget_calls()
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
