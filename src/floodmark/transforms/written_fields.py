"""Finds single fields in the pieces of a JSON object, without reading the whole."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.events.json_text import Fragment, Joiner

_DECODER = json.JSONDecoder()


def find_field(pieces: Sequence[str | pa.StringArray], name: str, is_text: bool, rows: int) -> Fragment | str | None:
    """Return the values of a field, or its JSON if that is the same for all rows; None if they aren't found.

    They are if pieces that differ from row to row hold values, or parts of a value, and no names of fields.

    Args:
        pieces: of the objects, the same fields for all rows; no two constant ones follow each other.
        name: the field's.
        is_text: whether values are texts or null, not numbers, booleans or null.
        rows: how many.
    """
    # Quotes in texts are escaped, so this can't be part of a value.
    key = f'"{name}":'
    for number, piece in enumerate(pieces):
        if not isinstance(piece, str):
            continue
        start = piece.find("," + key)
        if start < 0 and piece.startswith("{" + key):
            start = 0
        if start >= 0:
            return _value(piece[start + 1 + len(key) :], pieces[number + 1 :], is_text, rows)
    return None


def _value(first: str, following: Sequence[str | pa.StringArray], is_text: bool, rows: int) -> Fragment | str | None:
    """Return the value that begins a piece; None if its end isn't found."""
    if first:
        try:
            _, end = _DECODER.raw_decode(first)
        except ValueError:
            end = len(first)
        if end < len(first):
            return first[:end]
    in_quotes = first.startswith('"')
    joiner = Joiner().add(first[1:] if in_quotes else first)
    for piece in following:
        if not isinstance(piece, str):
            joiner.add(piece)
            continue
        end = _end_of_text(piece) if in_quotes else _end_of_scalar(piece)
        joiner.add(piece[: len(piece) if end < 0 else end])
        if end >= 0:
            text = joiner.join(rows)
            if not _is_scalar(f'"{text[0]}"' if in_quotes else str(text[0])):
                return None
            return Fragment(text, quoted=True) if in_quotes else _scalars(text, is_text)
    return None


def _is_scalar(text: str) -> bool:
    """Return whether a text is one value; what else a piece holds, it holds in each row."""
    try:
        return not isinstance(json.loads(text), list | dict)
    except ValueError:
        return False


def _end_of_text(piece: str) -> int:
    at = 0
    while at < len(piece):
        if piece[at] == '"':
            return at
        at += 2 if piece[at] == "\\" else 1
    return -1


def _end_of_scalar(piece: str) -> int:
    return min((at for at in (piece.find(","), piece.find("}")) if at >= 0), default=-1)


def _scalars(values: pa.StringArray, is_text: bool) -> Fragment:
    """Return whole values, of which some may be ``null``."""
    content = pc.binary_slice(values.cast(pa.binary()), 1, -1).cast(pa.string()) if is_text else values
    absent = pc.equal(values, "null")
    return Fragment(pc.if_else(absent, pa.scalar(None, pa.string()), content), quoted=is_text)
