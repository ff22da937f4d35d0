"""What the values of statements mean: text, or what a function's call makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import offsets_of, replaced, strings
from floodmark.connectors.oracle.redo.kinds import Kind
from floodmark.connectors.oracle.redo.national_text import decoded
from floodmark.connectors.oracle.redo.scanner import Form, Side
from floodmark.connectors.oracle.redo.values import Statements, with_word

_EXPRESSION, _LITERAL = np.uint8(Form.EXPRESSION), np.uint8(Form.LITERAL)


@dataclass(frozen=True)
class Contents:
    """A column's values.

    Attributes:
        kinds: shape (statements,): of each.
        texts: the same: their content; null where there is none.
    """

    kinds: NDArray[np.uint8]
    texts: pa.StringArray


def contents(statements: Statements, side: Side, column: int) -> Contents:
    """Return the content of a column's values.

    Raises:
        DecodeError: a text of ``UNISTR`` is no text.
    """
    forms, texts = statements.forms[side, column], statements.texts(side, column)
    expressions = forms == _EXPRESSION
    if not expressions.any():
        return Contents(np.where(forms == _LITERAL, np.uint8(Kind.TEXT), np.uint8(Kind.NONE)), texts)
    # Not before: importing it takes a moment.
    from floodmark.connectors.oracle.redo import kernels

    text = with_word(texts.buffers()[2])
    kinds, offsets = np.empty(len(forms), np.uint8), np.zeros(len(forms) + 1, np.int32)
    data = np.empty(text.size + kernels.WORD, np.uint8)
    kernels.contents(text.address, text.size, offsets_of(texts), forms, kinds, offsets, data.ctypes.data)
    values = strings(offsets, data[: offsets[-1]], texts)
    national = expressions & (kinds == np.uint8(Kind.TEXT))
    if national.any():
        # The halves of a character may stand in two calls.
        values = replaced(values, national, decoded(values.filter(pa.array(national))))
    return Contents(kinds, values)
