"""Clauses of one statement together: their order, and what sessions and table options make of columns."""

from __future__ import annotations

import pytest

from floodmark.connectors.mysql.ddl import statements
from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.mysql.structures.table import Column, Table

MYSQL, MARIADB = Server(), Server("mariadb", 101114)
SESSION = Session("db")
UNTOLD = Session("db", explicit_timestamps=False)
DATABASES = {"db": Charset("latin1", "latin1_bin"), "other": Charset("utf8mb4", "utf8mb4_bin")}


def table(*texts: str, server: Server = MYSQL, session: Session = SESSION) -> Table:
    schema = Schema(DATABASES)
    for text in texts:
        schema = statements.apply(schema, text, session, server).schema
    return schema.tables["db", "t"]


def names(found: Table) -> list[str]:
    return [column.name for column in found.columns]


def of_time(column: Column) -> tuple[str | None, bool]:
    return column.default, column.on_update


@pytest.mark.parametrize(
    ("clauses", "order"),
    [
        ("ADD w INT AFTER b, MODIFY b INT FIRST", "bawcd"),
        ("MODIFY c INT AFTER d, MODIFY d INT FIRST", "dabc"),
        ("MODIFY d INT AFTER a, ADD x INT AFTER d, MODIFY a INT FIRST, ADD y INT AFTER a", "aydxbc"),
        ("CHANGE a e INT AFTER d, ADD z INT AFTER e", "bcdez"),
        ("ADD x INT FIRST, ADD y INT FIRST, ADD z INT AFTER x", "yxzabcd"),
    ],
)
def test_a_column_stays_where_it_is_until_it_is_moved(clauses: str, order: str) -> None:
    found = table("CREATE TABLE t (a INT, b INT, c INT, d INT)", f"ALTER TABLE t {clauses}")
    assert "".join(names(found)) == order


NOW, ZERO = ("CURRENT_TIMESTAMP", True), ("0000-00-00 00:00:00", False)


def test_only_the_table_s_first_timestamp_is_the_time_of_changes() -> None:
    found = table(
        "CREATE TABLE t (a INT)",
        "ALTER TABLE t ADD b TIMESTAMP",
        "ALTER TABLE t ADD c TIMESTAMP",
        "ALTER TABLE t ADD d TIMESTAMP FIRST, ADD e TIMESTAMP FIRST",
        session=UNTOLD,
    )
    assert {column.name: of_time(column) for column in found.columns if column.type == "timestamp"} == {
        "e": NOW,
        "d": ZERO,
        "b": NOW,
        "c": ZERO,
    }


def test_a_timestamp_that_updates_set_begins_at_zero() -> None:
    (column,) = table("CREATE TABLE t (a TIMESTAMP(3) ON UPDATE NOW(3))", session=UNTOLD).columns
    assert of_time(column) == ("0000-00-00 00:00:00.000", True)


def test_mariadb_s_timestamps_that_cannot_be_null_have_another_default() -> None:
    text = "CREATE TABLE t (a TIMESTAMP DEFAULT NULL, b TIMESTAMP DEFAULT NULL, c TIMESTAMP AS (a))"
    first, second, generated = table(text, session=UNTOLD, server=MARIADB).columns
    assert (of_time(first), of_time(second)) == (NOW, ZERO)
    assert [first.optional, generated.optional] == [False, True]


@pytest.mark.parametrize("clause", ["SET DEFAULT '2020-01-01'", "SET DEFAULT NULL", "DROP DEFAULT", "SET DEFAULT (1)"])
def test_another_default_ends_updates_on_mariadb(clause: str) -> None:
    texts = ("CREATE TABLE t (a DATETIME DEFAULT NOW() ON UPDATE NOW())", f"ALTER TABLE t ALTER a {clause}")
    assert table(*texts).columns[0].on_update
    assert not table(*texts, server=MARIADB).columns[0].on_update


