"""Parses keys and constraints of tables, and finds the order and names that the server gives to indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import pairwise, zip_longest

from floodmark.connectors.mysql.ddl.columns import parse_references
from floodmark.connectors.mysql.ddl.cursor import Cursor, words
from floodmark.connectors.mysql.ddl.tokens import WORD
from floodmark.connectors.mysql.structures.charsets import max_bytes
from floodmark.connectors.mysql.structures.table import PRIMARY, SOME, Column, Index
from floodmark.connectors.mysql.structures.type_names import BLOBS, GEOMETRIES, SIZED, TEXTS

_FUNCTIONAL = "functional_index"
_STARTS = words("CONSTRAINT PRIMARY UNIQUE INDEX KEY FULLTEXT SPATIAL FOREIGN CHECK")
_MOST_BYTES = 3072
"""InnoDB's largest index."""
_FEW_BYTES = 8
_SHAPE_LENGTH, _POINT_LENGTH = 32, 25
_SHORT, _SHORT_BYTES = (TEXTS[0], BLOBS[0]), 255
_SHAPES = GEOMETRIES - {"point"}
_UNBOUNDED = frozenset({*TEXTS, *BLOBS})
_OTHER_KINDS = ("FULLTEXT", "SPATIAL", "VECTOR")


class Sorting(Enum):
    """How a statement sorts a table's indexes: as MySQL or MariaDB does, by which may be NULL, or not at all."""

    MYSQL = auto()
    MARIADB = auto()
    NULLS = auto()
    NONE = auto()


@dataclass(frozen=True)
class KeyDefinition:
    """A key as a statement defines it.

    Attributes:
        name: None if the server is to choose it.
        columns: the empty text for an expression.
        lengths: as those of an :class:`Index`.
        foreign: whether it is only an index that a foreign key needs.
        hashed: whether it is declared ``USING HASH``; MariaDB sorts such unique indexes after the others.
        if_not_exists: whether MariaDB leaves it out if there is an index of this name (:func:`without_void`).
        descending: as that of an :class:`Index`.
    """

    name: str | None
    columns: tuple[str, ...]
    unique: bool = False
    lengths: tuple[int, ...] = ()
    foreign: bool = False
    hashed: bool = False
    if_not_exists: bool = False
    descending: tuple[int, ...] = ()

    def alike(self, other: KeyDefinition) -> bool:
        """Return whether both are primary keys, both unique or both neither."""
        return self.unique == other.unique and (self.name == PRIMARY) == (other.name == PRIMARY)


def sees_key(cursor: Cursor) -> bool:
    """Return whether a key or a constraint comes next, rather than a column."""
    if cursor.sees_any(_STARTS):
        return True
    return cursor.sees("VECTOR", "INDEX") or cursor.sees("VECTOR", "KEY")


def parse_key(cursor: Cursor) -> KeyDefinition | None:
    """Parse the key that comes next; return None for a constraint that makes no index."""
    symbol = None
    if cursor.accept("CONSTRAINT"):
        cursor.accept("IF", "NOT", "EXISTS")
        if not cursor.sees_any(_STARTS):
            symbol = cursor.name()
    if cursor.accept("CHECK"):
        cursor.in_parentheses()
        if not cursor.accept("NOT", "ENFORCED"):
            cursor.accept("ENFORCED")
        return None
    if cursor.accept("FOREIGN"):
        return _parse_foreign(cursor, symbol)
    if cursor.accept("PRIMARY"):
        cursor.accept("KEY")
        _, void = _parse_index_name(cursor)
        columns, lengths, descending = parse_parts(cursor)
        skip_index_options(cursor)
        return KeyDefinition(PRIMARY, columns, True, lengths, if_not_exists=void, descending=descending)
    unique = cursor.accept("UNIQUE")
    if not unique and not cursor.accept_any(*_OTHER_KINDS) and not (cursor.sees("INDEX") or cursor.sees("KEY")):
        cursor.fail("a key")
    cursor.accept_any("INDEX", "KEY")
    begin = cursor.at
    name, void = _parse_index_name(cursor)
    columns, lengths, descending = parse_parts(cursor)
    skip_index_options(cursor)
    hashed = says_hash(cursor, begin)
    return KeyDefinition(name or symbol, columns, unique, lengths, False, hashed, void, descending)


