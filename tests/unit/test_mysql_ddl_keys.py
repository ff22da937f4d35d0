"""Keys that statements make and leave out: the names of indexes decide which of them a later statement is about."""

from __future__ import annotations

import pytest

from floodmark.connectors.mysql.ddl import statements
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.mysql.structures.table import Table
from floodmark.errors import DdlError

MYSQL, MARIADB = Server(), Server("mariadb", 101114)
TABLE = "CREATE TABLE t (a INT, b INT, PRIMARY KEY (a), UNIQUE b (b))"


def table(*texts: str, server: Server = MYSQL) -> Table:
    schema = Schema()
    for text in texts:
        schema = statements.apply(schema, text, Session("db"), server).schema
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


ORDERED = "CREATE TABLE t (a {type} NOT NULL, b INT{null}, UNIQUE u (a{part}){hash}, UNIQUE v (b))"


@pytest.mark.parametrize(
    ("options", "on_mysql", "on_mariadb"),
    [
        ({"type": "VARCHAR(9)"}, "a", "a"),
        ({"type": "VARCHAR(9)", "part": "(5)"}, "b", "b"),
        ({"type": "TEXT"}, "b", "b"),
        ({"type": "VARCHAR(1000) CHARACTER SET utf8mb4"}, "b", "b"),
        ({"type": "VARCHAR(768) CHARACTER SET utf8mb4"}, "a", "a"),
        ({"type": "POINT"}, "b", "b"),
        ({"type": "GEOMETRY"}, "b", "b"),
        ({"type": "INT", "hash": " USING HASH"}, "a", "b"),
    ],
)
def test_indexes_over_long_values_are_keys_only_if_there_is_no_other(
    options: dict[str, str], on_mysql: str, on_mariadb: str
) -> None:
    text = ORDERED.format(**{"null": " NOT NULL", "part": "", "hash": "", **options})
    assert table(text).key == (on_mysql,)
    assert table(text, server=MARIADB).key == (on_mariadb,)


def test_an_index_is_hashed_on_mariadb_only_by_the_statement_that_says_so() -> None:
    texts = ("CREATE TABLE t (a INT NOT NULL, b INT NOT NULL)", "CREATE UNIQUE INDEX u USING HASH ON t (a)")
    assert table(*texts, "CREATE UNIQUE INDEX v ON t (b)", server=MARIADB).key == ("a",)
    assert table(*texts, "ALTER TABLE t ADD UNIQUE v (b), ADD UNIQUE w (a) USING HASH", server=MARIADB).key == ("a",)
    assert table(texts[0], "ALTER TABLE t ADD UNIQUE w (a) USING HASH, ADD UNIQUE v (b)", server=MARIADB).key == ("b",)


def test_mariadb_keeps_the_order_of_indexes_unless_it_adds_some() -> None:
    text = ORDERED.format(type="VARCHAR(9)", null="", part="(5)", hash="")
    change = "ALTER TABLE t MODIFY b INT NOT NULL"
    assert table(text, change).key == ("b",)
    assert table(text, change, server=MARIADB).key == ("a",)
    assert table(text, f"{change}, ADD c INT UNIQUE", server=MARIADB).key == ("b",)


@pytest.mark.parametrize(
    "check", ["CHECK (a > 0)", "CHECK (a > 0) NOT ENFORCED", "CONSTRAINT c CHECK (a > 0) ENFORCED"]
)
def test_a_column_with_a_check_may_be_required(check: str) -> None:
    assert table(f"CREATE TABLE t (a INT {check} NOT NULL UNIQUE)").key == ("a",)


