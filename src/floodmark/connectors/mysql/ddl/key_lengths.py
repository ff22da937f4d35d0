"""How much of a column the indexes keep that held all of it, where an ``ALTER TABLE`` puts a new one in its place."""

from __future__ import annotations

from collections.abc import Iterable

from floodmark.connectors.mysql.structures.charsets import max_bytes
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.structures.type_names import SIZED
from floodmark.connectors.mysql.values.layouts import decimal_size

_BYTES = {
    "tinyint": 1,
    "smallint": 2,
    "mediumint": 3,
    "int": 4,
    "bigint": 8,
    "float": 4,
    "double": 8,
    "year": 1,
    "date": 3,
    "inet4": 4,
    "inet6": 16,
    "uuid": 16,
}
_SECONDS = {"time": 3, "timestamp": 4, "datetime": 5}
_LABELLED = frozenset({"enum", "set"})
_ONE_BYTE_LABELS = 255


def lengths_kept(columns: Iterable[Column], replaced: Iterable[str], mariadb: bool) -> dict[str, int]:
    """Return the lengths of index parts that held all of a column and don't hold all of the next one, by its name.

    Servers compare lengths only where they know the next column as the old one in another form.

    Args:
        columns: those of the old table.
        replaced: names of columns, in lower case, whose place in indexes a new column takes.
    """
    new = set(replaced)
    found = {}
    for column in columns:
        name = column.name.lower()
        if name in new or (not mariadb and column.type in _LABELLED and _longest(column) != _bytes(column)):
            found[name] = _bytes(column) // max_bytes(column.charset)
    return found


def _bytes(column: Column) -> int:
    """Return how many bytes of a column an index part holds that holds all of it."""
    if column.type in SIZED:
        return (column.length or 1) * max_bytes(column.charset)
    if column.type in _BYTES:
        return _BYTES[column.type]
    if column.type in _SECONDS:
        return _SECONDS[column.type] + ((column.scale or 0) + 1) // 2
    if column.type == "decimal":
        scale = column.scale or 0
        return decimal_size((column.length or 10) - scale) + decimal_size(scale)
    if column.type == "bit":
        return ((column.length or 1) + 7) // 8
    if column.type == "enum":
        return 1 if len(column.values) <= _ONE_BYTE_LABELS else 2
    if column.type == "set":
        return _set_bytes(len(column.values))
    return 0


def _longest(column: Column) -> int:
    """Return how many bytes the longest text takes that an enum or a set can be: to MySQL they are such texts."""
    lengths = [len(label) for label in column.values]
    characters = max(lengths) if column.type == "enum" else sum(lengths) + len(lengths) - 1
    return characters * max_bytes(column.charset)


def _set_bytes(labels: int) -> int:
    """Return how many bytes a set of so many labels takes."""
    size = (labels + 7) // 8
    return size if size <= 4 else 8
