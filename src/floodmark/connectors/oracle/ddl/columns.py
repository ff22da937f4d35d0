"""Parses definitions of columns: their types, defaults and constraints."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from floodmark.connectors.oracle.ddl.column_types import ColumnType, parse_type
from floodmark.connectors.oracle.ddl.constraints import Constraint, Rule, parse_column_constraint
from floodmark.connectors.oracle.ddl.cursor import Cursor, words
from floodmark.connectors.oracle.ddl.expressions import skip_expression
from floodmark.connectors.oracle.ddl.tokens import NAME, NUMBER, STRING
from floodmark.connectors.oracle.structures.table import Column

_ATTRIBUTES = words(
    "DEFAULT NOT NULL CONSTRAINT PRIMARY UNIQUE CHECK REFERENCES SCOPE WITH GENERATED AS ENCRYPT DECRYPT VISIBLE "
    "INVISIBLE SORT COLLATE ANNOTATIONS DOMAIN RESERVABLE SUBSTITUTABLE DROP IS"
)
"""Words that follow a column's name if its type isn't given."""
_IDENTITY = words(
    "START WITH INCREMENT BY MAXVALUE NOMAXVALUE MINVALUE NOMINVALUE CYCLE NOCYCLE CACHE NOCACHE ORDER NOORDER KEEP "
    "NOKEEP SCALE NOSCALE EXTEND NOEXTEND SESSION GLOBAL LIMIT VALUE RESTART"
)
_COMPUTED = words("VIRTUAL MATERIALIZED")
_WITHOUT_EFFECT = ("VISIBLE", "INVISIBLE", "DECRYPT", "SORT", "RESERVABLE", "FORCE")


@dataclass
class ColumnDefinition:
    """A column as a statement defines it.

    Attributes:
        type: its type; None: not given.
        optional: whether it may be NULL; None: not said.
        default: its default's expression; None: not given.
        virtual: whether it is computed where it is read.
        constraints: its constraints, in order.
    """

    name: str
    type: ColumnType | None = None
    optional: bool | None = None
    default: str | None = None
    virtual: bool = False
    constraints: list[Constraint] = field(default_factory=list)

    @property
    def is_typed(self) -> bool:
        """Whether its type is given, or isn't needed since it is computed."""
        return self.type is not None or self.virtual

    @property
    def primary(self) -> Constraint | None:
        """The constraint that makes it the primary key."""
        return next((one for one in self.constraints if one.rule is Rule.PRIMARY), None)

    def column(self) -> Column:
        """Return the new column."""
        return self.applied_to(Column(self.name, ""))

    def applied_to(self, column: Column) -> Column:
        """Return a column after it was redefined."""
        if self.type is not None:
            length, scale = self.type.length, self.type.scale
            column = replace(column, type=self.type.name, length=length, scale=scale, stated=True)
        if self.optional is not None:
            column = replace(column, optional=self.optional)
        return column if self.default is None else replace(column, default=self.default)


def parse_column(cursor: Cursor) -> ColumnDefinition:
    """Parse the definition of the column that comes next."""
    definition = ColumnDefinition(cursor.column_name())
    if cursor.sees("IS", "OF"):
        _skip_of_type(cursor)
    elif not cursor.sees_any(_ATTRIBUTES) and not cursor.at_end_of_item():
        definition.type = parse_type(cursor)
    while _parse_attribute(cursor, definition):
        pass
    return definition


def _parse_attribute(cursor: Cursor, definition: ColumnDefinition) -> bool:
    if cursor.accept("DEFAULT"):
        _parse_default(cursor, definition)
    elif cursor.accept("GENERATED"):
        _parse_generated(cursor, definition)
    elif cursor.sees("AS", "(") and cursor.accept("AS"):
        _parse_computed(cursor, definition)
    elif cursor.accept("COLLATE") or cursor.accept("DOMAIN"):
        cursor.table_name()
    elif cursor.accept("ANNOTATIONS"):
        cursor.skip_parentheses()
    elif cursor.accept("ENCRYPT"):
        _skip_encryption(cursor)
    elif cursor.accept("NOT", "SUBSTITUTABLE") or cursor.accept("SUBSTITUTABLE"):
        cursor.accept("AT", "ALL", "LEVELS")
    elif not cursor.accept("DROP", "IDENTITY") and cursor.accept_any(*_WITHOUT_EFFECT) is None:
        return _parse_constraint(cursor, definition)
    return True


def _parse_constraint(cursor: Cursor, definition: ColumnDefinition) -> bool:
    found = parse_column_constraint(cursor)
    if found is None:
        return False
    definition.constraints.append(found)
    if found.rule is Rule.NULL:
        definition.optional = True
    elif found.rule is Rule.NOT_NULL and found.holds:
        definition.optional = False
    return True


def _parse_default(cursor: Cursor, definition: ColumnDefinition) -> None:
    if cursor.accept("ON", "NULL"):
        # A column with it is NOT NULL, unless it applies to inserts alone and says otherwise.
        definition.optional = False
        if cursor.accept("FOR", "INSERT") and not cursor.accept("ONLY"):
            cursor.accept("AND", "UPDATE")
    begin = cursor.at
    skip_expression(cursor)
    definition.default = cursor.slice(begin, cursor.at - 1)


def _parse_generated(cursor: Cursor, definition: ColumnDefinition) -> None:
    if not cursor.accept("ALWAYS"):
        cursor.expect("BY", "DEFAULT")
        if cursor.accept("ON", "NULL") and cursor.accept("FOR", "INSERT") and not cursor.accept("ONLY"):
            cursor.accept("AND", "UPDATE")
    cursor.expect("AS")
    if cursor.accept("IDENTITY"):
        definition.optional = False
        if cursor.sees("("):
            cursor.skip_parentheses()
        while cursor.sees_any(_IDENTITY) or cursor.next.kind == NUMBER or cursor.sees("-") or cursor.sees("+"):
            cursor.take()
    else:
        _parse_computed(cursor, definition)


def _parse_computed(cursor: Cursor, definition: ColumnDefinition) -> None:
    cursor.skip_parentheses()
    definition.virtual = True
    if cursor.sees_any(_COMPUTED):
        definition.virtual = cursor.take().value == "VIRTUAL"
    cursor.accept("BY", "USER", "FOR", "STATISTICS")
    if cursor.accept("EVALUATE", "USING"):
        _skip_edition(cursor)
    while cursor.accept("UNUSABLE"):
        cursor.accept_any("BEFORE", "BEGINNING")
        cursor.accept("WITH")
        _skip_edition(cursor)


def _skip_edition(cursor: Cursor) -> None:
    if cursor.accept_any("CURRENT", "NULL") is not None:
        cursor.expect("EDITION")
    else:
        cursor.expect("EDITION")
        cursor.name()


def _skip_encryption(cursor: Cursor) -> None:
    if cursor.accept("USING"):
        cursor.string()
    if cursor.accept("IDENTIFIED", "BY"):
        cursor.take()
    if cursor.next.kind in (STRING, NAME):
        cursor.take()
    cursor.accept("NO")
    cursor.accept("SALT")


def _skip_of_type(cursor: Cursor) -> None:
    cursor.expect("IS", "OF")
    cursor.accept("TYPE")
    cursor.skip_parentheses()
