"""Statements that are cut, doubled and mixed: they are applied or refused, but nothing else happens."""

from __future__ import annotations

import contextlib
import random

import pytest

from floodmark.connectors.mysql.ddl import statements as ddl
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.schema_history.schema_events import key_text, schema_changes, value_text
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.mysql.structures.table import Table
from floodmark.errors import DdlError
from tests.support.ddl import FOLDER, statements

PIECES = ("(", ")", ",", "'", "`", '"', "/*", "*/", " DEFAULT ", " NOT NULL ", ";", "\\", "0x1", "(a, b)", "@", " AS ")


def mutated(text: str, source: random.Random) -> str:
    at, end = sorted(source.randrange(len(text) + 1) for _ in range(2))
    how = source.randrange(4)
    if how == 0:
        return text[:at]
    if how == 1:
        return text[:at] + text[end:]
    if how == 2:
        return text[:at] + source.choice(PIECES) + text[at:]
    return text[:end] + text[at:]


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.sql")))
def test_mutated_statements_are_applied_or_refused(name: str) -> None:
    source = random.Random(name)
    for server in (Server(), Server("mariadb", 101114)):
        schema = Schema()
        for text in statements(name):
            for one in (mutated(text, source), mutated(mutated(text, source), source), text):
                with contextlib.suppress(DdlError):
                    applied = ddl.apply(schema, one, Session("db"), server)
                    for change in schema_changes(applied, one, "db"):
                        assert key_text(change)
                        assert value_text(change, "null", 0, True)
                    if one == text:
                        schema = applied.schema
        for table in schema.tables.values():
            assert Table.from_json(table.to_json()) == table
