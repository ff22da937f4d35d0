"""Parses constraints: of a column, and of the table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from floodmark.connectors.oracle.ddl.cursor import Cursor, words


class Rule(Enum):
    """What a constraint demands."""

    NOT_NULL = auto()
    NULL = auto()
    PRIMARY = auto()
    OTHER = auto()


@dataclass(frozen=True)
class Constraint:
    """A constraint.

    Attributes:
        rule: what it demands.
        name: its name; None: Oracle chooses one.
        columns: of a primary key of the table; empty for constraints of a column.
        holds: whether the dictionary relies on it: it is enabled, and existing rows are checked.
    """

    rule: Rule
    name: str | None = None
    columns: tuple[str, ...] = ()
    holds: bool = True


_STATES = words(
    "NOT DEFERRABLE INITIALLY RELY NORELY USING ENABLE DISABLE VALIDATE NOVALIDATE EXCEPTIONS PRECHECK NOPRECHECK"
)
_AFTER_INDEX = words(
    "ENABLE DISABLE VALIDATE NOVALIDATE RELY NORELY EXCEPTIONS INITIALLY DEFERRABLE NOT NULL CONSTRAINT PRIMARY UNIQUE "
    "CHECK REFERENCES DEFAULT ADD MODIFY DROP RENAME SET"
)
"""Words that end ``USING INDEX``: a further state or constraint, or another clause of ``ALTER TABLE``."""


_SWITCHED = words("ROW ALL TABLE LOGICAL CONTAINER_MAP CONTAINERS_DEFAULT")
"""What else ENABLE and DISABLE are said of: clauses of the statement, not states of a constraint."""


def sees_constraint(cursor: Cursor) -> bool:
    """Return whether a constraint of a table comes next, or what else stands among its columns without being one."""
    second = cursor.ahead(1).value
    if cursor.sees("CONSTRAINT") or cursor.sees("CONSTRAINTS"):
        return cursor.ahead(2).value in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "(") or second in ("PRIMARY", "CHECK")
    return (
        cursor.sees("PRIMARY", "KEY")
        or cursor.sees("FOREIGN", "KEY")
        or cursor.sees("UNIQUE", "(")
        or cursor.sees("CHECK", "(")
        or cursor.sees("SUPPLEMENTAL", "LOG")
        or cursor.sees("PERIOD", "FOR")
        or cursor.sees("SCOPE", "FOR")
        or cursor.sees("REF", "(")
    )


def parse_constraint(cursor: Cursor) -> Constraint:
    """Parse what ``sees_constraint`` has seen."""
    if cursor.sees("SUPPLEMENTAL") or cursor.sees("PERIOD") or cursor.sees("SCOPE") or cursor.sees("REF"):
        _skip_other(cursor)
        return Constraint(Rule.OTHER)
    name = _parse_symbol(cursor)
    if cursor.accept("PRIMARY", "KEY"):
        columns = tuple(cursor.column_names())
        return Constraint(Rule.PRIMARY, name, columns, _parse_state(cursor))
    if cursor.accept("UNIQUE"):
        cursor.skip_parentheses()
    elif cursor.accept("FOREIGN", "KEY"):
        cursor.skip_parentheses()
        _skip_references(cursor)
    elif cursor.accept("CHECK"):
        cursor.skip_parentheses()
    else:
        cursor.fail("a constraint")
    _parse_state(cursor)
    return Constraint(Rule.OTHER, name)


def parse_column_constraint(cursor: Cursor) -> Constraint | None:
    """Parse a constraint of a column; return None if there is none."""
    begin = cursor.at
    name = _parse_symbol(cursor) if cursor.sees("CONSTRAINT") else None
    rule = Rule.OTHER
    if cursor.accept("NOT", "NULL"):
        rule = Rule.NOT_NULL
    elif cursor.accept("NULL"):
        rule = Rule.NULL
    elif cursor.accept("PRIMARY", "KEY"):
        rule = Rule.PRIMARY
    elif cursor.accept("CHECK"):
        cursor.skip_parentheses()
    elif cursor.sees("REFERENCES"):
        _skip_references(cursor)
    elif cursor.accept("SCOPE", "IS"):
        cursor.table_name()
    elif not cursor.accept("UNIQUE") and not cursor.accept("WITH", "ROWID"):
        cursor.at = begin
        return None
    return Constraint(rule, name, holds=_parse_state(cursor))


def _parse_symbol(cursor: Cursor) -> str | None:
    if cursor.accept_any("CONSTRAINT", "CONSTRAINTS") is None:
        return None
    if cursor.sees("PRIMARY", "KEY") or cursor.sees("CHECK", "("):
        return None
    return cursor.name()


def _parse_state(cursor: Cursor) -> bool:
    """Skip the state of a constraint; return whether it is in force for all rows."""
    holds = True
    while cursor.sees_any(_STATES):
        if cursor.accept("NOT", "DEFERRABLE") or cursor.accept("USING", "NO", "INDEX"):
            continue
        if cursor.sees("NOT"):
            break
        if cursor.accept("USING", "INDEX"):
            _skip_index(cursor)
        elif cursor.accept("EXCEPTIONS", "INTO"):
            cursor.table_name()
        elif cursor.accept("INITIALLY"):
            cursor.take()
        elif cursor.ahead(1).value in _SWITCHED:
            break
        else:
            holds &= cursor.take().value not in ("DISABLE", "NOVALIDATE")
    return holds


def _skip_index(cursor: Cursor) -> None:
    if cursor.is_name() and not cursor.sees_any(_AFTER_INDEX):
        cursor.take()
    cursor.skip_until(_AFTER_INDEX)


def _skip_references(cursor: Cursor) -> None:
    cursor.expect("REFERENCES")
    cursor.table_name()
    if cursor.sees("("):
        cursor.skip_parentheses()
    if cursor.accept("ON", "DELETE") and not cursor.accept("SET", "NULL"):
        cursor.expect("CASCADE")


def _skip_other(cursor: Cursor) -> None:
    """Skip supplemental log groups, periods and references of the whole table."""
    while not cursor.at_end_of_item() and not cursor.sees_any(words("ADD MODIFY DROP RENAME SET")):
        cursor.skip_one()


def skip_key_index(cursor: Cursor) -> None:
    """Skip what becomes of dependent objects where a constraint is dropped or disabled."""
    cursor.accept("CASCADE")
    if not cursor.accept("KEEP", "INDEX"):
        cursor.accept("DROP", "INDEX")
    cursor.accept("ONLINE")


def skip_switched_constraint(cursor: Cursor) -> None:
    """Skip a constraint that is enabled or disabled."""
    _skip_existing(cursor)
    if cursor.accept("USING", "INDEX"):
        _skip_index(cursor)
    if cursor.accept("EXCEPTIONS", "INTO"):
        cursor.table_name()
    skip_key_index(cursor)


def skip_modified_constraint(cursor: Cursor) -> None:
    """Skip a constraint and its new state."""
    _skip_existing(cursor)
    _parse_state(cursor)
    skip_key_index(cursor)


def sees_existing_constraint(cursor: Cursor) -> bool:
    """Return whether a constraint that exists comes next."""
    return cursor.sees("CONSTRAINT") or cursor.sees("PRIMARY", "KEY") or cursor.sees("UNIQUE", "(")


def _skip_existing(cursor: Cursor) -> None:
    if cursor.accept("PRIMARY", "KEY"):
        pass
    elif cursor.accept("UNIQUE"):
        cursor.skip_parentheses()
    else:
        cursor.expect("CONSTRAINT")
        cursor.name()