def _parse_foreign(cursor: Cursor, symbol: str | None) -> KeyDefinition:
    cursor.expect("KEY")
    name, void = _parse_index_name(cursor)
    columns, _, _ = parse_parts(cursor)
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


def parse_parts(cursor: Cursor) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """Parse the parts of a key; return columns, lengths and which are descending, as those of an :class:`Index`."""
    cursor.expect("(")
    columns: list[str] = []
    lengths: list[int] = []
    descending: list[int] = []
    while True:
        if cursor.sees("("):
            cursor.in_parentheses()
            columns.append("")
            lengths.append(0)
        else:
            columns.append(cursor.name())
            lengths.append(_parse_length(cursor))
        cursor.accept("WITHOUT", "OVERLAPS")
        # MariaDB takes DESC for some indexes only, and treats them as it does others.
        if cursor.accept_any("ASC", "DESC") == "DESC" and not cursor.server.mariadb:
            descending.append(len(columns) - 1)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(columns), tuple(lengths), tuple(descending)


def _parse_length(cursor: Cursor) -> int:
    if not cursor.accept("("):
        return 0
    length = cursor.number()
    cursor.expect(")")
    return length


def skip_index_options(cursor: Cursor) -> None:
    """Skip what may follow the columns of an index."""
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
                cursor.skip(3)
            else:
                return


def without_void(new: Iterable[KeyDefinition], old: Sequence[Index]) -> list[KeyDefinition]:
    """Return the keys that MariaDB doesn't leave out because of their ``IF NOT EXISTS``.

    It compares names with those of the indexes before the statement, including those that the statement drops; a key
    without a name is compared by that of its first column.

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


def says_hash(cursor: Cursor, begin: int) -> bool:
    """Return whether an index is declared ``USING HASH`` on MariaDB.

    Args:
        begin: number of the token at which the index begins; it ends at the cursor.
    """
    said = pairwise((token.kind, token.value) for token in cursor.tokens[begin : cursor.at])
    return cursor.server.mariadb and ((WORD, "USING"), (WORD, "HASH")) in said


def sorting(cursor: Cursor, keys: Sequence[KeyDefinition], nulls: bool = False) -> Sorting:
    """Return how the server sorts a table's indexes.

    Args:
        keys: those that the statement adds.
        nulls: whether it changes whether a column may be NULL without changing the column's type.
    """
    if not cursor.server.mariadb:
        return Sorting.MYSQL
    if keys:
        return Sorting.MARIADB
    return Sorting.NULLS if nulls else Sorting.NONE


def arranged(
    columns: Sequence[Column],
    old: Sequence[Index],
    new: Sequence[KeyDefinition],
    optional: Set[str],
    how: Sorting,
    defined: Set[str],
) -> tuple[Index, ...]:
    """Return a table's indexes with the names and in the order that the server gives them.

    Args:
        old: those that the table has already.
        new: those that a statement adds.
        optional: columns that may be NULL until the statement makes them the primary key.
        defined: columns that the statement defines.
    """
    names = {column.name.lower(): column.name for column in columns}
    keys = [replace(key, columns=tuple(names.get(part.lower(), "") for part in key.columns)) for key in new]
    # The server drops an index that it made for a foreign key when a new one, even for a foreign key, can serve.
    indexes = [index for index in old if not (index.made and _covered(index.columns, keys))]
    optional = optional - {column for index in indexes if index.primary for column in index.columns}
    nullable = {index.name for index in indexes if not optional.isdisjoint(index.columns)}
    hashed: set[str] = set()
    for key in _with_functional_names([key for key in keys if not key.foreign], indexes):
        name = key.name or _free_name(key.columns[0], indexes)
        indexes.append(Index(name, key.columns, key.unique, key.lengths, descending=key.descending))
        if key.hashed:
            hashed.add(name)
        if name == PRIMARY:
            optional = frozenset()
        elif not optional.isdisjoint(key.columns):
            nullable.add(name)
    for number, key in enumerate(keys, 1):
        later = (other for other in keys[number:] if other.foreign)
        # An index that MariaDB hashes can't serve a foreign key.
        ordered = (index for index in indexes if not (index.unique and is_hashed(index, columns)))
        if key.foreign and not _covered(key.columns, [*ordered, *later]):
            wanted = key.name if key.name is not None and not _named(indexes, key.name) else None
            indexes.append(Index(wanted or _free_name(key.columns[0], indexes), key.columns, made=True))
    known = {column.name: column for column in columns}
    indexes = [replace(index, lengths=_kept_lengths(index, known)) for index in indexes]
    hashed |= {index.name for index in indexes if index.unique and is_hashed(index, columns)}
    required = {column.name for column in columns if not column.optional}
    nullable |= {index.name for index in indexes if not required.issuperset(index.columns)}
    virtual = {column.name for column in columns if column.generated == "virtual"}

    def rank(index: Index) -> tuple[bool, ...]:
        last, null = index.name in hashed, index.name in nullable
        if not index.unique or how is Sorting.NONE:
            return (not index.unique,)
        if how is Sorting.NULLS:
            return (False, not index.primary, null or last)
        if last:
            return (False, not index.primary, True)
        computed = how is Sorting.MYSQL and not virtual.isdisjoint(index.columns)
        partial = _is_partial(index, known, defined if how is Sorting.MYSQL else frozenset())
        return (False, not index.primary, False, null, partial, computed)

    return tuple(sorted(indexes, key=rank))


def _kept_lengths(index: Index, columns: Mapping[str, Column]) -> tuple[int, ...]:
    """Return an index's lengths for its columns as they are now; 0 where the column is no longer than that."""
    # A key may have more columns than the statement lists.
    wanted = zip_longest(index.columns, index.lengths[: len(index.columns)], fillvalue=0)
    lengths = tuple(_kept_length(columns[str(name)], length) if name else 0 for name, length in wanted)
    return lengths if any(lengths) else ()


