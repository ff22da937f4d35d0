"""The values of statements of SQL_REDO, as they stand in the text."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import strings
from floodmark.connectors.oracle.redo.scanner import Form, Side

WORD = 8
"""How many bytes are read and written at once."""
_LITERAL = np.uint8(Form.LITERAL)


@dataclass
class Statements:
    """The values of statements. The slot of a value is its column, and of new values so many more as there are columns.

    Attributes:
        forms: shape (2, columns, statements): how each has a column's value, by side.
        lengths: shape (slots, statements): how many bytes the text of each value has.
        data: by slot: the texts of its values, one after the other.
        problems: by the number of the statement, why it can't be read. It has no values.
    """

    forms: NDArray[np.uint8]
    lengths: NDArray[np.int32]
    data: list[NDArray[np.uint8]] = field(default_factory=list)
    problems: dict[int, str] = field(default_factory=dict)

    def texts(self, side: Side, column: int) -> pa.StringArray:
        """Return a column's values, shape (statements,).

        That is the content of literals, the text of expressions, and null for what is neither.
        """
        slot, valid = side * self.forms.shape[1] + column, self.forms[side, column] >= _LITERAL
        offsets = np.zeros(len(valid) + 1, np.int32)
        np.cumsum(self.lengths[slot], out=offsets[1:])
        if valid.all():
            return strings(offsets, self.data[slot])
        bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.StringArray.from_buffers(len(valid), pa.py_buffer(offsets), pa.py_buffer(self.data[slot]), bits)


def with_word(text: pa.Buffer) -> pa.Buffer:
    """Return a text that has at least as many bytes as are read at once."""
    return text if text.size >= WORD else pa.py_buffer(text.to_pybytes().ljust(WORD, b"\0"))
