"""Writes keys as conditions in the grammar of signals, which the source's connector turns into SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

MOST_CHARACTERS = 48_000
MOST_WORDS = 12_000
MOST_KEYS = 1000
"""Bounds of a condition, below those that signals have."""
_BIGGEST = 1 << 13
"""Characters of a value that is written into a condition."""


def key_conditions(keys: pa.Table, backslashes: bool) -> Iterator[tuple[str, pa.Table]]:
    """Yield conditions on keys, each with the keys that it is for; those that no condition can name are left out.

    Args:
        keys: the columns of the key, each key once.
        backslashes: whether a backslash in a text must be doubled.
    """
    names, texts = keys.column_names, key_texts(keys, backslashes)
    begin = 0
    while begin < len(texts):
        if texts[begin] is None:
            begin += 1
            continue
        end, size, words = begin, 0, 0
        while end < len(texts) and end - begin < MOST_KEYS:
            values = texts[end]
            if values is None:
                break
            size += sum(len(name) + len(value) + 12 for name, value in zip(names, values, strict=True))
            words += 5 * len(names) + 2
            if end > begin and (size > MOST_CHARACTERS or words > MOST_WORDS):
                break
            end += 1
        chosen = [values for values in texts[begin:end] if values is not None]
        yield _condition(names, chosen, backslashes), keys.slice(begin, end - begin)
        begin = end


def key_texts(keys: pa.Table, backslashes: bool) -> list[list[str] | None]:
    """Return the values of keys as conditions write them; None for a key that can't be written so that it is found."""
    columns = [[_value(value, backslashes) for value in values] for values in listed(keys).values()]
    each = zip(*columns, strict=True)
    return [None if None in row else [value for value in row if value is not None] for row in each]


def named(keys: pa.Table, backslashes: bool) -> list[bool]:
    """Return for each key whether a condition can name it."""
    return [texts is not None for texts in key_texts(keys, backslashes)]


def listed(rows: pa.Table) -> dict[str, list[Any]]:
    """Return columns as values of Python, or as ``Written`` where Python has no such value, such as a year before 1."""
    found: dict[str, list[Any]] = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        try:
            found[name] = column.to_pylist()
        except (ValueError, OverflowError):
            found[name] = [None if text is None else Written(text) for text in _texts(column)]
    return found


class Written:
    """A value that is only known as Arrow writes it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    try:
        texts: list[str | None] = column.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        texts = [str(value) for value in column]
    return texts


def _condition(names: Sequence[str], rows: Sequence[Sequence[str]], backslashes: bool) -> str:
    columns = [_name(name, backslashes) for name in names]
    if len(columns) == 1:
        return f"{columns[0]} IN ({', '.join(row[0] for row in rows)})"
    each = [" AND ".join(f"{name} = {value}" for name, value in zip(columns, row, strict=True)) for row in rows]
    return " OR ".join(f"({one})" for one in each)


def _name(name: str, backslashes: bool) -> str:
    # A server whose texts have backslashes quotes names with backticks.
    quote = "`" if backslashes else '"'
    return quote + name.replace(quote, 2 * quote) + quote


def _value(value: Any, backslashes: bool) -> str | None:
    match value:
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case Decimal() if value.is_finite():
            return f"{value:f}"
        case str() if len(value) < _BIGGEST and "\0" not in value:
            return _quoted(value, backslashes)
        case dt.datetime():
            return _quoted(_moment(value, backslashes), backslashes)
        case dt.date():
            return _quoted(value.isoformat(), backslashes)
        case bytes() if len(value) < _BIGGEST // 2:
            # MySQL has numbers of hexadecimal digits, PostgreSQL a text for it.
            return f"x'{value.hex()}'" if backslashes else f"'\\x{value.hex()}'"
    return None


def _moment(value: dt.datetime, backslashes: bool) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC)
        # MariaDB reads no time zone in a text; the sessions that read rows have UTC.
        value = value.replace(tzinfo=None) if backslashes else value
    return value.isoformat(" ")


def _quoted(text: str, backslashes: bool) -> str:
    escaped = text.replace("\\", "\\\\") if backslashes else text
    return "'" + escaped.replace("'", "''") + "'"
