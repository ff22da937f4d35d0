"""Formats the numbers in the text of geometric types as Java does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import valid
from floodmark.codecs.floats import java_number
from floodmark.connectors.postgres.types.tokens import find_words, with_words

PUNCTUATION = b"(),<>[]{}"


def java_geometry(text: pa.StringArray) -> pa.StringArray:
    """Return boxes, circles, lines, paths and the like with their numbers formatted as Java does."""
    words = find_words(text.fill_null("()") if text.null_count else text, PUNCTUATION)
    numbers = pc.replace_substring(java_number(words.text, pa.float64()), '"', "")
    whole = with_words(words, numbers, np.zeros(len(words.data), bool), {})
    return pc.if_else(pa.array(valid(text)), whole, pa.scalar(None, pa.string())) if text.null_count else whole
