from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.oracle.redo.scanner import Form, Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.redo.values import Statements

COLUMNS = ["ID", "NAME", "AT", "Ж"]
Found = dict[tuple[str, str], tuple[str, str | None]]
LITERALS = st.text(st.sampled_from("a'\",;() |Ж\n"), max_size=6)


def found_in(read: Statements, row: int, columns: list[str] = COLUMNS) -> Found:
    """Return form and text by side and column, of those that the statement has."""
    return {
        (side.name, name): (Form(read.forms[side, place, row]).name, read.texts(side, place)[row].as_py())
        for side in Side
        for place, name in enumerate(columns)
        if read.forms[side, place, row] != Form.ABSENT
    }


def one(statement: str, columns: list[str] = COLUMNS) -> Found:
    read = StatementReader(columns).read(pa.array([statement], pa.string()))
    assert read.problems == {}
    return found_in(read, 0, columns)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def test_each_kind_of_statement() -> None:
    assert one('insert into "S"."T"("NAME","ID") values (\'O\'\'Neil\',NULL);') == {
        ("NEW", "NAME"): ("LITERAL", "O'Neil"),
        ("NEW", "ID"): ("NULL", None),
    }
    assert one('update "S"."T" a set "ID" = \'2\', "AT" = NULL where a."ID" = \'\' and a."NAME" IS NULL;') == {
        ("NEW", "ID"): ("LITERAL", "2"),
        ("NEW", "AT"): ("NULL", None),
        ("OLD", "ID"): ("LITERAL", ""),
        ("OLD", "NAME"): ("NULL", None),
    }
    assert one('delete from "S"."T" where "ID" = \'1\' and ROWID = \'AAAR\';') == {("OLD", "ID"): ("LITERAL", "1")}
    assert one('delete from "S"."T";') == {}


@pytest.mark.parametrize(
    "text",
    [
        "TO_DATE('2026-01-02 03:04:05', 'YYYY-MM-DD HH24:MI:SS')",
        "UNISTR('a''b') || UNISTR('c')",
        "'a' || 'b'",
        "EMPTY_CLOB()",
        "SYS.XMLTYPE(f('a', (1)))",
        "-1.5E+003",
    ],
)
def test_expressions_stay_as_they_are(text: str) -> None:
    value = ("EXPRESSION", text)
    assert one(f'insert into "S"."T"("ID","NAME") values ({text},{text});') == {
        ("NEW", "ID"): value,
        ("NEW", "NAME"): value,
    }
    for end in ("", ";"):
        found = one(f'update "S"."T" set "ID" = {text}, "AT" = {text} where "ID" = {text} and "NAME" = {text}{end}')
        assert found == {
            ("NEW", "ID"): value,
            ("NEW", "AT"): value,
            ("OLD", "ID"): value,
            ("OLD", "NAME"): value,
        }


def test_what_cannot_be_shown_and_columns_that_are_none_of_the_table() -> None:
    assert one('insert into "T"("ID","ORA_ARCHIVE_STATE") values (Unsupported Type,\'0\');') == {
        ("NEW", "ID"): ("UNSUPPORTED", None)
    }
    assert one('delete from "T" where "NAME" = Unsupported Type and "ID" = \'1\';') == {
        ("OLD", "NAME"): ("UNSUPPORTED", None),
        ("OLD", "ID"): ("LITERAL", "1"),
    }


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("", "has '' where 'insert into', 'update' or 'delete from' was expected"),
        ("merge into x", "has 'merge into x' where 'insert into'"),
        ('update "T" where "ID" = \'1\';', "where 'set' was expected"),
        ('insert into "T"("ID","Ы") values (\'1\',\'2\');', "The table has no column 'Ы', which a statement"),
        ("insert into \"T\"(\"ID\") values ('1','2');", "no more values than columns"),
        ('insert into "T"("ID") values (\'secret', "a text literal without an end"),
        ('insert into "T"("ID") values (\'1\'', "where more was expected"),
        ('delete from "T" where "ID" = TO_DATE(\'1\';', "where ')' was expected"),
        ('delete from "T" where "ID" like \'1\';', "has 'like ' where '=' or 'IS NULL' was expected"),
        ('delete from "T" where "ID" = \'1\' xor "NAME" = \'2\';', "where the next column was expected"),
        ("delete from \"T\" where \"ID\" = '1' '2';", "where no text literal was expected"),
    ],
)
def test_what_cannot_be_read(statement: str, problem: str) -> None:
    """Other statements are read, and no value is shown."""
    good = 'delete from "T" where "ID" = \'7\';'
    assert list(StatementReader(COLUMNS).read(pa.array([statement], pa.string())).problems) == [0]
    read = StatementReader(COLUMNS).read(pa.array([good, statement, good], pa.string()))
    assert list(read.problems) == [1]
    assert problem in read.problems[1]
    assert "secret" not in read.problems[1]
    assert [found_in(read, row) for row in range(3)] == [
        {("OLD", "ID"): ("LITERAL", "7")},
        {},
        {("OLD", "ID"): ("LITERAL", "7")},
    ]


