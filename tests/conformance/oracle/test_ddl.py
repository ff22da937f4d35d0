"""What statements do to tables, beside Debezium's parser of them.

Recorded with ``python -m tests.conformance.oracle.test_ddl``; with a JDK, as many new statements as
``FLOODMARK_DDL_STATEMENTS`` says are compared, too.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.oracle.ddl.changes import Kind, TableChange, TableName
from floodmark.connectors.oracle.ddl.statements import apply
from floodmark.connectors.oracle.ddl.tokens import scan
from floodmark.connectors.oracle.structures.described import described_table
from floodmark.connectors.oracle.structures.table import Table
from floodmark.errors import DdlError
from tests.conformance.oracle.debezium_classes import called
from tests.support.oracle.ddl_corpus import FILES, statements
from tests.support.oracle.ddl_writer import OWNER, DdlWriter

GOLDEN = Path(__file__).parents[1] / "goldens" / "oracle" / "ddl.jsonl"
SCRIPTS, LENGTH, SEED = 20, 25, 1
EVENTS = {
    Kind.CREATE: "CREATE_TABLE",
    Kind.ALTER: "ALTER_TABLE",
    Kind.DROP: "DROP_TABLE",
    Kind.TRUNCATE: "TRUNCATE_TABLE",
    # Debezium reports a comment as if the table were created.
    Kind.COMMENT: "CREATE_TABLE",
}
COMPARED = ("name", "typeName", "jdbcType", "length", "scale", "position", "optional", "comment")
Outcome = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """Statements that Debezium doesn't understand as Oracle does.

    Attributes:
        why: what Debezium does, and what is right.
        statements: they are executed in order.
        columns: name, type, length, scale and whether it is optional, of the columns of the last changed table.
        key: of that table.
        refused: whether Debezium refuses one of the statements.
    """

    why: str
    statements: tuple[str, ...]
    columns: tuple[tuple[Any, ...], ...]
    key: tuple[str, ...] = ()
    refused: bool = False


A = ("A", "NUMBER", 9, 0, True)
DIFFERENCES = (
    Difference(
        "NUMBER(*) has no scale, like NUMBER", ("CREATE TABLE t (a NUMBER(*))",), (("A", "NUMBER", 38, None, True),)
    ),
    Difference(
        "NUMBER(*,3) has a scale",
        ("CREATE TABLE t (a NUMBER(*,3))",),
        (("A", "NUMBER", 38, 3, True),),
    ),
    Difference("DEC is DECIMAL", ("CREATE TABLE t (a DEC(9))",), (A,)),
    Difference(
        "CHARACTER VARYING is VARCHAR2, not CHAR",
        ("CREATE TABLE t (a CHARACTER VARYING(3))",),
        (("A", "VARCHAR2", 3, None, True),),
    ),
    *(
        Difference(f"{text} is a type of Oracle", (f"CREATE TABLE t (a {text})",), (("A", *kind, True),), refused=True)
        for text, kind in (
            ("CHAR VARYING(3)", ("VARCHAR2", 3, None)),
            ("NCHAR VARYING(3)", ("NVARCHAR2", 3, None)),
            ("NATIONAL CHAR(3)", ("NCHAR", 3, None)),
            ("NATIONAL CHARACTER VARYING(3)", ("NVARCHAR2", 3, None)),
            ("LONG VARCHAR", ("LONG", None, None)),
            ("LONG RAW", ("LONG RAW", None, None)),
        )
    ),
    Difference(
        "types with their owner, as DBMS_METADATA writes them, have a name",
        ('CREATE TABLE t (a "SYS"."XMLTYPE")',),
        (("A", "XMLTYPE", None, None, True),),
    ),
    Difference(
        "a type of the system has one name, with its owner or without",
        ("CREATE TABLE t (a MDSYS.SDO_GEOMETRY)",),
        (("A", "SDO_GEOMETRY", None, None, True),),
    ),
    Difference(
        "the digits of the seconds aren't those of the days",
        ("CREATE TABLE t (a INTERVAL DAY TO SECOND(3))",),
        (("A", "INTERVAL DAY TO SECOND", 2, 3, True),),
    ),
    Difference(
        "names that differ in case are different",
        ('CREATE TABLE t ("a" NUMBER(9), A NUMBER(9))',),
        (("a", "NUMBER", 9, 0, True), A),
    ),
    Difference(
        "a table that is created again was dropped in between",
        ("CREATE TABLE t (b NUMBER(9))", "CREATE TABLE t (a NUMBER(9))"),
        (A,),
    ),
    Difference("IF NOT EXISTS is of Oracle 23", ("CREATE TABLE IF NOT EXISTS t (a NUMBER(9))",), (A,), refused=True),
    Difference(
        "identity columns can't be NULL",
        ("CREATE TABLE t (a NUMBER(9) GENERATED ALWAYS AS IDENTITY)",),
        (("A", "NUMBER", 9, 0, False),),
    ),
    Difference(
        "a default for NULL makes a column NOT NULL",
        ("CREATE TABLE t (a NUMBER(9) DEFAULT ON NULL 3)",),
        (("A", "NUMBER", 9, 0, False),),
    ),
    Difference(
        "a constraint that is off lets NULL in",
        ("CREATE TABLE t (a NUMBER(9) NOT NULL DISABLE)",),
        (A,),
    ),
    Difference(
        "a constraint that holds for new rows alone lets old ones be NULL",
        ("CREATE TABLE t (a NUMBER(9))", "ALTER TABLE t MODIFY a NOT NULL ENABLE NOVALIDATE"),
        (A,),
    ),
    Difference(
        "partitions may be merged by a list of them",
        ("CREATE TABLE t (a NUMBER(9))", "ALTER TABLE t MERGE PARTITIONS p1, p2 INTO PARTITION p3"),
        (A,),
        refused=True,
    ),
    Difference(
        "a key may be added with its column",
        ("CREATE TABLE t (a NUMBER(9))", "ALTER TABLE t ADD b NUMBER(9) PRIMARY KEY"),
        (A, ("B", "NUMBER", 9, 0, False)),
        ("B",),
    ),
    Difference(
        "a key may be added to a column that is there",
        ("CREATE TABLE t (a NUMBER(9))", "ALTER TABLE t MODIFY a PRIMARY KEY"),
        (("A", "NUMBER", 9, 0, False),),
        ("A",),
    ),
    Difference(
        "a key may be dropped by its name",
        ("CREATE TABLE t (a NUMBER(9), CONSTRAINT k PRIMARY KEY (a))", "ALTER TABLE t DROP CONSTRAINT k"),
        (("A", "NUMBER", 9, 0, False),),
    ),
    Difference(
        "a key is dropped with any of its columns",
        (
            "CREATE TABLE t (a NUMBER(9), b NUMBER(9), PRIMARY KEY (a, b))",
            "ALTER TABLE t DROP COLUMN b CASCADE CONSTRAINTS",
        ),
        (("A", "NUMBER", 9, 0, False),),
    ),
    Difference(
        "computed columns have no values in the log, and are left out",
        ("CREATE TABLE t (a NUMBER(9))", "ALTER TABLE t ADD (b AS (a + 1))"),
        (A,),
        refused=True,
    ),
    Difference(
        "RENAME is another way to rename a table",
        ("CREATE TABLE t (a NUMBER(9))", "RENAME t TO u"),
        (A,),
    ),
    Difference(
        "KEEP INDEX may follow a key that is dropped",
        ("CREATE TABLE t (a NUMBER(9) PRIMARY KEY)", "ALTER TABLE t DROP PRIMARY KEY KEEP INDEX"),
        (("A", "NUMBER", 9, 0, False),),
        refused=True,
    ),
    Difference(
        "unused columns were gone before",
        ("CREATE TABLE t (a NUMBER(9))", "ALTER TABLE t DROP UNUSED COLUMNS"),
        (A,),
        refused=True,
    ),
)


class Follower:
    """Follows tables along statements."""

    def __init__(self) -> None:
        self.tables: dict[TableName, Table] = {}

    def apply(self, statement: str) -> list[TableChange]:
        """Apply a statement to the tables that are known and return its changes."""
        changes = apply(statement, self.tables, OWNER, "D")
        for change in changes:
            if change.previous is not None:
                self.tables.pop(change.previous, None)
            if change.kind is Kind.DROP:
                self.tables.pop(change.name, None)
            elif change.table is not None:
                self.tables[change.name] = change.table
        return changes


def ours(script: list[str]) -> list[Outcome]:
    """Return the events and changed tables of each statement of a script."""
    follower, found = Follower(), list[Outcome]()
    for statement in script:
        changes = follower.apply(statement)
        # Debezium doesn't report changes of tables that it doesn't know.
        events = [
            [EVENTS[one.kind], ".".join(one.name), None if one.previous is None else ".".join(one.previous)]
            for one in changes
            if not (one.reread and one.kind is Kind.ALTER)
        ]
        found.append(
            {"events": events, "tables": {".".join(name): shown(one) for name, one in follower.tables.items()}}
        )
    return changed(found)


def changed(outcomes: list[Outcome]) -> list[Outcome]:
    """Return outcomes with only those tables that a statement changed; None for those that are gone."""
    before: Outcome = {}
    found = []
    for one in outcomes:
        if "exception" in one:
            found.append(one)
            continue
        after = one["tables"]
        tables = {name: after.get(name) for name in sorted({*before, *after}) if before.get(name) != after.get(name)}
        found.append({"events": one["events"], "tables": tables})
        before = after
    return found


def shown(table: Table) -> Outcome:
    described: Any = described_table(table, comments=True)
    columns = [
        {**{name: one[name] for name in COMPARED}, "defaultValueExpression": joined(one["defaultValueExpression"])}
        for one in described["columns"]
    ]
    return {
        "columns": columns,
        "primaryKeyColumnNames": described["primaryKeyColumnNames"],
        "comment": described["comment"],
    }


def joined(expression: str | None) -> str | None:
    """Return an expression as Debezium has it, without what is between its tokens."""
    return None if expression is None else "".join(token.text for token in scan(expression))


def without_old_lengths(outcome: Outcome) -> Outcome:
    """Return an outcome of Debezium without lengths that are left from a column's type before."""
    for table in filter(None, outcome.get("tables", {}).values()):
        for column in table["columns"]:
            if column["typeName"] in UNSIZED:
                column["length"] = None
    return outcome


