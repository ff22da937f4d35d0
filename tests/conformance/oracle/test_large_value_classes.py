"""What is read of statements about XML and long texts, beside classes of Debezium's Oracle connector.

Recorded with ``python -m tests.conformance.oracle.test_large_value_classes``; with a JDK, as many new calls as
``FLOODMARK_REDO_INPUTS`` says are compared, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from floodmark.connectors.oracle.redo.large_values import long_strings, xml_documents
from floodmark.connectors.oracle.redo.large_values.large_objects import Selections
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from tests.conformance.oracle.recorded_calls import FAILED, RecordedCalls
from tests.conformance.oracle.test_classes import LOB_COLUMNS, PIECES

BINARY, TEXT = "XML sql_redo not re-executable", "XML sql_redo"


class Caller:
    """Makes calls.

    Args:
        chance: of the choices.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def call(self) -> list[Any]:
        kinds = [self._binary_begin, self._text_begin, self._binary_write, self._text_write, self._long_string]
        return self._chance.choice(kinds)()

    def _text(self) -> str:
        return "".join(self._chance.choices(PIECES, k=self._chance.randrange(6)))

    def _where(self, prefix: str = "") -> str:
        # Debezium doesn't halve the quotes of these values.
        values = [f"'{self._text().replace(chr(39), '')}'", "NULL", "HEXTORAW('00ff')", "TO_DATE('x', 'y')"]
        chosen = ((name, self._chance.choice(values)) for name in ("ID", "D"))
        return " and ".join(
            f'{prefix}"{name}" IS NULL' if value == "NULL" else f'{prefix}"{name}" = {value}' for name, value in chosen
        )

    def _binary_begin(self) -> list[Any]:
        statement = f'XML DOC BEGIN:  select "C" from "S"."T" where {self._where()}'
        return ["xml begin", statement, BINARY, LOB_COLUMNS]

    def _text_begin(self) -> list[Any]:
        where = self._where(self._chance.choice(["", "a."]))
        return ["xml begin", f'update "S"."T" a set a."C" = XMLType(:1) where {where}', TEXT, LOB_COLUMNS]

    def _binary_write(self) -> list[Any]:
        # Debezium can't read bytes that are none.
        text = self._text() or "a"
        end = self._chance.choice(["\n amount: ", " amount: ", ": "])
        hexadecimal = f"HEXTORAW('{text.encode().hex()}{self._chance.choice([')', chr(39) + ')'])}"
        value = self._chance.choice([f"'{text}'", hexadecimal])
        return ["xml write", f"XML_REDO := {value}{end}{len(text.encode())}", BINARY]

    def _text_write(self) -> list[Any]:
        statement = self._chance.choice(["XML_REDO := NULL", "", " ", f"<a>{self._text()}</a>"])
        return ["xml write", statement, TEXT]

    def _long_string(self) -> list[Any]:
        update = f'update "S"."T" set "C" = :VAR where {self._where()}'.replace("'", "''")
        end = self._chance.choice(["", "\n", " \n "])
        return ["long string", f"DECLARE \n VAR VARCHAR2(32767); \nBEGIN\n Stmt := '{update}';{end}", LOB_COLUMNS]


def ours(call: list[Any]) -> Any:
    """Return what Floodmark makes of a call."""
    match call:
        case ["xml begin", statement, _, columns]:
            return named(xml_documents.documents, statement, columns)
        case ["xml write", statement, info]:
            piece = xml_documents.piece(statement, info)
            return piece.decode() if isinstance(piece, bytes) else piece
        case ["long string", statement, columns]:
            return named(long_strings.long_strings, statement, columns)
    raise ValueError(call)


def named(read: Callable[[pa.StringArray], Selections], statement: str, columns: list[str]) -> list[Any]:
    """Return the column that a statement names, and the values by which it names the row."""
    selected = read(pa.array([statement], pa.string()))
    values = StatementReader(columns).read(selected.rows)
    assert values.problems == {}
    found = [values.texts(Side.OLD, number)[0].as_py() for number in range(len(columns))]
    return [selected.columns[0].as_py(), found]


def compare(call: list[Any], result: Any) -> None:
    if isinstance(result, dict) and FAILED in result:
        raise AssertionError(f"Debezium refuses {call}.")
    assert ours(call) == result, call


CALLS = RecordedCalls("large_value_classes.jsonl", 300, lambda chance: Caller(chance).call)


def test_recorded_calls() -> None:
    for call, result in CALLS.recorded():
        compare(call, result)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_generated_calls() -> None:
    for call, result in CALLS.generated():
        compare(call, result)


if __name__ == "__main__":
    CALLS.record()
