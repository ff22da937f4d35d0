"""Parses ``CREATE TABLE``."""

from __future__ import annotations

from dataclasses import dataclass, field

from floodmark.connectors.oracle.ddl.changes import Kind, TableChange, TableName
from floodmark.connectors.oracle.ddl.columns import ColumnDefinition, parse_column
from floodmark.connectors.oracle.ddl.constraints import Constraint, parse_constraint, sees_constraint
from floodmark.connectors.oracle.ddl.cursor import Cursor
from floodmark.connectors.oracle.ddl.edits import with_column, with_constraint
from floodmark.connectors.oracle.structures.table import Table


@dataclass
class Elements:
    """What stands in the parentheses behind a table's name, or behind ADD."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)

    def added_to(self, table: Table) -> Table:
        """Return a table with these columns and constraints."""
        for column in self.columns:
            table = with_column(table, column)
        for constraint in self.constraints:
            table = with_constraint(table, constraint)
        return table


def parse_elements(cursor: Cursor) -> Elements:
    """Parse columns and constraints in parentheses."""
    elements = Elements()
    cursor.expect("(")
    while True:
        if sees_constraint(cursor):
            elements.constraints.append(parse_constraint(cursor))
        else:
            elements.columns.append(parse_column(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return elements


def create_table(cursor: Cursor, database: str) -> tuple[TableName, TableChange | None]:
    """Parse ``CREATE TABLE``, whose words before the name are consumed already.

    Returns:
        The table's name, and what is done; None if the table is of objects, which have no columns of their own.
    """
    name = cursor.table_name()
    if cursor.accept("SHARING", "="):
        cursor.take()
    if cursor.sees("OF"):
        return name, None
    if not cursor.sees("("):
        return name, TableChange(Kind.CREATE, name, reread=True)
    elements = parse_elements(cursor)
    if not all(one.is_typed for one in elements.columns):
        # The types are those of a query, or of a file.
        return name, TableChange(Kind.CREATE, name, reread=True)
    return name, TableChange(Kind.CREATE, name, elements.added_to(Table(database, *name, ())))