@pytest.mark.parametrize(
    ("default", "on_mysql", "on_mariadb"),
    [
        ("(5)", ("literal", "5"), ("literal", "5")),
        ("((5))", ("literal", "5"), ("literal", "5")),
        ("(NULL)", ("null", None), ("null", None)),
        ("(-5)", ("expression", "-5"), ("literal", "-5")),
        ("(1 + 1)", ("expression", "1 + 1"), ("expression", "1 + 1")),
        ("(NOW())", ("expression", "NOW()"), ("expression", "CURRENT_TIMESTAMP")),
    ],
)
def test_parentheses_around_a_new_default(
    default: str, on_mysql: tuple[str, str | None], on_mariadb: tuple[str, str | None]
) -> None:
    for server, expected in ((MYSQL, on_mysql), (MARIADB, on_mariadb)):
        (column,) = table(
            "CREATE TABLE t (a INT)", f"ALTER TABLE t ALTER a SET DEFAULT {default}", server=server
        ).columns
        assert (column.default_kind, column.default) == expected


def test_mariadb_may_set_the_default_of_a_column_that_it_adds() -> None:
    found = table("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT, ALTER b SET DEFAULT 9", server=MARIADB)
    assert found.columns[1].default == "9"


TEXT = "CREATE TABLE t (a VARCHAR(9)) CHARACTER SET latin2"


@pytest.mark.parametrize(
    ("options", "of_table"),
    [
        ("CHARSET = DEFAULT", "latin1_swedish_ci"),
        ("COLLATE = DEFAULT", "latin2_general_ci"),
        ("CHARSET latin1 COLLATE DEFAULT", "latin1_swedish_ci"),
        ("COLLATE DEFAULT CHARSET DEFAULT", "latin1_swedish_ci"),
        ("COLLATE latin1_german1_ci CHARSET DEFAULT", "latin1_german1_ci"),
        ("COLLATE latin1_german1_ci CHARSET latin1", "latin1_german1_ci"),
    ],
)
def test_the_default_charset_is_the_database_s_and_the_default_collation_the_charset_s(
    options: str, of_table: str
) -> None:
    assert table(TEXT, f"ALTER TABLE t {options}", server=MARIADB).collation == of_table


def test_a_column_s_default_collation_is_that_of_its_charset() -> None:
    text = "CREATE TABLE t (a VARCHAR(9) COLLATE DEFAULT, b VARCHAR(9) CHARSET latin2 COLLATE DEFAULT, c VARCHAR(9))"
    found = table(f"{text} COLLATE latin1_german1_ci", server=MARIADB)
    assert [column.collation for column in found.columns] == [
        "latin1_swedish_ci",
        "latin2_general_ci",
        "latin1_german1_ci",
    ]


@pytest.mark.parametrize(
    ("clauses", "on_mysql", "on_mariadb"),
    [
        ("CONVERT TO CHARACTER SET utf8mb4, COLLATE utf8mb4_bin", "utf8mb4_bin", "utf8mb4_bin"),
        ("COLLATE utf8mb4_bin, CONVERT TO CHARACTER SET utf8mb4", "utf8mb4_0900_ai_ci", "utf8mb4_bin"),
        ("CONVERT TO CHARACTER SET utf8mb4", "utf8mb4_0900_ai_ci", "utf8mb4_general_ci"),
    ],
)
def test_a_conversion_is_of_columns_and_options_are_of_the_table(clauses: str, on_mysql: str, on_mariadb: str) -> None:
    for server, expected in ((MYSQL, on_mysql), (MARIADB, on_mariadb)):
        found = table(TEXT, f"ALTER TABLE t {clauses}, ADD b VARCHAR(3)", server=server)
        assert found.collation == expected
        assert {column.collation for column in found.columns} == {server.default_collation("utf8mb4")}


def test_converting_to_the_default_means_another_one_to_each_server() -> None:
    texts = (TEXT, "ALTER TABLE db.t CONVERT TO CHARACTER SET DEFAULT")
    assert table(*texts).collation == "latin1_bin"
    assert table(*texts, server=MARIADB).collation == "latin1_swedish_ci"
    elsewhere = statements.apply(Schema({**DATABASES}, {("db", "t"): table(TEXT)}), texts[1], Session("other"), MYSQL)
    assert elsewhere.schema.tables["db", "t"].collation == "utf8mb4_bin"


def test_a_database_s_default_charset_is_the_server_s() -> None:
    session = Session("db", collation="latin2_croatian_ci")
    schema = Schema(DATABASES)
    for text, expected in (
        ("ALTER DATABASE db COLLATE DEFAULT", "latin1_swedish_ci"),
        ("ALTER DATABASE db CHARACTER SET DEFAULT", "latin2_general_ci"),
    ):
        schema = statements.apply(schema, text, session, MARIADB).schema
        assert schema.databases["db"].collation == expected