@pytest.mark.parametrize(
    ("statement", "on_mysql", "on_mariadb"),
    [
        ("ALTER TABLE t MODIFY b BIGINT NULL", "a", "a"),
        ("ALTER TABLE t DROP INDEX v, ADD UNIQUE v (b)", "b", "a"),
        ("ALTER TABLE t DROP INDEX v, ADD UNIQUE v (b), ADD c INT", "a", "a"),
    ],
)
def test_indexes_that_are_made_again_as_they_were(statement: str, on_mysql: str, on_mariadb: str) -> None:
    made = "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, UNIQUE v (b), UNIQUE u (a))"
    assert table(made).key == table(made, server=MARIADB).key == ("b",)
    assert table(made, statement).key == (on_mysql,)
    assert table(made, statement, server=MARIADB).key == (on_mariadb,)


def test_indexes_before_a_new_primary_key_are_sorted_as_if_it_were_not_there() -> None:
    made = "CREATE TABLE t (a INT, b INT, UNIQUE v (b), PRIMARY KEY (a, b), UNIQUE u (a))"
    for server in (MYSQL, MARIADB):
        assert table(made, server=server).key == ("a", "b")
        assert table(made, "ALTER TABLE t DROP PRIMARY KEY", server=server).key == ("a",)


def test_new_columns_are_converted_too() -> None:
    made = "CREATE TABLE t (a INT)"
    added = "ADD b CHAR(3) CHARACTER SET utf8mb3, ADD c CHAR(3) BINARY, ADD d CHAR(3) CHARACTER SET binary"
    columns = table(made, f"ALTER TABLE t {added}, CONVERT TO CHARACTER SET latin2").columns
    assert [column.collation for column in columns[1:]] == ["latin2_general_ci", "latin2_bin", None]


@pytest.mark.parametrize("text", ["CREATE TABLE t (a INT x =", "CREATE TABLE t (a INT, KEY (a) x ="])
def test_an_option_that_ends_with_the_statement_is_an_error(text: str) -> None:
    with pytest.raises(DdlError, match="found its end"):
        table(text)


def test_a_table_like_another_has_its_indexes_sorted() -> None:
    texts = (
        ORDERED.format(type="VARCHAR(9)", null="", part="(5)", hash=""),
        "ALTER TABLE t MODIFY b INT NOT NULL",
        "CREATE TABLE u LIKE t",
        "RENAME TABLE t TO v, u TO t",
    )
    assert table(*texts[:2], server=MARIADB).key == ("a",)
    assert table(*texts, server=MARIADB).key == ("b",)


@pytest.mark.parametrize(
    ("texts", "lengths"),
    [
        (("CREATE TABLE t (a CHAR(5), b TEXT, UNIQUE u (a(3), b(8)))",), (3, 8)),
        (("CREATE TABLE t (a CHAR(5), UNIQUE u (a(5)))",), ()),
        (("CREATE TABLE t (a CHAR, UNIQUE u (a(1)))",), ()),
        (("CREATE TABLE t (a CHAR(5), UNIQUE u (a(3)))", "ALTER TABLE t MODIFY a CHAR(9)"), (3,)),
        (("CREATE TABLE t (a CHAR(5), UNIQUE u (a(3)))", "ALTER TABLE t MODIFY a CHAR(2)"), ()),
        (("CREATE TABLE t (a CHAR(5), UNIQUE u (a(3)))", "ALTER TABLE t MODIFY a DATE"), ()),
        (("CREATE TABLE t (a CHAR(5), b CHAR(5), UNIQUE u (a(3), b(2)))", "ALTER TABLE t DROP a"), (2,)),
        (("CREATE TABLE t (a CHAR(5), b INT, UNIQUE u (a, b))", "ALTER TABLE t DROP a, ADD a TEXT"), (5, 0)),
    ],
)
def test_how_much_of_a_value_an_index_holds(texts: tuple[str, ...], lengths: tuple[int, ...]) -> None:
    (index,) = table(*texts).indexes
    assert index.lengths == lengths


MANY = ", ".join(f"'{number}'" for number in range(300))


