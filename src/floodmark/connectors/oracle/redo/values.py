"""The values of statements of SQL_REDO, as they stand in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import slices
from floodmark.connectors.oracle.redo.gaps import QUOTE
from floodmark.connectors.oracle.redo.scanner import Form, Side


@dataclass(frozen=True)
class Statements:
    """The values of statements.

    Attributes:
        forms: shape (2, columns, statements): how each has a column's value, by side.
        begins: of the same shape: where it begins in the text.
        ends: the same.
        text: all statements, one after the other.
        problems: by the number of the statement, why it can't be read. It has no values.
    """

    forms: NDArray[np.uint8]
    begins: NDArray[np.int32]
    ends: NDArray[np.int32]
    text: pa.Buffer
    problems: dict[int, str]

    @classmethod
    def without_values(cls, columns: int, bounds: NDArray[np.int32], text: pa.Buffer) -> Self:
        """Return statements whose values aren't known yet.

        Args:
            columns: how many the table has.
            bounds: where each statement begins in the text, and where the last one ends.
            text: all statements, one after the other.
        """
        shape = (2, columns, len(bounds) - 1)
        empty = np.broadcast_to(bounds[:-1], shape)
        return cls(np.zeros(shape, np.uint8), empty.copy(), empty.copy(), text, {})

    def texts(self, side: Side, column: int) -> pa.StringArray:
        """Return a column's values, shape (statements,).

        That is the content of literals, the text of expressions, and null for what is neither.
        """
        forms = self.forms[side, column]
        begins, valid = self.begins[side, column], forms >= Form.LITERAL
        # A missing value is empty, within its statement.
        lengths = self.ends[side, column] - begins
        chosen = slices(np.frombuffer(self.text, np.uint8), begins, lengths, None if valid.all() else valid)
        expressions = forms == Form.EXPRESSION
        if not expressions.any():
            return unescaped(chosen)
        literals = forms == Form.LITERAL
        return pc.if_else(pa.array(literals), unescaped(chosen), chosen) if literals.any() else chosen


def unescaped(texts: pa.StringArray) -> pa.StringArray:
    """Return what is between the quotes of literals, with each pair of quotes as the quote that it stands for."""
    data = texts.buffers()[2]
    if data is None or not (np.frombuffer(data, np.uint8) == QUOTE).any():
        return texts
    return pc.replace_substring(texts, "''", "'")