def test_what_was_there_gets_mariadb_s_time_of_changes_too() -> None:
    created = table("CREATE TABLE t (a INT, b TIMESTAMP NOT NULL, c TIMESTAMP NOT NULL, KEY k (a))")
    schema = Schema(DATABASES, {("db", "t"): created})
    for text in ("ALTER TABLE t ADD d INT", "CREATE INDEX i ON t (a)", "DROP INDEX k ON t", "ALTER TABLE t RENAME u"):
        changed = statements.apply(schema, text, UNTOLD, MARIADB).schema.tables
        (found,) = changed.values()
        expected = (None, False) if "RENAME" in text else NOW
        assert [of_time(column) for column in found.columns[1:3]] == [expected, (None, False)]


@pytest.mark.parametrize("type_", ["DATETIME", "TIMESTAMP"])
def test_a_required_time_that_updates_set_begins_at_zero_on_mariadb(type_: str) -> None:
    text = f"CREATE TABLE t (a {type_} NOT NULL ON UPDATE NOW())"
    assert of_time(table(text).columns[0]) == (None, True)
    assert of_time(table(text, server=MARIADB).columns[0]) == ("0000-00-00 00:00:00", True)


def test_updates_go_on_where_the_default_was_not_the_current_time() -> None:
    texts = ("CREATE TABLE t (a DATETIME DEFAULT '2020-01-01' ON UPDATE NOW())", "ALTER TABLE t ALTER a DROP DEFAULT")
    assert table(*texts, server=MARIADB).columns[0].on_update


def test_a_generated_column_has_no_default() -> None:
    text = "CREATE TABLE t (a INT AS (1))"
    for clause in ("SET DEFAULT 5", "DROP DEFAULT"):
        (column,) = table(text, f"ALTER TABLE t ALTER a {clause}", server=MARIADB).columns
        assert (column.default_kind, column.default) == ("none", None)


@pytest.mark.parametrize(
    ("clauses", "columns"),
    [
        ("ADD b INT, MODIFY b TEXT, ADD d INT", [("a", "int"), ("key", "int"), ("b", "text"), ("d", "int")]),
        ("ADD c INT, ADD e INT, CHANGE c e TEXT FIRST", [("e", "text"), ("a", "int"), ("key", "int"), ("c", "int")]),
        (
            "MODIFY `key` TIME NOT NULL FIRST, ADD n CHAR, ADD b BLOB AFTER `key`, CHANGE `key` n BIT",
            [("key", "time"), ("b", "blob"), ("a", "int"), ("n", "bit")],
        ),
        (
            "CHANGE `key` b INT, ADD `key` TEXT, MODIFY `key` TINYINT, MODIFY `key` BIGINT",
            [("a", "int"), ("b", "int"), ("key", "bigint")],
        ),
        ("ADD b YEAR, ADD c TIME, DROP `key`, CHANGE `key` b BLOB", [("a", "int"), ("c", "time"), ("b", "blob")]),
    ],
)
def test_mariadb_may_define_a_column_again_that_it_adds(clauses: str, columns: list[tuple[str, str]]) -> None:
    found = table("CREATE TABLE t (a INT, `key` INT, KEY k (`key`))", f"ALTER TABLE t {clauses}", server=MARIADB)
    assert [(column.name, column.type) for column in found.columns] == columns
    # The index stays with the first definition of its column.
    assert [index.columns for index in found.indexes] == [("b",) if "CHANGE `key` b" in clauses else ("key",)]


def test_a_default_is_converted_to_bytes_with_its_column() -> None:
    found = table(
        "CREATE TABLE t (a VARCHAR(5) CHARACTER SET latin1 DEFAULT '\u00e4')", "ALTER TABLE t CONVERT TO CHARSET binary"
    )
    assert (found.columns[0].type, found.columns[0].default) == ("varbinary", "0xE4")


def test_a_number_that_is_too_long_for_its_column_is_cut_on_mariadb() -> None:
    texts = ("CREATE TABLE t (a CHAR)", "ALTER TABLE t ALTER a SET DEFAULT 1e2")
    assert table(*texts, server=MARIADB).columns[0].default == "1"