def test_names_with_quotes_and_other_characters() -> None:
    columns = ["it's", "a,b (c)", "漢字", "where"]
    statement = (
        "update \"O'X\".\"T'Y\" set \"it's\" = '1', \"漢字\" = '字' where \"a,b (c)\" = 'it''s' and \"where\" = '=';"
    )
    assert one(statement, columns) == {
        ("NEW", "it's"): ("LITERAL", "1"),
        ("NEW", "漢字"): ("LITERAL", "字"),
        ("OLD", "a,b (c)"): ("LITERAL", "it's"),
        ("OLD", "where"): ("LITERAL", "="),
    }
    # Two quotes in a table's name look like a literal.
    assert one('delete from "O\'X"."T\'Y" where "ID" = \'1\';') == {("OLD", "ID"): ("LITERAL", "1")}


@given(st.lists(st.lists(st.none() | LITERALS, min_size=4, max_size=4), min_size=1, max_size=12), st.integers(0, 3))
def test_values_come_back(rows: list[list[str | None]], cut: int) -> None:
    """Whatever is in literals, and wherever a statement stands in the block."""

    def item(name: str, value: str | None, null: str) -> str:
        return f'"{name}"{null}' if value is None else f'"{name}" = {quoted(value)}'

    statements = []
    for number, row in enumerate(rows):
        pairs = list(zip(COLUMNS, row, strict=True))
        where = " and ".join(item(name, value, " IS NULL") for name, value in pairs)
        if number % 3 == 0:
            values = ",".join("NULL" if value is None else quoted(value) for value in row)
            names = ",".join(f'"{name}"' for name in COLUMNS)
            statements.append(f'insert into "S"."T"({names}) values ({values});')
        elif number % 3 == 1:
            given_values = ", ".join(item(name, value, " = NULL") for name, value in pairs)
            statements.append(f'update "S"."T" set {given_values} where {where};')
        else:
            statements.append(f'delete from "S"."T" where {where};')
    cut = min(cut, len(rows) - 1)
    reader = StatementReader(COLUMNS)
    read = reader.read(pa.array(statements, pa.string()).slice(cut))
    assert read.problems == {}
    for number, row in enumerate(rows[cut:]):
        expected = {
            (side, name): ("NULL", None) if value is None else ("LITERAL", value)
            for side, kinds in (("NEW", (0, 1)), ("OLD", (1, 2)))
            if (number + cut) % 3 in kinds
            for name, value in zip(COLUMNS, row, strict=True)
        }
        assert found_in(read, number) == expected
        alone = reader.read(pa.array([statements[number + cut]], pa.string()))
        assert found_in(alone, 0) == expected


def test_statements_with_and_without_a_template() -> None:
    """Many statements of a kind are read by what they have in common; some differ from it in a letter."""
    chance = random.Random(1)
    statements, expected = [], []
    for number in range(2000):
        odd = chance.random() < 0.1
        name, null = ("NAME", "AT") if odd else ("AT", "NAME")
        call = "TO_DATE" if chance.random() < 0.5 else "XX_DATE"
        text = "it's"[: chance.randrange(5)] * 3
        values = f"'{number}',{call}('x', 'y'),{quoted(text)},EMPTY_CLOB(),'{name}' || 'b'"
        names = f'"ID","{name}","{null}","Ж","Z"'
        if chance.random() < 0.5:
            statements.append(f'insert into "S"."T"({names}) values ({values});')
            side = "NEW"
        else:
            pairs = zip(names.split(","), re.split(r",(?! )", values), strict=True)
            statements.append(f'delete from "S"."T" where {" and ".join(f"{one} = {value}" for one, value in pairs)};')
            side = "OLD"
        expected.append(
            {
                (side, "ID"): ("LITERAL", str(number)),
                (side, name): ("EXPRESSION", f"{call}('x', 'y')"),
                (side, null): ("LITERAL", text),
                (side, "Ж"): ("EXPRESSION", "EMPTY_CLOB()"),
                (side, "Z"): ("EXPRESSION", f"'{name}' || 'b'"),
            }
        )
    reader, columns = StatementReader([*COLUMNS, "Z"]), [*COLUMNS, "Z"]
    for _ in range(2):
        read = reader.read(pa.array(statements, pa.string()))
        assert read.problems == {}
        texts = {(side, place): read.texts(side, place).to_pylist() for side in Side for place in range(5)}
        for number, values_of_one in enumerate(expected):
            assert {
                (side.name, name): (Form(read.forms[side, place, number]).name, texts[side, place][number])
                for side in Side
                for place, name in enumerate(columns)
                if read.forms[side, place, number]
            } == values_of_one


def test_none() -> None:
    read = StatementReader(COLUMNS).read(pa.array([], pa.string()))
    assert read.texts(Side.OLD, 0).to_pylist() == []
