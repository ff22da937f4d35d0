"""The clauses of an ``ALTER TABLE``, and how they change a table when they are applied together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from floodmark.connectors.mysql.ddl.column_types import AS_BINARY, Charset, ColumnType, sized_like
from floodmark.connectors.mysql.ddl.create import TableOptions, finished
from floodmark.connectors.mysql.ddl.cursor import Cursor
from floodmark.connectors.mysql.ddl.definition import ColumnDefinition, settle_timestamps
from floodmark.connectors.mysql.ddl.key_lengths import lengths_kept
from floodmark.connectors.mysql.ddl.keys import KeyDefinition, sorting, without_void
from floodmark.connectors.mysql.ddl.literals import default_text
from floodmark.connectors.mysql.ddl.schema import TableId
from floodmark.connectors.mysql.ddl.tokens import BITS
from floodmark.connectors.mysql.structures.charsets import DEFAULT, encoded, max_bytes
from floodmark.connectors.mysql.structures.table import Column, Index, Table
from floodmark.errors import DdlError

_GROWN = {"tinytext": "text", "text": "mediumtext", "mediumtext": "longtext"}

Edit = Callable[[Column], Column]
NOW = "CURRENT_TIMESTAMP"


@dataclass
class Clauses:
    """The clauses of an ``ALTER TABLE``.

    Attributes:
        defined: columns added or redefined, in order: name of the old column or None, definition.
        dropped, dropped_keys: names in lower case.
        renamed, renamed_keys: new names by old ones in lower case.
        edited: changes of single columns by their old names in lower case.
        without_default: columns whose default is dropped, in lower case.
        conversion: the character set that all columns get; None if they keep theirs.
        renamed_to: the table's new name.
        beside: whether there are clauses that don't concern the table's definition: a new name, or keys switched on.
        rewrites: whether there are clauses of its definition other than those of indexes.
    """

    defined: list[tuple[str | None, ColumnDefinition]] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    edited: list[tuple[str, Edit]] = field(default_factory=list)
    without_default: set[str] = field(default_factory=set)
    keys: list[KeyDefinition] = field(default_factory=list)
    dropped_keys: set[str] = field(default_factory=set)
    renamed_keys: dict[str, str] = field(default_factory=dict)
    periods: dict[str, tuple[str, str]] = field(default_factory=dict)
    options: TableOptions = field(default_factory=TableOptions)
    conversion: TableOptions | None = None
    renamed_to: TableId | None = None
    beside: bool = False
    rewrites: bool = False

    @property
    def sorts(self) -> bool:
        """Whether MySQL sorts the table's indexes even if neither they nor the columns change."""
        return self.rewrites or (self.beside and bool(self.keys or self.dropped_keys))


@dataclass
class _Place:
    """A column of the new table.

    Attributes:
        was: the name by which the old table's indexes know it, in lower case.
        new: whether the server takes it for a new column: one that is added, or a second definition of an old one.
    """

    was: str
    name: str
    column: Column | ColumnDefinition
    new: bool = False


def altered(table: Table, clauses: Clauses, of_database: Charset, cursor: Cursor) -> Table:
    """Return the table that results from the clauses.

    Args:
        of_database: the default character set of its database.
    """
    old = Charset(table.charset or "utf8mb4", table.collation or "utf8mb4_general_ci")
    conversion = clauses.conversion
    converted = None if conversion is None else conversion.chosen(old, cursor, of_database)
    # COLLATE DEFAULT refers to the table's old character set, even if the table is converted (MariaDB).
    unconverted = clauses.options.collation == DEFAULT and clauses.options.charset is None
    charset = clauses.options.chosen(converted if converted and not unconverted else old, cursor, of_database)
    options = clauses.options
    places = _places(table, clauses, converted)
    if clauses != Clauses(renamed_to=clauses.renamed_to, beside=clauses.beside, rewrites=clauses.rewrites):
        for place, column in zip(places, settle_timestamps([place.column for place in places], cursor), strict=True):
            place.column = column
    before = {column.name.lower(): column for column in table.columns}
    # A new column may have the name of one that is dropped.
    kept_names = before.keys() - clauses.dropped
    columns = [
        _column(place, before[place.was] if place.was in kept_names else None, clauses, charset, converted, cursor)
        for place in places
    ]
    names: dict[str, str] = {}
    for place in places:
        # A new column takes the place that one of the same name had in an index.
        names.setdefault(place.was, place.name)
    # A new column replaces a dropped one of the same name, or one that has a later place.
    first = {place.was: place for place in reversed(places)}
    replaced = (was for was, place in first.items() if place.new)
    lengths = lengths_kept(table.columns, replaced, cursor.server.mariadb)
    kept = (_altered_index(index, clauses, names, lengths) for index in table.indexes)
    changed = replace(
        table,
        columns=tuple(columns),
        indexes=tuple(index for index in kept if index is not None),
        charset=charset.charset,
        collation=charset.collation,
        comment=table.comment if options.comment is None else options.comment or None,
    )
    keys = without_void(clauses.keys, table.indexes)
    nulls = any(
        isinstance(place.column, ColumnDefinition) and place.was in before and _only_null(before[place.was], column)
        for place, column in zip(places, columns, strict=True)
    )
    defined = {place.name for place in places if isinstance(place.column, ColumnDefinition)}
    result = finished(changed, keys, sorting(cursor, keys, nulls), clauses.periods, defined)
    return result if clauses.sorts and not cursor.server.mariadb else as_it_was(result, table, cursor)