@pytest.mark.parametrize(
    ("before", "charset", "defined", "type_"),
    [
        ("INT", "utf8mb4", "MEDIUMTEXT", "tinytext"),
        ("VARCHAR(63)", "utf8mb4", "TEXT", "tinytext"),
        ("VARCHAR(64)", "utf8mb4", "TEXT CHARSET latin1", "text"),
        ("VARCHAR(300)", "latin2", "TINYTEXT", "text"),
        ("VARCHAR(20000)", "utf8mb4", "BLOB", "blob"),
        ("TEXT", "utf8mb4", "TEXT", "mediumtext"),
        ("TEXT CHARSET utf8mb4", "utf8mb4", "TEXT", "text"),
        ("MEDIUMBLOB", "latin2", "TEXT", "mediumtext"),
        ("TINYTEXT", "utf8mb4", "BLOB", "tinyblob"),
        ("JSON", "latin2", "TEXT", "longtext"),
        ("SET('a','b')", "latin2", "TEXT", "tinytext"),
        ("INT", "utf8mb4", "TEXT(70000)", "mediumtext"),
    ],
)
def test_a_text_that_is_defined_while_the_table_is_converted_has_room_for_what_was_there(
    before: str, charset: str, defined: str, type_: str
) -> None:
    created = f"CREATE TABLE t (a {before}) CHARSET latin1"
    altered = f"ALTER TABLE t CONVERT TO CHARACTER SET {charset}, MODIFY a {defined}"
    assert table(created, altered).columns[0].type == type_
    named = defined.split()[0].split("(")[0].lower()
    expected = named if "(" not in defined else type_
    assert table(created, altered, server=MARIADB).columns[0].type == expected


def test_the_default_collation_is_that_of_the_character_set_chosen_before() -> None:
    found = table("CREATE TABLE t (a INT) COLLATE utf8mb4_bin COLLATE DEFAULT", server=MARIADB)
    assert (found.charset, found.collation) == ("utf8mb4", "utf8mb4_general_ci")


@pytest.mark.parametrize(
    "order",
    ["t.a", "t.a ASC, t.b DESC", "db.t.a, b", "a DESC, b, COMMENT 'c'", "`a`, ADD e INT", "b ASC, ADD e INT, DROP d"],
)
def test_rows_are_ordered_by_columns_with_the_names_of_their_tables(order: str) -> None:
    found = table("CREATE TABLE t (a INT, b INT, d INT)", f"ALTER TABLE t ORDER BY {order}")
    assert names(found)[:2] == ["a", "b"]
    assert ("e" in names(found)) == ("ADD e" in order)


def test_a_primary_key_that_is_dropped_as_a_constraint() -> None:
    assert table("CREATE TABLE t (a INT PRIMARY KEY)", "ALTER TABLE t DROP CONSTRAINT PRIMARY KEY").key == ()


def test_long_comments_are_cut() -> None:
    text = f"CREATE TABLE t (a INT COMMENT '{'c' * 2000}') COMMENT '{'t' * 3000}'"
    assert len(table(text).comment or "") == 2048
    assert len(table(text).columns[0].comment or "") == 1024


def test_the_default_collation_is_that_to_which_the_table_is_converted() -> None:
    found = table(
        "CREATE TABLE t (a INT)",
        "ALTER TABLE t ADD b CHAR(5) COLLATE DEFAULT, CONVERT TO CHARSET utf8mb3 COLLATE utf8mb3_bin",
        server=MARIADB,
    )
    assert found.columns[1].collation == "utf8mb3_general_ci"


@pytest.mark.parametrize(
    ("defined", "expected"),
    [
        ("VARCHAR(9) CHARSET latin1 BINARY", ("varchar", "utf8mb3_unicode_ci")),
        ("NATIONAL VARCHAR(9) BINARY", ("varchar", "utf8mb3_unicode_ci")),
        ("VARCHAR(9) BINARY", ("varchar", "utf8mb3_bin")),
        ("VARCHAR(9) COLLATE latin1_bin", ("varchar", "utf8mb3_unicode_ci")),
        ("VARCHAR(9) CHARSET binary", ("varbinary", None)),
    ],
)
def test_a_conversion_overrides_the_character_set_of_a_column(defined: str, expected: tuple[str, str | None]) -> None:
    altered = f"ALTER TABLE t CONVERT TO CHARSET utf8mb3 COLLATE utf8mb3_unicode_ci, MODIFY a {defined}"
    for server in (MYSQL, MARIADB):
        column = table("CREATE TABLE t (a VARCHAR(3))", altered, server=server).columns[0]
        assert (column.type, column.collation) == expected


