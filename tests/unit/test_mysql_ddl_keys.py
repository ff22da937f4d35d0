"""Keys that statements make and leave out: the names of indexes decide which of them a later statement is about."""

from __future__ import annotations

import pytest

from floodmark.connectors.mysql.schema import ddl
from floodmark.connectors.mysql.schema.schema import Schema
from floodmark.connectors.mysql.schema.session import Server, Session
from floodmark.connectors.mysql.schema.table import Table

MYSQL, MARIADB = Server(), Server("mariadb", 101114)
TABLE = "CREATE TABLE t (a INT, b INT, PRIMARY KEY (a), UNIQUE b (b))"


def table(*texts: str, server: Server = MYSQL) -> Table:
    schema = Schema()
    for text in texts:
        schema = ddl.apply(schema, text, Session("db"), server).schema
    return schema.tables["db", "t"]


def indexes(found: Table) -> dict[str, tuple[str, ...]]:
    return {index.name: index.columns for index in found.indexes}


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ("KEY ((a + 1)), KEY ((a + 2))", ["functional_index", "functional_index_2"]),
        ("KEY (b, (a + 1))", ["functional_index"]),
        (
            "KEY ((a + 1)), KEY functional_index (a), KEY ((a + 2))",
            ["functional_index", "functional_index_2", "functional_index_3"],
        ),
        ("KEY ((a + 1)), KEY (functional)", ["functional", "functional_index"]),
    ],
)
def test_indexes_over_expressions_are_named_before_all_others(keys: str, names: list[str]) -> None:
    assert sorted(indexes(table(f"CREATE TABLE t (a INT, b INT, functional INT, {keys})"))) == names


def test_a_column_with_the_name_of_indexes_over_expressions_comes_after_them() -> None:
    found = table("CREATE TABLE t (functional_index INT, a INT, KEY ((a + 1)), KEY (functional_index))")
    assert indexes(found) == {"functional_index": ("",), "functional_index_2": ("functional_index",)}


def test_a_dropped_index_over_an_expression_frees_its_name() -> None:
    found = table(
        "CREATE TABLE t (a INT NOT NULL, KEY ((a + 1)), UNIQUE (a, (a + 2)), UNIQUE u (a))",
        "ALTER TABLE t DROP INDEX functional_index_2, ADD UNIQUE ((a + 3))",
        "ALTER TABLE t DROP INDEX functional_index",
    )
    assert indexes(found) == {"u": ("a",), "functional_index_2": ("",)}


@pytest.mark.parametrize("definition", ["INT UNIQUE PRIMARY KEY", "INT PRIMARY KEY UNIQUE", "SERIAL PRIMARY KEY"])
def test_a_primary_column_has_no_other_unique_index_on_mariadb(definition: str) -> None:
    text = f"CREATE TABLE t (a {definition})"
    assert set(indexes(table(text))) == {"PRIMARY", "a"}
    assert set(indexes(table(text, server=MARIADB))) == {"PRIMARY"}
    assert set(indexes(table("CREATE TABLE t (a INT UNIQUE, PRIMARY KEY (a))", server=MARIADB))) == {"PRIMARY", "a"}


@pytest.mark.parametrize(
    ("clauses", "columns", "names"),
    [
        ("ADD COLUMN IF NOT EXISTS (b INT, c INT, b INT UNIQUE)", ["a", "b", "c"], ["PRIMARY", "b"]),
        ("ADD COLUMN IF NOT EXISTS (c INT UNIQUE, UNIQUE IF NOT EXISTS (c))", ["a", "b", "c"], ["PRIMARY", "b", "c"]),
        ("ADD COLUMN IF NOT EXISTS c INT PRIMARY KEY", ["a", "b", "c"], ["PRIMARY", "b"]),
        ("ADD COLUMN IF NOT EXISTS b INT PRIMARY KEY", ["a", "b"], ["PRIMARY", "b"]),
        ("ADD COLUMN IF NOT EXISTS b INT UNIQUE", ["a", "b"], ["PRIMARY", "b"]),
        ("ADD COLUMN IF NOT EXISTS a INT UNIQUE", ["a", "b"], ["PRIMARY", "a", "b"]),
        ("ADD COLUMN IF NOT EXISTS c INT, ADD COLUMN IF NOT EXISTS c TEXT", ["a", "b", "c"], ["PRIMARY", "b"]),
        ("DROP COLUMN b, ADD COLUMN IF NOT EXISTS b INT", ["a"], ["PRIMARY"]),
        ("CHANGE b c INT, ADD COLUMN IF NOT EXISTS c TEXT", ["a", "c"], ["PRIMARY", "b"]),
        ("MODIFY COLUMN IF EXISTS x INT PRIMARY KEY", ["a", "b"], ["PRIMARY", "b"]),
        ("MODIFY COLUMN IF EXISTS b INT UNIQUE", ["a", "b"], ["PRIMARY", "b"]),
        ("DROP INDEX b, ADD UNIQUE IF NOT EXISTS (b)", ["a", "b"], ["PRIMARY"]),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY IF NOT EXISTS (b)", ["a", "b"], ["b"]),
        ("RENAME INDEX b TO c, ADD UNIQUE IF NOT EXISTS b (a)", ["a", "b"], ["PRIMARY", "c"]),
        ("ADD UNIQUE IF NOT EXISTS (a), ADD KEY IF NOT EXISTS (a)", ["a", "b"], ["PRIMARY", "a", "a_2", "b"]),
        ("ADD KEY IF NOT EXISTS (a), ADD KEY IF NOT EXISTS a (b)", ["a", "b"], ["PRIMARY", "a", "b"]),
    ],
)
def test_mariadb_leaves_out_what_was_there_before_the_statement(
    clauses: str, columns: list[str], names: list[str]
) -> None:
    found = table(TABLE, f"ALTER TABLE t {clauses}", server=MARIADB)
    assert [column.name for column in found.columns] == columns
    assert sorted(indexes(found)) == names