def _kept_length(column: Column, length: int) -> int:
    if column.type in GEOMETRIES:
        return length or (_SHAPE_LENGTH if column.type in _SHAPES else _POINT_LENGTH)
    if column.type in _SHORT:
        return min(length, _SHORT_BYTES)
    if column.type in _UNBOUNDED:
        return length
    return length if column.type in SIZED and length < (column.length or 1) else 0


def _is_partial(index: Index, columns: Mapping[str, Column], defined: Set[str]) -> bool:
    """Return whether the server takes an index for one that holds only the beginning of a column's values.

    Args:
        defined: columns whose declared length counts; else a text or blob is as long as its type allows.
    """
    parts = zip(index.columns, index.lengths, strict=True) if index.lengths else ()
    return any(length and not _holds_all(columns[name], length, name in defined) for name, length in parts)


def _holds_all(column: Column, length: int, declared: bool) -> bool:
    if declared and column.type in _UNBOUNDED and column.type not in _SHORT:
        return length == column.length
    return column.type in _SHORT and length * max_bytes(column.charset) == _SHORT_BYTES


def is_hashed(index: Index, columns: Sequence[Column]) -> bool:
    """Return whether the values are too long for an index, so that MariaDB hashes them and MySQL refuses the index."""
    lengths = dict(zip_longest(index.columns, index.lengths, fillvalue=0))
    return sum(_size(column, lengths[column.name]) for column in columns if column.name in lengths) > _MOST_BYTES


def _size(column: Column, length: int) -> int:
    """Return how many bytes of an index a column takes at most; an estimate if they are few."""
    if column.type in _SHAPES or (column.type in _UNBOUNDED and not length):
        return _MOST_BYTES + 1
    if length == SOME or column.type not in (*SIZED, *_UNBOUNDED):
        return _FEW_BYTES
    return (length or column.length or 1) * max_bytes(column.charset)


def _with_functional_names(new: Sequence[KeyDefinition], old: Iterable[Index]) -> Iterator[KeyDefinition]:
    """Yield keys, with names for those over expressions, which the server names before all others."""
    taken: list[Index | KeyDefinition] = [*old, *(key for key in new if key.name is not None)]
    for key in new:
        if key.name is None and "" in key.columns:
            key = replace(key, name=_free_name(_FUNCTIONAL, taken))
            taken.append(key)
        yield key


def _covered(columns: tuple[str, ...], others: Iterable[Index | KeyDefinition]) -> bool:
    """Return whether one of these indexes begins with these columns."""
    return any(other.columns[: len(columns)] == columns for other in others)


def _named(indexes: Iterable[Index | KeyDefinition], name: str) -> bool:
    return any(index.name is not None and index.name.lower() == name.lower() for index in indexes)


def _free_name(wanted: str, indexes: Sequence[Index | KeyDefinition]) -> str:
    name, number = wanted, 2
    while _named(indexes, name) or name.upper() == PRIMARY:
        name, number = f"{wanted}_{number}", number + 1
    return name