@pytest.mark.parametrize(
    ("defined", "options", "expected"),
    [
        ("VARCHAR(9) BINARY", "CHARSET latin2", ("varchar", "latin2_bin")),
        ("VARCHAR(9) COLLATE DEFAULT", "CHARSET latin2 COLLATE latin2_bin", ("varchar", "latin2_general_ci")),
        ("VARCHAR(9) CHARSET latin1 COLLATE DEFAULT", "CHARSET latin2", ("varchar", "utf8mb3_unicode_ci")),
        ("VARCHAR(9)", "CHARSET latin2", ("varchar", "utf8mb3_unicode_ci")),
        ("VARCHAR(9)", "CHARSET binary", ("varbinary", None)),
        ("TEXT BINARY", "CHARSET binary", ("blob", None)),
        ("ENUM('x')", "COLLATE binary", ("enum", None)),
        ("TEXT COLLATE latin1_bin", "CHARSET binary", ("text", "utf8mb3_unicode_ci")),
    ],
)
def test_mariadb_leaves_some_redefined_columns_out_of_a_conversion(
    defined: str, options: str, expected: tuple[str, str | None]
) -> None:
    converted = "CONVERT TO CHARSET utf8mb3 COLLATE utf8mb3_unicode_ci"
    for clauses in ((converted, f"MODIFY a {defined}", options), (options, f"MODIFY a {defined}", converted)):
        found = table("CREATE TABLE t (a VARCHAR(3))", f"ALTER TABLE t {', '.join(clauses)}", server=MARIADB)
        assert (found.columns[0].type, found.columns[0].collation) == expected


@pytest.mark.parametrize(
    "clauses",
    [
        "CONVERT TO CHARSET latin2 COLLATE latin2_bin, CONVERT TO CHARSET latin2",
        "CONVERT TO CHARSET latin2, CONVERT TO CHARSET latin2 COLLATE latin2_bin",
    ],
)
def test_mariadb_keeps_the_collation_of_an_earlier_conversion(clauses: str) -> None:
    found = table("CREATE TABLE t (a CHAR(5))", f"ALTER TABLE t {clauses}", server=MARIADB)
    assert (found.collation, found.columns[0].collation) == ("latin2_bin", "latin2_bin")


@pytest.mark.parametrize("clause", ["ALTER a DROP DEFAULT", "ALTER a DROP DEFAULT, MODIFY b BIGINT"])
def test_a_key_gives_no_zero_default_to_a_time_that_was_required_before(clause: str) -> None:
    """MariaDB gives it only to a column that the key makes NOT NULL."""
    text = "CREATE TABLE t (a DATETIME(3) NOT NULL ON UPDATE NOW(3), b INT, PRIMARY KEY (a))"
    assert table(text, server=MARIADB).columns[0].default == "0000-00-00 00:00:00.000"
    (column, _) = table(text, f"ALTER TABLE t {clause}", server=MARIADB).columns
    assert (column.default, column.default_kind, column.on_update) == (None, "none", True)


@pytest.mark.parametrize(
    ("definition", "clause", "default"),
    [
        ("DATETIME DEFAULT NOW()", "SET DEFAULT NULL", "CURRENT_TIMESTAMP"),
        ("DATETIME DEFAULT NOW()", "SET DEFAULT '2020-01-01'", "CURRENT_TIMESTAMP"),
        ("DATETIME DEFAULT NOW()", "DROP DEFAULT", "CURRENT_TIMESTAMP"),
        ("DATETIME DEFAULT (NOW()+1)", "SET DEFAULT NULL", None),
        ("INT DEFAULT 5", "SET DEFAULT NULL", None),
        ("INT DEFAULT (1+1)", "SET DEFAULT 3", "3"),
    ],
)
def test_a_column_that_is_moved_keeps_the_current_time_as_its_default(
    definition: str, clause: str, default: str | None
) -> None:
    """As MariaDB 10.11 does; it knows the column in the second clause only if the first one moves it."""
    texts = ("CREATE TABLE t (a INT, b INT, c INT)", f"ALTER TABLE t MODIFY c {definition} AFTER a, ALTER c {clause}")
    found = {column.name: column.default for column in table(*texts, server=MARIADB).columns}
    assert found["c"] == default