UNSIZED = {"DATE", "CLOB", "NCLOB", "BLOB", "BINARY_FLOAT", "BINARY_DOUBLE", "ROWID", "XMLTYPE"}


def debezium(given: list[list[str]]) -> list[list[Outcome]]:
    """Return what Debezium makes of scripts."""
    outcomes = called([["ddl", [[OWNER, one] for one in script]] for script in given])
    return [changed(list(map(without_old_lengths, script))) for script in outcomes]


def compare(script: list[str], theirs: list[Outcome]) -> None:
    for statement, found, one in zip(script, ours(script), theirs, strict=True):
        assert found == one, statement


def scripts() -> dict[str, list[str]]:
    """Return the scripts whose outcomes are recorded, by their names."""
    found = {name: statements(name) for name in FILES}
    for number in range(SCRIPTS):
        writer = DdlWriter(random.Random(SEED + number), common=True)
        found[f"generated {number}"] = [writer.statement() for _ in range(LENGTH)]
    for number, difference in enumerate(DIFFERENCES):
        found[f"difference {number}"] = list(difference.statements)
    return found


@cache
def recorded() -> dict[str, tuple[list[str], list[Outcome]]]:
    with GOLDEN.open(encoding="utf-8") as file:
        return {one["name"]: (one["script"], one["outcomes"]) for one in map(json.loads, file)}


