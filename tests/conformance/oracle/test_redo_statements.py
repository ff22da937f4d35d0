"""Our reader of SQL_REDO and Debezium's parser, on generated statements."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from floodmark.connectors.oracle.redo.scanner import Form, Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from tests.conformance.oracle.record_redo import GOLDEN
from tests.conformance.oracle.recorded_calls import INPUTS
from tests.conformance.oracle.redo_parser import Values, debezium_values
from tests.conformance.oracle.redo_writer import COLUMNS, Writer

SEED = int(os.environ.get("FLOODMARK_REDO_SEED", "2"))
BLOCK = 5000


def our_values(columns: Sequence[str], statements: Sequence[str]) -> list[tuple[Values, Values] | None]:
    """Return the same as `debezium_values`, by its rules of which side has what."""
    read = StatementReader(columns).read(pa.array(statements, pa.string()))
    texts = {side: [read.texts(side, column).to_pylist() for column in range(len(columns))] for side in Side}
    found: list[tuple[Values, Values] | None] = []
    for number, statement in enumerate(statements):
        if number in read.problems:
            found.append(None)
            continue
        old, new = ([texts[side][column][number] for column in range(len(columns))] for side in Side)
        if statement.startswith("update"):
            given = read.forms[Side.NEW, :, number]
            new = [
                was if form in (Form.ABSENT, Form.UNSUPPORTED) else is_now
                for was, is_now, form in zip(old, new, given, strict=True)
            ]
        found.append((old, new))
    return found


def compare(statements: Sequence[str], theirs: Sequence[tuple[Values, Values] | None]) -> None:
    for statement, expected, found in zip(statements, theirs, our_values(COLUMNS, statements), strict=True):
        # Debezium has no values on the side that a statement doesn't have.
        sides = expected and tuple(side or [None] * len(COLUMNS) for side in expected)
        assert found == sides, statement


def test_recorded_statements() -> None:
    """Each value is what Debezium's parser has found."""
    with GOLDEN.open(encoding="utf-8") as file:
        recorded = [json.loads(line) for line in file]
    assert len(recorded) > 1000
    compare([one["statement"] for one in recorded], [(one["old"], one["new"]) for one in recorded])


@pytest.mark.long
@pytest.mark.parametrize("alike", [False, True])
def test_generated_statements(alike: bool) -> None:
    """Each value is what Debezium's parser finds (needs a JDK)."""
    chance = random.Random(SEED)
    writer = Writer(chance)
    for _ in range(0, INPUTS, BLOCK):
        if alike:
            writer = Writer(chance, alike=True)
        statements = [writer.statement() for _ in range(BLOCK)]
        compare(statements, debezium_values(COLUMNS, statements))
