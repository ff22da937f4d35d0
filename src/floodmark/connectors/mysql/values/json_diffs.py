"""Applies the diffs that the log holds in place of JSON values (``binlog_row_value_options=PARTIAL_JSON``).

Source: MySQL, ``sql/json_diff.cc``, ``Json_diff_vector::read_binary``; ``sql-common/json_path.cc``.
"""

from __future__ import annotations

import json
import re
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from floodmark.connectors.mysql.values.json_text import json_texts
from floodmark.connectors.mysql.values.row_images import Bytes, Pieces
from floodmark.errors import DecodeError

REPLACE, INSERT, REMOVE = range(3)

_LEG = re.compile(r'\.(?:"((?:[^"\\]|\\.)*)"|([^.\["]+))|\[(\d+|last(?:-\d+)?)\]', re.DOTALL)
_LAST = "last-"
_MISFIT = "The diffs of a JSON value don't fit the old value."
_NUMBER_BYTES = {252: 2, 253: 3, 254: 8}


class _Number(str):
    """A number with its spelling in the document."""


_Document: TypeAlias = "bool | str | list[_Document] | dict[str, _Document] | None"
"""A parsed document; its numbers are ``_Number``."""
_Container: TypeAlias = list[_Document] | dict[str, _Document]


def with_diffs(buf: Bytes, pieces: Pieces, whole: pa.StringArray, before: pa.StringArray) -> pa.StringArray:
    """Return JSON values, with lists of diffs applied to the old values.

    Args:
        buf: the buffer.
        pieces: the values, some of them partial.
        whole: the text of the values that are not partial; null for the others.
        before: the old rows' text.

    Raises:
        DecodeError: diffs are malformed, or don't fit the old value.
    """
    assert pieces.partial is not None
    wanted = pieces.partial if pieces.valid is None else pieces.partial & pieces.valid
    rows = np.flatnonzero(wanted)
    old = before.take(pa.array(rows)).to_pylist()
    texts = []
    for row, text in zip(rows.tolist(), old, strict=True):
        if text is None:
            raise DecodeError("A JSON value has diffs to an old value that the log lacks.")
        start = int(pieces.starts[row])
        texts.append(apply_diffs(text, buf[start : start + int(pieces.lengths[row])].tobytes()))
    values = whole.to_pylist()
    for row, text in zip(rows.tolist(), texts, strict=True):
        values[row] = text
    return pa.array(values, pa.string())


def apply_diffs(text: str, diffs: bytes) -> str:
    """Return a document with diffs applied, as the server prints it.

    Args:
        text: the document as the server prints it.
        diffs: the binary list of diffs.

    Raises:
        DecodeError: the list is malformed, or doesn't fit the document.
    """
    holder = [_parsed(text)]
    at = 0
    try:
        while at < len(diffs):
            operation = diffs[at]
            size, at = _length(diffs, at + 1)
            legs = _legs(diffs[at : at + size].decode())
            at += size
            value: _Document = None
            if operation != REMOVE:
                size, at = _length(diffs, at)
                value = _parsed(_document(diffs[at : at + size], size))
                at += size
            _apply(holder, operation, legs, value)
    except (IndexError, KeyError, UnicodeDecodeError):
        raise DecodeError(_MISFIT) from None
    if at != len(diffs):
        raise DecodeError("The diffs of a JSON value are cut off.")
    return _printed(holder[0])


def _parsed(text: str) -> _Document:
    document: _Document = json.loads(text, parse_int=_Number, parse_float=_Number)
    return document


def _document(raw: bytes, size: int) -> str:
    if len(raw) != size:
        raise DecodeError("The diffs of a JSON value are cut off.")
    pieces = Pieces(np.zeros(1, np.int64), np.array([size]), None)
    return str(json_texts(np.frombuffer(raw, np.uint8), pieces)[0].as_py())


def _length(raw: bytes, at: int) -> tuple[int, int]:
    """Return the length-encoded integer at an offset, and where it ends."""
    size = _NUMBER_BYTES.get(raw[at])
    if size is None:
        return raw[at], at + 1
    return int.from_bytes(raw[at + 1 : at + 1 + size], "little"), at + 1 + size


def _legs(path: str) -> list[str | int]:
    """Return the legs of a path: names of members and indices of elements, negative if counted from the end."""
    legs: list[str | int] = []
    at = 1
    while at < len(path):
        found = _LEG.match(path, at)
        if found is None or path[0] != "$":
            raise DecodeError("A path in the diffs of a JSON value cannot be read.")
        quoted, plain, element = found.groups()
        if element is not None:
            legs.append(int(element) if element.isdigit() else -1 - int(element[len(_LAST) :] or 0))
        else:
            legs.append(plain if plain is not None else json.loads(f'"{quoted}"', strict=False))
        at = found.end()
    return legs


def _member(parent: _Container, key: str | int) -> _Document:
    if isinstance(parent, list):
        return parent[_index(key)]
    return parent[_name(key)]


def _set_member(parent: _Container, key: str | int, value: _Document) -> None:
    if isinstance(parent, list):
        parent[_index(key)] = value
    else:
        parent[_name(key)] = value


def _remove_member(parent: _Container, key: str | int) -> None:
    if isinstance(parent, list):
        del parent[_index(key)]
    else:
        del parent[_name(key)]


def _index(key: str | int) -> int:
    assert isinstance(key, int)
    return key


def _name(key: str | int) -> str:
    assert isinstance(key, str)
    return key


def _apply(holder: list[_Document], operation: int, legs: list[str | int], value: _Document) -> None:
    parent: _Container = holder
    key: str | int = 0
    for leg in legs:
        inner = _member(parent, key)
        if isinstance(leg, int) and not isinstance(inner, list):
            # As on the server, a value that is no array counts as an array of one element.
            if leg in (0, -1):
                continue
            inner = [inner]
            _set_member(parent, key, inner)
        elif isinstance(leg, str) and not isinstance(inner, dict):
            raise DecodeError(_MISFIT)
        assert isinstance(inner, list | dict)
        parent, key = inner, leg
    if operation == INSERT and isinstance(parent, list):
        parent.insert(_index(key), value)
    elif operation == REMOVE:
        _remove_member(parent, key)
    elif operation in (REPLACE, INSERT):
        if operation == REPLACE and isinstance(parent, dict) and key not in parent:
            raise KeyError(key)
        _set_member(parent, key, value)
    else:
        raise DecodeError(f"A JSON value has a diff of the unknown kind {operation}.")


def _printed(value: _Document) -> str:
    """Return a document as the server prints it: members are sorted by their names' length, then bytes."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        named = sorted((len(name.encode()), name.encode(), name) for name in value)
        return "{" + ", ".join(f"{_printed(name)}: {_printed(value[name])}" for _, _, name in named) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_printed, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
