"""Structures of tables: what the decoder, the snapshot and the schema history know of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields

from floodmark.connectors.mysql.structures.stored import (
    MakeError,
    damaged_history,
    required_members,
    stored_kinds,
    stored_members,
)
from floodmark.json_data import Json

PRIMARY = "PRIMARY"
"""The name that the server gives to every primary key."""
SOME = -1
"""Placeholder for a length of an index's column that isn't known."""


@dataclass(frozen=True)
class Column:
    """A column as it was declared.

    Attributes:
        type: lower case, as ``information_schema.COLUMNS.DATA_TYPE`` has it.
        length: display width, characters, bytes, bits or decimal digits; None if not declared.
        scale: fraction digits of decimals; fractional second digits of temporal types.
        charset: of character columns, lower case.
        default: text of the default, as MySQL's ``COLUMN_DEFAULT`` prints a literal or an expression.
        default_kind: ``none``, ``null``, ``literal`` or ``expression``.
        generated: ``stored``, ``virtual`` or None.
        on_update: whether an update sets it to the current time.
        updated_apart: whether MariaDB got the default CURRENT_TIMESTAMP after ON UPDATE, which then outlives the
            default. Known only of columns whose statements were read.
        no_default: whether MariaDB gives it none even if it can't be NULL later, since its default was dropped in the
            statement that defined it. Known only of columns whose statements were read.
        values: labels of enum and set.
        declared: the type's name as it was written in a statement, upper case, if that is not :attr:`type`
            (``INTEGER``, ``DOUBLE PRECISION``).
        written: the default's text as it was written in a statement, if that is not :attr:`default`.
    """

    name: str
    type: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    collation: str | None = None
    optional: bool = True
    default: str | None = None
    default_kind: str = "none"
    auto_increment: bool = False
    generated: str | None = None
    invisible: bool = False
    comment: str | None = None
    values: tuple[str, ...] = ()
    srid: int | None = None
    on_update: bool = False
    updated_apart: bool = False
    no_default: bool = False
    declared: str | None = None
    written: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return JSON data, without attributes that have their default value."""
        return _compact(self)

    @classmethod
    def from_json(cls, data: Json, error: MakeError = damaged_history) -> Column:
        """Create a column from the data of :meth:`to_json`.

        Args:
            data: the data.
            error: makes the error for other data.

        Raises:
            FloodmarkError: it is other data.
        """
        members = stored_members(data, "a column", *_COLUMN, error)
        if "values" in members and not _are_texts(members["values"]):
            raise error("the labels of a column are not texts")
        return cls(**members)


@dataclass(frozen=True)
class Index:
    """An index.

    Attributes:
        name: ``PRIMARY`` for the primary key.
        columns: its columns in its own order; the empty text for an expression.
        lengths: how many characters of each column's values it holds (bytes of binary ones); 0: all of them;
            :data:`SOME`: not known. Empty if it holds all of each column.
        made: whether the server created it for a foreign key, and drops it when another index can serve that. Known
            only of indexes whose statement was read.
        descending: the numbers of its columns, from 0, that it holds in descending order. Known of MySQL only.
    """

    name: str
    columns: tuple[str, ...]
    unique: bool = False
    lengths: tuple[int, ...] = ()
    made: bool = False
    descending: tuple[int, ...] = ()

    @property
    def partial(self) -> bool:
        """Whether it holds only the beginning of a column's values."""
        return any(self.lengths)

    @property
    def primary(self) -> bool:
        """Whether it is the primary key."""
        return self.name == PRIMARY


@dataclass(frozen=True)
class Table:
    """A table's structure at one position of the log.

    Attributes:
        key: the columns of the events' key: the primary key in its own order, or else the first unique
            index over columns that cannot be NULL.
        indexes: all indexes, in the order in which the server keeps them.
        sequence: whether it holds a sequence of MariaDB.
    """

    database: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    charset: str | None = None
    collation: str | None = None
    comment: str | None = None
    indexes: tuple[Index, ...] = ()
    sequence: bool = False

    @property
    def primary(self) -> tuple[str, ...]:
        """The columns of the primary key; empty without one."""
        return next((index.columns for index in self.indexes if index.primary), ())

    def to_json(self) -> dict[str, Json]:
        """Return JSON data, without attributes that have their default value."""
        data = _compact(self)
        data["columns"] = [column.to_json() for column in self.columns]
        if self.indexes:
            data["indexes"] = [
                [index.name, _flags(index), *index.columns, *([list(index.lengths)] if index.partial else [])]
                for index in self.indexes
            ]
        return data

    @classmethod
    def from_json(cls, data: Json, error: MakeError = damaged_history) -> Table:
        """Create a table from the data of :meth:`to_json`.

        Args:
            data: the data.
            error: makes the error for other data.

        Raises:
            FloodmarkError: it is other data.
        """
        members = stored_members(data, "a table", *_TABLE, error)
        if not _are_texts(members.get("key", ())):
            raise error("the key of a table is not a list of names")
        members["columns"] = tuple(Column.from_json(column, error) for column in members["columns"])
        members["indexes"] = tuple(_index(index, error) for index in members.get("indexes", ()))
        return cls(**members)


_COLUMN = stored_kinds(Column), required_members(Column)
_TABLE = stored_kinds(Table), required_members(Table)


def _flags(index: Index) -> int:
    """Return what an index is as bits; from the fourth on, one for each column that it holds in descending order."""
    return index.unique + 2 * index.partial + 4 * index.made + sum(8 << number for number in index.descending)


def _index(data: Json, error: MakeError) -> Index:
    """Create an index from its name, its flags, its columns, and the lengths of these if it holds beginnings."""
    if not isinstance(data, list) or len(data) < 2:
        raise error("an index of a table is not a list of its name, its flags and its columns")
    name, flags, *parts = data
    lengths = parts.pop() if parts and isinstance(parts[-1], list) else None
    if type(flags) is not int or not _are_texts([name, *parts]):
        raise error("an index of a table is not a list of its name, its flags and its columns")
    if not flags & 2:
        lengths = []
    elif lengths is None:
        # Written by a version that did not store lengths.
        lengths = [SOME] * len(parts)
    if not all(type(length) is int for length in lengths):
        raise error("the lengths of an index's columns are not numbers")
    descending = tuple(number for number in range(len(parts)) if flags & (8 << number))
    return Index(name, tuple(parts), bool(flags & 1), tuple(lengths), bool(flags & 4), descending)


def _are_texts(items: Sequence[Json]) -> bool:
    return all(type(item) is str for item in items)


def effective_key(columns: Sequence[Column], indexes: Sequence[Index]) -> tuple[str, ...]:
    """Return the key of a table's events: primary key, or the first unique index over NOT NULL columns."""
    for index in indexes:
        if index.primary and "" not in index.columns:
            return index.columns
    required = {column.name for column in columns if not column.optional}
    for index in indexes:
        if index.unique and required.issuperset(index.columns):
            return index.columns
    return ()


def _compact(item: Column | Table) -> dict[str, Json]:
    data: dict[str, Json] = {}
    for member in fields(item):
        value = getattr(item, member.name)
        if member.default is MISSING or value != member.default:
            data[member.name] = list(value) if isinstance(value, tuple) else value
    return data


def quote(name: str) -> str:
    """Quote a name for SQL."""
    return "`" + name.replace("`", "``") + "`"


def table_name(table: Table) -> str:
    """Return a table's qualified name, quoted for SQL."""
    return f"{quote(table.database)}.{quote(table.name)}"
