"""Statements about Oracle's tables in varying spelling, beside a plain model of the tables."""

from __future__ import annotations

import contextlib
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.connectors.oracle.ddl.changes import Kind, TableName
from floodmark.connectors.oracle.ddl.statements import apply
from floodmark.connectors.oracle.ddl.tokens import STRING, scan
from floodmark.connectors.oracle.structures.table import Table
from floodmark.errors import DdlError
from tests.support.oracle.ddl_model import ModelColumn, ModelTable
from tests.support.oracle.ddl_writer import OWNER, DdlWriter

STATEMENTS = 25
PIECES = ("(", ")", ",", "'", '"', "/*", "*/", " DEFAULT ", " NOT NULL ", ";", "q'[", " AS (", "(a, b)", ".", " TO ")


def follow(tables: dict[TableName, Table], statement: str) -> None:
    """Keep the structures after a statement, as a caller does that captures all tables."""
    for change in apply(statement, tables, OWNER, "D"):
        assert not change.reread
        if change.previous is not None:
            del tables[change.previous]
        if change.kind is Kind.DROP:
            tables.pop(change.name)
        elif change.table is not None:
            assert (change.table.owner, change.table.name) == change.name
            tables[change.name] = change.table


def plain(expression: str | None) -> list[str] | None:
    return (
        None
        if expression is None
        else [token.text if token.kind == STRING else token.value.upper() for token in scan(expression)]
    )


def as_model(table: Table) -> ModelTable:
    columns = [
        ModelColumn(one.name, one.type, one.length, one.scale, one.optional, one.default, one.comment)
        for one in table.columns
    ]
    return ModelTable(columns, list(table.key), list(table.virtual), table.comment)


def normal(tables: dict[str, ModelTable]) -> dict[str, object]:
    return {
        name: (
            [
                (one.name, one.type, one.length, one.scale, one.optional, plain(one.default), one.comment)
                for one in table.columns
            ],
            table.key,
            table.virtual,
            table.comment,
        )
        for name, table in tables.items()
    }


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**64))
def test_statements_have_the_effect_that_a_plain_model_has(seed: int) -> None:
    chance = random.Random(seed)
    writer, tables = DdlWriter(chance), dict[TableName, Table]()
    for _ in range(STATEMENTS):
        statement = writer.statement()
        follow(tables, statement)
        found = {name: as_model(table) for (_, name), table in tables.items()}
        assert normal(found) == normal(writer.tables), statement


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**64))
def test_mutated_statements_are_applied_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    writer, tables = DdlWriter(chance), dict[TableName, Table]()
    for _ in range(STATEMENTS):
        statement = writer.statement()
        at = chance.randrange(len(statement) + 1)
        mutated = chance.choice(
            [statement[:at], statement[:at] + chance.choice(PIECES) + statement[at:], statement[at:] + statement]
        )
        with contextlib.suppress(DdlError):
            apply(mutated, tables, OWNER, "D")
        follow(tables, statement)