def test_a_primary_key_that_is_left_out_leaves_its_columns_alone() -> None:
    found = table(TABLE, "ALTER TABLE t ADD PRIMARY KEY IF NOT EXISTS (b)", server=MARIADB)
    assert found.key == ("a",)
    assert [column.optional for column in found.columns] == [False, True]


def test_create_index_if_not_exists_looks_at_names() -> None:
    found = table(TABLE, "CREATE UNIQUE INDEX IF NOT EXISTS B ON t (a)", server=MARIADB)
    assert indexes(found) == {"PRIMARY": ("a",), "b": ("b",)}


@pytest.mark.parametrize(
    ("clauses", "key"),
    [
        ("DROP COLUMN b, ADD COLUMN b INT NOT NULL", ("b",)),
        ("CHANGE b c INT NOT NULL, ADD COLUMN b INT NOT NULL", ("c",)),
        ("CHANGE b c INT NOT NULL, ADD COLUMN b INT NOT NULL FIRST", ("b",)),
        ("DROP COLUMN b", ()),
    ],
)
def test_a_new_column_takes_its_name_s_place_in_indexes(clauses: str, key: tuple[str, ...]) -> None:
    found = table("CREATE TABLE t (a INT, b INT NOT NULL UNIQUE)", f"ALTER TABLE t {clauses}")
    assert found.key == key


FOREIGN = "FOREIGN KEY (a) REFERENCES p (id)"


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        (FOREIGN, {"a": ("a",)}),
        (f"CONSTRAINT f {FOREIGN}", {"f": ("a",)}),
        (f"{FOREIGN}, UNIQUE u (a, b)", {"u": ("a", "b")}),
        (f"CONSTRAINT f {FOREIGN}, CONSTRAINT g FOREIGN KEY (a, b) REFERENCES p (x, y)", {"g": ("a", "b")}),
        (f"CONSTRAINT f {FOREIGN}, CONSTRAINT g {FOREIGN}", {"g": ("a",)}),
        ("c INT REFERENCES p (id)", {"c": ("c",)}),
    ],
)
def test_a_foreign_key_makes_an_index_unless_another_one_does(
    elements: str, expected: dict[str, tuple[str, ...]]
) -> None:
    for server in (MYSQL, MARIADB):
        assert indexes(table(f"CREATE TABLE t (a INT, b INT, {elements})", server=server)) == expected


def test_an_index_made_for_a_foreign_key_gives_way_to_a_stated_one() -> None:
    made = f"CREATE TABLE t (a INT NOT NULL, b INT, {FOREIGN})"
    found = table(made, "ALTER TABLE t ADD UNIQUE (a)", "ALTER TABLE t ADD KEY (a)")
    assert found.key == ("a",)
    assert indexes(found) == {"a": ("a",), "a_2": ("a",)}
    renamed = table(made, "ALTER TABLE t RENAME INDEX a TO c", "ALTER TABLE t ADD KEY (a)")
    assert indexes(renamed) == {"a": ("a",), "c": ("a",)}


def test_what_an_index_was_made_for_is_kept() -> None:
    found = table(f"CREATE TABLE t (a INT, {FOREIGN})")
    assert Table.from_json(found.to_json()) == found
    assert found.indexes[0].made


def test_a_foreign_key_of_a_column_has_its_name_on_mariadb() -> None:
    text = "CREATE TABLE t (a INT CONSTRAINT f REFERENCES p (id))"
    assert indexes(table(text, server=MARIADB)) == {"f": ("a",)}


def test_older_servers_pass_over_foreign_keys_of_columns() -> None:
    assert table("CREATE TABLE t (a INT REFERENCES p (id))", server=Server(version=80400)).indexes == ()
