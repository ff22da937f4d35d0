"""The codec of MySQL's ``json``: the server's text without the spaces that it puts between values."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs import text_codecs
from floodmark.codecs.arrays import as_mask, mapped, offsets_of, strings
from floodmark.codecs.codec import Codec
from floodmark.connectors.mysql.types.settings import MysqlSettings
from floodmark.events.json_text import string, value_bytes

_ESCAPE = re.compile(r"\\(?:u00[0-9a-f]{2}|.)")
_QUOTE, _BACKSLASH, _SPACE = b'"\\ '


def json(settings: MysqlSettings) -> Codec:
    """Return the codec of ``json``."""
    codec = text_codecs.text(settings, "io.debezium.data.Json")
    return dataclasses.replace(codec, encode=lambda text: string(compact(text)), to_arrow=compact, zero='"{}"')


def compact(text: pa.StringArray) -> pa.StringArray:
    """Return JSON documents without spaces outside of strings, and with hexadecimal digits in upper case."""
    data = value_bytes(text)
    if (data == _BACKSLASH).any():
        escaped = as_mask(pc.match_substring(text, "\\u00"))
        text = mapped(text, text, escaped, lambda one: _ESCAPE.sub(_upper, one))
        data = value_bytes(text)
    spaces = np.flatnonzero(data == _SPACE)
    if not len(spaces):
        return text
    # Each document has an even number of quotes, so they can be counted across all documents.
    quotes = np.flatnonzero(data == _QUOTE)
    quotes = quotes[~_escaped(data, quotes)]
    outside = spaces[np.searchsorted(quotes, spaces) % 2 == 0]
    bounds = offsets_of(text) - offsets_of(text)[0]
    keep = np.ones(len(data), bool)
    keep[outside] = False
    # Each offset moves back by the number of spaces that are removed before it.
    return strings((bounds - np.searchsorted(outside, bounds)).astype(np.int32), data[keep], text)


def _upper(found: re.Match[str]) -> str:
    return "\\u" + found[0][2:].upper() if found[0].startswith("\\u") else found[0]


def _escaped(data: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which characters follow an odd number of backslashes."""
    escaped = np.zeros(len(places), bool)
    going = np.arange(len(places))
    distance = 1
    # Each round looks one byte further back, only for those that had backslashes so far.
    while len(going):
        at = places[going] - distance
        going = going[(at >= 0) & (data[at] == _BACKSLASH)]
        escaped[going] = ~escaped[going]
        distance += 1
    return escaped
