"""Keys and constraints of table definitions, and the order and names that the server gives to indexes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from floodmark.connectors.mysql.schema.cursor import Cursor, words
from floodmark.connectors.mysql.schema.ddl_columns import parse_references
from floodmark.connectors.mysql.schema.table import PRIMARY, Column, Index

_FUNCTIONAL = "functional_index"
_STARTS = words("CONSTRAINT PRIMARY UNIQUE INDEX KEY FULLTEXT SPATIAL FOREIGN CHECK")
_OTHER_KINDS = ("FULLTEXT", "SPATIAL", "VECTOR")


@dataclass(frozen=True)
class KeyDefinition:
    """A key as a statement defines it.

    Attributes:
        name: None if the server is to choose it.
        columns: the empty text stands for an expression.
        foreign: whether it is only what a foreign key needs.
        if_not_exists: whether MariaDB leaves it out if there is an index of this name (:func:`without_void`).
    """

    name: str | None
    columns: tuple[str, ...]
    unique: bool = False
    partial: bool = False
    foreign: bool = False
    if_not_exists: bool = False

    def alike(self, other: KeyDefinition) -> bool:
        """Tell whether both are primary keys, unique or plain."""
        return self.unique == other.unique and (self.name == PRIMARY) == (other.name == PRIMARY)


def sees_key(cursor: Cursor) -> bool:
    """Tell whether a key or a constraint comes next, rather than a column."""
    if cursor.sees_any(_STARTS):
        return True
    return cursor.sees("VECTOR", "INDEX") or cursor.sees("VECTOR", "KEY")


def parse_key(cursor: Cursor) -> KeyDefinition | None:
    """Return the key that comes next; None for a constraint that makes no index."""
    symbol = None
    if cursor.accept("CONSTRAINT"):
        cursor.accept("IF", "NOT", "EXISTS")
        if not cursor.sees_any(_STARTS):
            symbol = cursor.name()
    if cursor.accept("CHECK"):
        cursor.in_parentheses()
        cursor.accept("NOT")
        cursor.accept("ENFORCED")
        return None
    if cursor.accept("FOREIGN"):
        return _parse_foreign(cursor, symbol)
    if cursor.accept("PRIMARY"):
        cursor.accept("KEY")
        _, void = _parse_index_name(cursor)
        columns, partial = parse_parts(cursor)
        skip_index_options(cursor)
        return KeyDefinition(PRIMARY, columns, True, partial, if_not_exists=void)
    unique = cursor.accept("UNIQUE")
    if not unique and not cursor.accept_any(*_OTHER_KINDS) and not (cursor.sees("INDEX") or cursor.sees("KEY")):
        cursor.fail("a key")
    cursor.accept_any("INDEX", "KEY")
    name, void = _parse_index_name(cursor)
    columns, partial = parse_parts(cursor)
    skip_index_options(cursor)
    return KeyDefinition(name or symbol, columns, unique, partial, if_not_exists=void)


def _parse_foreign(cursor: Cursor, symbol: str | None) -> KeyDefinition:
    cursor.expect("KEY")
    name, void = _parse_index_name(cursor)
    columns, _ = parse_parts(cursor)
    parse_references(cursor)
    return KeyDefinition(symbol or name, columns, foreign=True, if_not_exists=void)


def _parse_index_name(cursor: Cursor) -> tuple[str | None, bool]:
    void = cursor.accept("IF", "NOT", "EXISTS")
    name = None
    if not cursor.sees("(") and not cursor.sees("USING"):
        name = cursor.name()
    if cursor.accept("USING") or cursor.accept("TYPE"):
        cursor.take()
    return name, void


def parse_parts(cursor: Cursor) -> tuple[tuple[str, ...], bool]:
    """Return the columns of a key and whether it holds only the beginning of one of them."""
    cursor.expect("(")
    columns, partial = [], False
    while True:
        if cursor.sees("("):
            cursor.in_parentheses()
            columns.append("")
        else:
            columns.append(cursor.name())
            if cursor.sees("("):
                cursor.in_parentheses()
                partial = True
        cursor.accept("WITHOUT", "OVERLAPS")
        cursor.accept_any("ASC", "DESC")
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(columns), partial


def skip_index_options(cursor: Cursor) -> None:
    """Go behind what may follow the columns of an index."""
    while True:
        if cursor.accept("USING") or cursor.accept("TYPE") or cursor.accept("COMMENT"):
            cursor.take()
        elif cursor.accept("WITH", "PARSER"):
            cursor.name()
        elif not cursor.accept_any("VISIBLE", "INVISIBLE", "IGNORED"):
            if cursor.accept("NOT", "IGNORED"):
                continue
            value = cursor.ahead(1).value == "="
            if cursor.accept_any("KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "CLUSTERING"):
                cursor.accept("=")
                cursor.take()
            elif value and cursor.is_name():
                cursor.at += 3
            else:
                return


def without_void(new: Iterable[KeyDefinition], old: Sequence[Index]) -> list[KeyDefinition]:
    """Return the keys that MariaDB doesn't leave out because of their ``IF NOT EXISTS``.

    It looks at the names of the indexes before the statement, also of those that the statement drops; a key without a
    name goes by that of its first column.

    Args:
        old: the indexes before the statement.
    """
    kept: list[KeyDefinition] = []
    for key in new:
        name = _wanted_name(key)
        if not key.if_not_exists or not (
            _named(old, name) or any(other.alike(key) and _wanted_name(other) == name for other in kept)
        ):
            kept.append(key)
    return kept


def _wanted_name(key: KeyDefinition) -> str:
    return (key.name or key.columns[0]).lower()


def arranged(columns: Sequence[Column], old: Iterable[Index], new: Iterable[KeyDefinition]) -> tuple[Index, ...]:
    """Return a table's indexes with the names and in the order that the server gives them.

    Args:
        old: those that the table has already.
        new: those that a statement adds.
    """
    names = {column.name.lower(): column.name for column in columns}
    keys = [replace(key, columns=tuple(names.get(part.lower(), "") for part in key.columns)) for key in new]
    # What only a foreign key needs gives way to any other index that does, and to a later one of a foreign key.
    indexes = [index for index in old if not (index.made and _covered(index.columns, keys))]
    for key in _with_functional_names([key for key in keys if not key.foreign], indexes):
        indexes.append(Index(key.name or _free_name(key.columns[0], indexes), key.columns, key.unique, key.partial))
    for number, key in enumerate(keys, 1):
        later = (other for other in keys[number:] if other.foreign)
        if key.foreign and not _covered(key.columns, [*indexes, *later]):
            name = key.name
            if name is None or _named(indexes, name):
                name = _free_name(key.columns[0], indexes)
            indexes.append(Index(name, key.columns, made=True))
    required = {column.name for column in columns if not column.optional}
    virtual = {column.name for column in columns if column.generated == "virtual"}
    return tuple(sorted(indexes, key=lambda index: _rank(index, required, virtual)))


def _with_functional_names(new: Sequence[KeyDefinition], old: Iterable[Index]) -> Iterator[KeyDefinition]:
    """Yield keys; those over expressions have names, which the server chooses before those of all others."""
    taken: list[Index | KeyDefinition] = [*old, *(key for key in new if key.name is not None)]
    for key in new:
        if key.name is None and "" in key.columns:
            key = replace(key, name=_free_name(_FUNCTIONAL, taken))
            taken.append(key)
        yield key


def _rank(index: Index, required: Collection[str], virtual: Collection[str]) -> tuple[bool, ...]:
    if not index.unique:
        return (True,)
    nullable = any(column not in required for column in index.columns)
    generated = any(column in virtual for column in index.columns)
    return (False, not index.primary, nullable, generated, index.partial)


def _covered(columns: tuple[str, ...], others: Iterable[Index | KeyDefinition]) -> bool:
    """Tell whether one of these indexes begins with these columns."""
    return any(other.columns[: len(columns)] == columns for other in others)


def _named(indexes: Iterable[Index | KeyDefinition], name: str) -> bool:
    return any(index.name is not None and index.name.lower() == name.lower() for index in indexes)


def _free_name(wanted: str, indexes: Sequence[Index | KeyDefinition]) -> str:
    name, number = wanted, 2
    while _named(indexes, name) or name.upper() == PRIMARY:
        name, number = f"{wanted}_{number}", number + 1
    return name