def _only_null(before: Column, after: Column) -> bool:
    """Return whether a column whose type is the same changed in whether it may be NULL."""
    kept = ("type", "length", "scale", "unsigned", "charset", "collation", "values")
    return before.optional != after.optional and all(getattr(before, one) == getattr(after, one) for one in kept)


def as_it_was(changed: Table, table: Table, cursor: Cursor) -> Table:
    """Return the table with the old order of its indexes if its columns and indexes are the same as before."""
    same = changed.columns == table.columns and set(changed.indexes) == set(table.indexes)
    if not same or (cursor.server.mariadb and table.key != table.primary):
        # MariaDB recreates a unique index that serves as the primary key.
        return changed
    return replace(changed, indexes=table.indexes, key=table.key)


def _column(
    place: _Place, before: Column | None, clauses: Clauses, charset: Charset, converted: Charset | None, cursor: Cursor
) -> Column:
    if isinstance(place.column, Column):
        return place.column
    type_ = place.column.type
    if converted is not None:
        charset = _convert_type(type_, charset, converted, cursor.server.mariadb)
        if before is not None and not cursor.server.mariadb:
            type_.name = sized_like(type_, before, charset)
    made = place.column.column(charset, cursor)
    edited = _edited(made, place.name, clauses)
    if cursor.server.mariadb and place.name.lower() in clauses.without_default:
        edited = replace(edited, no_default=True)
    if cursor.server.mariadb and made.default_kind == "expression" and (made.default or "").startswith(NOW):
        # MariaDB looks for the column's other clauses, but a default of theirs doesn't replace the current time.
        return replace(
            edited,
            default=made.default,
            default_kind=made.default_kind,
            written=made.written,
            on_update=made.on_update,
        )
    return edited


def _convert_type(type_: ColumnType, charset: Charset, converted: Charset, mariadb: bool) -> Charset:
    """Remove what a redefined column declares of its character set where a conversion of the table overrides it.

    Args:
        charset: that of the table after the statement.
        converted: that to which the table's columns are converted.

    Returns:
        The default character set that applies to the column.
    """
    declared = type_.charset is not None or type_.collation not in (None, DEFAULT)
    if mariadb and not declared:
        # MariaDB refers BINARY and COLLATE DEFAULT to the table, whose own character set may be another one.
        if type_.binary or type_.collation == DEFAULT or charset.charset == "binary":
            return charset
    elif "binary" in (type_.charset, type_.collation):
        return charset
    type_.charset = type_.collation = None
    type_.binary = type_.binary and not declared
    return converted


def _edited(column: Column, name: str, clauses: Clauses) -> Column:
    for edited, edit in clauses.edited:
        if edited == name.lower():
            column = edit(column)
    return column