@pytest.mark.parametrize("name", [*FILES, *(f"generated {number}" for number in range(SCRIPTS))])
def test_recorded_scripts(name: str) -> None:
    script, outcomes = recorded()[name]
    if name in FILES:
        assert script == statements(name)
    compare(script, outcomes)


@pytest.mark.parametrize("number", range(len(DIFFERENCES)), ids=lambda number: DIFFERENCES[number].why)
def test_what_differs_from_debezium(number: int) -> None:
    difference = DIFFERENCES[number]
    script, theirs = recorded()[f"difference {number}"]
    assert script == list(difference.statements)
    assert any("exception" in one for one in theirs) == difference.refused
    assert ours(script) != theirs
    follower = Follower()
    for statement in script:
        follower.apply(statement)
    (table,) = follower.tables.values()
    shown_length = [
        (one.name, one.type, 38 if one.type == "NUMBER" and one.length is None else one.length, one.scale, one.optional)
        for one in table.columns
    ]
    assert (tuple(shown_length), table.key) == (difference.columns, difference.key)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_generated_scripts() -> None:
    left = int(os.environ.get("FLOODMARK_DDL_STATEMENTS", "20000"))
    while left > 0:
        found = []
        for _ in range(min(400, -(-left // LENGTH))):
            writer = DdlWriter(random.Random(), common=True)
            found.append([writer.statement() for _ in range(LENGTH)])
        outcomes = debezium(found)
        for script, one in zip(found, outcomes, strict=True):
            compare(script, one)
        left -= len(found) * LENGTH


def test_statements_that_are_not_understood() -> None:
    with pytest.raises(DdlError, match=r"ALTER TABLE t WOBBLE"):
        apply("ALTER TABLE t WOBBLE", {(OWNER, "T"): Table("D", OWNER, "T", ())}, OWNER, "D")


def main() -> None:
    """Write the golden file."""
    found = scripts()
    outcomes = debezium(list(found.values()))
    with GOLDEN.open("w", encoding="utf-8") as file:
        for (name, script), one in zip(found.items(), outcomes, strict=True):
            file.write(json.dumps({"name": name, "script": script, "outcomes": one}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