@pytest.mark.parametrize("server", [MYSQL, MARIADB])
@pytest.mark.parametrize(
    ("type_", "charset", "length"),
    [
        ("VARCHAR(20)", "utf8mb4", 20),
        ("VARBINARY(20)", "utf8mb4", 20),
        ("INT", "utf8mb4", 4),
        ("DECIMAL(20, 5)", "utf8mb4", 10),
        ("DECIMAL", "utf8mb4", 5),
        ("BIT(17)", "utf8mb4", 3),
        ("DATETIME(3)", "utf8mb4", 7),
        ("YEAR", "utf8mb4", 1),
        ("ENUM('a')", "utf8mb4", 0),
        ("ENUM('a')", "latin1", 1),
        (f"ENUM({MANY})", "latin1", 2),
        ("SET('a', 'b')", "latin1", 1),
    ],
)
def test_an_index_holds_as_much_of_a_new_column_as_of_the_dropped_one(
    type_: str, charset: str, length: int, server: Server
) -> None:
    made = f"CREATE TABLE t (a {type_}, b INT, UNIQUE u (a, b)) CHARACTER SET {charset}"
    (index,) = table(made, "ALTER TABLE t DROP a, ADD a VARCHAR(30)", server=server).indexes
    assert index.lengths == ((length, 0) if length else ())
    if server is MARIADB:
        (index,) = table(made, "ALTER TABLE t ADD c YEAR, DROP a, CHANGE a c VARCHAR(30)", server=server).indexes
        assert (index.columns, index.lengths) == (("c", "b"), (length, 0) if length else ())


@pytest.mark.parametrize(
    ("type_", "on_mysql"),
    [(f"ENUM({MANY})", 2), ("ENUM('a')", 0), ("ENUM('ab')", 1), ("SET('a')", 0), ("SET('ab')", 1)],
)
def test_mysql_knows_a_labelled_column_as_a_text(type_: str, on_mysql: int) -> None:
    made = f"CREATE TABLE t (a {type_}, UNIQUE u (a)) CHARACTER SET latin1"
    for server, length in ((MYSQL, on_mysql), (MARIADB, 0)):
        (index,) = table(made, "ALTER TABLE t MODIFY a VARCHAR(30)", server=server).indexes
        assert index.lengths == ((length,) if length else ())


def test_an_index_of_beginnings_comes_behind_one_of_whole_values() -> None:
    created = "CREATE TABLE t (a CHAR(5) NOT NULL, b CHAR(5) NOT NULL, UNIQUE (a(3)), UNIQUE (b))"
    assert table(created).key == ("b",)


def test_an_index_that_replaces_the_same_one_keeps_its_place() -> None:
    found = table(
        "CREATE TABLE t (a INT, b INT, UNIQUE u (a), UNIQUE v (b))",
        "CREATE OR REPLACE UNIQUE INDEX u ON t (a)",
        server=MARIADB,
    )
    assert list(indexes(found)) == ["u", "v"]


def test_a_primary_column_that_is_there_already_cannot_be_null() -> None:
    found = table(
        "CREATE TABLE t (a INT PRIMARY KEY)", "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT NULL KEY", server=MARIADB
    )
    assert [column.optional for column in found.columns] == [False, False]
    assert found.key == ("a",)


def test_a_unique_index_that_is_hashed_serves_no_foreign_key() -> None:
    found = table(
        "CREATE TABLE t (a INT, b TEXT, UNIQUE u (a, b))",
        "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES other (a)",
        server=MARIADB,
    )
    assert indexes(found) == {"u": ("a", "b"), "f": ("a",)}


def test_indexes_of_beginnings_come_last_and_those_of_virtual_columns_after_their_like() -> None:
    found = table(
        "CREATE TABLE t (a CHAR(5), b INT AS (1) VIRTUAL, c INT,"
        " UNIQUE p (a(1)), UNIQUE v (b), UNIQUE w (c), UNIQUE x (a(1), b), UNIQUE f (a))"
    )
    assert list(indexes(found)) == ["w", "f", "v", "p", "x"]
