"""Cases for one or both of the servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.conformance.cases.case import Case

FLAVORS = ("mysql", "mariadb")
QUIET = {"include.schema.changes": "false"}
"""The schema change topic has cases of its own."""


def both(
    name: str,
    setup: Sequence[str],
    statements: Sequence[str],
    options: dict[str, str] | None = None,
    schemas: bool = False,
    settings: dict[str, str] | None = None,
    flavors: Sequence[str] = FLAVORS,
) -> tuple[Case, ...]:
    """Return a case for each of the servers."""
    case = Case(name, tuple(setup), tuple(statements), {**QUIET, **(options or {})}, schemas, settings=settings or {})
    return tuple(replace(case, connector=flavor) for flavor in flavors)


def table(name: str, columns: Mapping[str, str], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the statements that create a table with an ``id`` and fill it.

    Args:
        name: of the table.
        columns: their definitions by their names.
        rows: SQL expressions, in the order of the columns; the last ones of a row may be left out and are NULL.
    """
    defined = ", ".join(f"{column} {definition}" for column, definition in columns.items())
    created = f"CREATE TABLE {name} (id int PRIMARY KEY, {defined})"
    filled = []
    for number, row in enumerate(rows, 1):
        values = ", ".join([str(number), *row, *["NULL"] * (len(columns) - len(row))])
        filled.append(f"INSERT INTO {name} VALUES ({values})")
    return (created, *filled)


def by_column(columns: Mapping[str, Sequence[str]]) -> tuple[dict[str, str], list[list[str]]]:
    """Return columns and rows of ``table``, from a definition and values for each column.

    Columns with fewer values than others are NULL in the last rows; the row after the last one is all NULL.
    """
    definitions = {name: given[0] for name, given in columns.items()}
    height = max(map(len, columns.values()))
    rows = [[given[i] if i < len(given) else "NULL" for given in columns.values()] for i in range(1, height + 1)]
    return definitions, rows


def streamed(name: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return statements that write a table's rows once more, change one and delete one."""
    listed = ", ".join(columns)
    return (
        f"INSERT INTO {name} (id, {listed}) SELECT id + 100, {listed} FROM {name} ORDER BY id",
        f"UPDATE {name} SET id = 99 WHERE id = 1",
        f"UPDATE {name} SET {columns[0]} = NULL WHERE id = 2",
        f"DELETE FROM {name} WHERE id IN (2, 99)",
    )