def _places(table: Table, clauses: Clauses, converted: Charset | None) -> list[_Place]:
    """Return the columns of the new table in their order."""
    present = {column.name.lower() for column in table.columns}
    redefined: dict[str, ColumnDefinition] = {}
    for old, definition in clauses.defined:
        if old is not None and old.lower() not in clauses.dropped:
            redefined.setdefault(old.lower(), definition)
    places = _remaining(table, clauses, redefined, converted)
    added: list[_Place] = []
    for number, (old, definition) in enumerate(clauses.defined):
        if old is None:
            earlier = {one.name.lower() for _, one in clauses.defined[:number]}
            if not (definition.conditional and definition.name.lower() in present | earlier):
                added.append(_Place(definition.name.lower(), definition.name, definition, new=True))
                _insert(places, added[-1], definition.place)
        elif old.lower() in present and definition is redefined.get(old.lower()):
            _move(places, definition)
        elif old.lower() in present or not definition.conditional:
            _define_again(places, added, old, definition)
    return places


def _remaining(
    table: Table, clauses: Clauses, redefined: Mapping[str, ColumnDefinition], converted: Charset | None
) -> list[_Place]:
    """Return the columns that are not dropped, in their old order.

    Args:
        redefined: the first definition of each by its old name, in lower case.
    """
    places = []
    for column in table.columns:
        key = column.name.lower()
        definition = redefined.get(key)
        if definition is not None:
            places.append(_Place(key, definition.name, definition))
        elif key not in clauses.dropped:
            column = _edited(replace(column, name=clauses.renamed.get(key, column.name)), key, clauses)
            places.append(_Place(key, column.name, column if converted is None else _converted(column, converted)))
    return places


def _move(places: list[_Place], definition: ColumnDefinition) -> None:
    """Move a redefined column, which can't be done before: earlier clauses may put columns after its old place."""
    if definition.place is not None:
        for moved in [place for place in places if place.column is definition]:
            places.remove(moved)
            _insert(places, moved, definition.place)


def _define_again(places: list[_Place], added: list[_Place], old: str, definition: ColumnDefinition) -> None:
    """Apply a redefinition of a column that is dropped or was redefined before.

    MariaDB takes it for another definition of a column that the statement adds under its new name.
    """
    for place in [place for place in added if place.name.lower() == definition.name.lower()]:
        added.remove(place)
        places.remove(place)
        added.append(_Place(old.lower(), definition.name, definition, new=True))
        _insert(places, added[-1], definition.place)


def _insert(places: list[_Place], new: _Place, after: str | None) -> None:
    if after is None:
        places.append(new)
    elif after == "":
        places.insert(int(bool(places) and _is_generated_key(places[0].column)), new)
    else:
        at = next((at for at, place in enumerate(places) if place.name.lower() == after.lower()), None)
        if at is None:
            raise DdlError(f"The statement puts a column after '{after}', which the table does not have.")
        places.insert(at + 1, new)


def _is_generated_key(column: Column | ColumnDefinition) -> bool:
    """Return whether MySQL added the column as a primary key (``sql_generate_invisible_primary_key``)."""
    return column.name == "my_row_id" and column.invisible and column.auto_increment


def _altered_index(index: Index, clauses: Clauses, names: Mapping[str, str], kept: Mapping[str, int]) -> Index | None:
    key = index.name.lower()
    if key in clauses.dropped_keys:
        return None
    found = [names.get(column.lower()) if column else "" for column in index.columns]
    columns = tuple(column for column in found if column is not None)
    if not columns:
        return None
    before = zip(index.columns, found, index.lengths or [0] * len(found), strict=True)
    lengths = tuple(length or kept.get(was.lower(), 0) for was, column, length in before if column is not None)
    left = [number for number, column in enumerate(found) if column is not None]
    descending = tuple(left.index(number) for number in index.descending if number in left)
    name = clauses.renamed_keys.get(key)
    made = index.made and name is None
    return replace(index, name=name or index.name, columns=columns, lengths=lengths, made=made, descending=descending)


def _converted(column: Column, charset: Charset) -> Column:
    if column.charset is None:
        return column
    type_ = column.type
    if charset.charset == "binary":
        default = column.default
        if default is not None and column.default_kind == "literal" and type_ in ("char", "varchar"):
            default = default_text(ColumnType(AS_BINARY[type_], ""), BITS, encoded(default, column.charset).hex())
        return replace(column, type=AS_BINARY.get(type_, type_), charset=None, collation=None, default=default)
    if max_bytes(charset.charset) > max_bytes(column.charset):
        type_ = _GROWN.get(type_, type_)
    return replace(column, type=type_, charset=charset.charset, collation=charset.collation)
