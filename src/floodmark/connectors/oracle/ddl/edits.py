"""The changes that clauses make to a table's structure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from floodmark.connectors.oracle.ddl.columns import ColumnDefinition
from floodmark.connectors.oracle.ddl.constraints import Constraint, Rule
from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.errors import DdlError


def with_column(table: Table, definition: ColumnDefinition) -> Table:
    """Return a table with a further column, which replaces one of the same name."""
    if definition.virtual:
        return replace(table, virtual=(*table.virtual, definition.name))
    column = definition.column()
    if any(one.name == column.name for one in table.columns):
        # The structure was read from the dictionary after the statement was executed.
        columns = tuple(column if one.name == column.name else one for one in table.columns)
    else:
        columns = (*table.columns, column)
    return _with_own_key(replace(table, columns=columns), definition)


def with_modified(table: Table, definition: ColumnDefinition) -> Table:
    """Return a table with a column that is redefined.

    Raises:
        DdlError: it doesn't have the column.
    """
    if definition.name in table.virtual or definition.virtual:
        return table
    if definition.name not in {one.name for one in table.columns}:
        raise _unknown(table, definition.name)
    columns = tuple(definition.applied_to(one) if one.name == definition.name else one for one in table.columns)
    return _with_own_key(replace(table, columns=columns), definition)


def _with_own_key(table: Table, definition: ColumnDefinition) -> Table:
    primary = definition.primary
    return table if primary is None else with_key(table, (definition.name,), primary.name)


def with_constraint(table: Table, constraint: Constraint) -> Table:
    """Return a table with a further constraint."""
    return with_key(table, constraint.columns, constraint.name) if constraint.rule is Rule.PRIMARY else table


def with_key(table: Table, key: Sequence[str], name: str | None) -> Table:
    """Return a table with another primary key, whose columns can't be NULL.

    Raises:
        DdlError: it doesn't have one of the columns.
    """
    present = {one.name for one in table.columns}
    for one in key:
        if one not in present and one not in table.virtual:
            raise _unknown(table, one)
    columns = tuple(replace(one, optional=False) if one.name in key else one for one in table.columns)
    # Events have no computed columns, so a key with one can't be theirs.
    shown = tuple(key) if present.issuperset(key) else ()
    return replace(table, columns=columns, key=shown, key_name=name)


def without_key(table: Table) -> Table:
    """Return a table without its primary key."""
    return replace(table, key=(), key_name=None)


def without_constraint(table: Table, name: str) -> Table:
    """Return a table without a constraint."""
    return without_key(table) if name == table.key_name else table


def with_renamed_constraint(table: Table, old: str, new: str) -> Table:
    """Return a table with a constraint under another name."""
    return replace(table, key_name=new) if old == table.key_name else table


def without_columns(table: Table, names: Collection[str]) -> Table:
    """Return a table without some columns, and without a key that has one of them."""
    columns = tuple(one for one in table.columns if one.name not in names)
    virtual = tuple(one for one in table.virtual if one not in names)
    left = replace(table, columns=columns, virtual=virtual)
    return left if set(table.key).isdisjoint(names) else without_key(left)


def with_renamed(table: Table, old: str, new: str) -> Table:
    """Return a table with a column under another name.

    Raises:
        DdlError: it has neither of the names.
    """
    names = {one.name for one in table.columns}
    if old not in names and old not in table.virtual:
        if new in names or new in table.virtual:
            # The structure was read from the dictionary after the statement was executed.
            return table
        raise _unknown(table, old)
    return replace(
        table,
        columns=tuple(replace(one, name=new) if one.name == old else one for one in table.columns),
        key=tuple(new if one == old else one for one in table.key),
        virtual=tuple(new if one == old else one for one in table.virtual),
    )


def with_comment(table: Table, column: str | None, comment: str) -> Table:
    """Return a table with another comment of its own, or of a column; an empty one removes it."""
    text = comment or None
    if column is None:
        return replace(table, comment=text)

    def commented(one: Column) -> Column:
        return replace(one, comment=text) if one.name == column else one

    return replace(table, columns=tuple(map(commented, table.columns)))


def _unknown(table: Table, column: str) -> DdlError:
    return DdlError(f'The table "{table.owner}"."{table.name}" has no column "{column}" that the statement changes.')
