"""The order of indexes and what else of a table depends on how earlier statements made it, beside real servers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pymysql
import pytest

from tests.support.ddl import Follower
from tests.support.mysql import MysqlServer

DATABASE = "index_order"
UNSORTED = (
    "CREATE TABLE v (e BIT(9), k INT NOT NULL, x INT, f MEDIUMTEXT, d INT DEFAULT 5, UNIQUE b (e), UNIQUE c (x), "
    "KEY y (d), KEY z (d)) COMMENT 'c' CHARSET latin2",
    # It sorts c behind b as long as x may be NULL, which it may only until this statement has ended.
    "ALTER TABLE v ADD PRIMARY KEY (x, k)",
)
KEYS = "(e BIT(9), k INT NOT NULL, x INT, UNIQUE b (e, k), UNIQUE c (x, k))"
BY_KEY, BY_RANGE = (
    "KEY (k) PARTITIONS 2",
    "RANGE (k) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN (19))",
)
SORTED, KEPT = ["PRIMARY", "c", "b"], ["PRIMARY", "b", "c"]


@pytest.fixture
def follower(binlog_server: MysqlServer) -> Iterator[Follower]:
    binlog_server.execute(f"CREATE DATABASE {DATABASE}")
    made = Follower(binlog_server)
    made.execute(f"USE {DATABASE}")
    yield made
    made.execute(f"DROP DATABASE {DATABASE}")
    made.close()


def follows(follower: Follower, *statements: str) -> None:
    for statement in statements:
        follower.execute(statement)
        assert follower.compared() == [], statement


def order(follower: Follower) -> list[str]:
    """Return the unique indexes of the only table, as they are followed."""
    (table,) = (table for (database, _), table in follower.schema.tables.items() if database == DATABASE)
    return [index.name for index in table.indexes if index.unique]


@pytest.mark.parametrize("binlog_server", ["mysql"], indirect=True)
@pytest.mark.parametrize(
    "clauses",
    [
        "ALTER f DROP DEFAULT",
        "ALTER d SET DEFAULT 5",
        "ALTER d SET VISIBLE",
        "ALTER INDEX b VISIBLE",
        "RENAME INDEX b TO b",
        "RENAME COLUMN d TO d",
        "MODIFY d INT DEFAULT 5",
        "DROP d, ADD d INT DEFAULT 5",
        "COMMENT='c'",
        "ENGINE=InnoDB",
        "FORCE",
        "AUTO_INCREMENT=7",
        "STATS_PERSISTENT=1",
        "DEFAULT CHARSET=latin2",
        "CONVERT TO CHARSET latin2",
        "ORDER BY d",
        "ADD CHECK (d > 0)",
        "ADD FOREIGN KEY (d) REFERENCES v (x)",
        "DROP KEY z, ADD KEY z (d DESC)",
        "DROP KEY b, ADD UNIQUE b (e DESC)",
        "DROP KEY b, ADD UNIQUE b (e), COMMENT='c'",
        "DROP KEY b, ADD UNIQUE b (e), ENABLE KEYS",
        "DROP KEY b, ADD UNIQUE b (e), RENAME TO w",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (x DESC, k)",
    ],
)
def test_mysql_sorts_indexes_again(follower: Follower, clauses: str) -> None:
    follows(follower, *UNSORTED, f"ALTER TABLE v {clauses}")
    assert order(follower) == SORTED


@pytest.mark.parametrize("binlog_server", ["mysql"], indirect=True)
@pytest.mark.parametrize(
    "clauses",
    [
        "",
        "RENAME TO w",
        "ENABLE KEYS",
        "DISABLE KEYS",
        "DROP KEY z, ADD KEY z (d)",
        "DROP KEY z, ADD KEY z (d) INVISIBLE",
        "DROP KEY b, ADD UNIQUE b (e), LOCK=NONE",
        "DROP CONSTRAINT b, ADD CONSTRAINT b UNIQUE (e ASC), ALGORITHM=INPLACE",
        "DROP KEY c, ADD UNIQUE c (x), DROP KEY b, ADD UNIQUE b (e)",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (x, k)",
    ],
)
def test_mysql_keeps_the_order_of_indexes(follower: Follower, clauses: str) -> None:
    follows(follower, *UNSORTED, f"ALTER TABLE v {clauses}")
    assert order(follower) == KEPT


@pytest.mark.parametrize("binlog_server", ["mysql"], indirect=True)
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("OPTIMIZE TABLE v", SORTED),
        (f"OPTIMIZE LOCAL TABLES {DATABASE}.v", KEPT),
        ("ANALYZE TABLE v", KEPT),
        ("TRUNCATE TABLE v", KEPT),
        ("RENAME TABLE v TO w", KEPT),
        ("CREATE INDEX n ON v (d)", SORTED),
        ("DROP INDEX z ON v", SORTED),
    ],
)
def test_other_statements_that_sort_indexes(follower: Follower, statement: str, expected: list[str]) -> None:
    follows(follower, *UNSORTED)
    follower.execute(statement)
    # One that isn't in the log can't be followed.
    assert "LOCAL" in statement or follower.compared() == []
    assert order(follower) == expected


@pytest.mark.parametrize("binlog_server", ["mysql"], indirect=True)
@pytest.mark.parametrize(
    ("partitions", "clauses"),
    [
        (BY_KEY, "ANALYZE PARTITION ALL"),
        (BY_KEY, "CHECK PARTITION ALL"),
        (BY_KEY, "OPTIMIZE PARTITION ALL"),
        (BY_KEY, "REBUILD PARTITION ALL"),
        (BY_KEY, "REPAIR PARTITION ALL"),
        (BY_KEY, "TRUNCATE PARTITION p0"),
        (BY_KEY, "COALESCE PARTITION 1"),
        (BY_KEY, "ADD PARTITION PARTITIONS 1"),
        (BY_KEY, "REMOVE PARTITIONING"),
        (BY_KEY, "PARTITION BY KEY (k) PARTITIONS 3"),
        (BY_RANGE, "DROP PARTITION p0"),
        (BY_RANGE, "REORGANIZE PARTITION p0 INTO (PARTITION q VALUES LESS THAN (9))"),
        (BY_RANGE, "DISCARD PARTITION p0 TABLESPACE"),
    ],
)
def test_statements_about_partitions(follower: Follower, partitions: str, clauses: str) -> None:
    made = f"CREATE TABLE v {KEYS} PARTITION BY {partitions}", "ALTER TABLE v ADD PRIMARY KEY (x, k)"
    follows(follower, *made, f"ALTER TABLE v {clauses}")


@pytest.mark.parametrize("binlog_server", ["mysql"], indirect=True)
def test_an_exchanged_partition(follower: Follower) -> None:
    follows(
        follower,
        f"CREATE TABLE v {KEYS} PARTITION BY {BY_RANGE}",
        "ALTER TABLE v ADD PRIMARY KEY (x, k)",
        f"CREATE TABLE w {KEYS}",
        "ALTER TABLE w ADD PRIMARY KEY (x, k)",
        "ALTER TABLE v EXCHANGE PARTITION p0 WITH TABLE w",
    )


@pytest.mark.parametrize("binlog_server", ["mysql"], indirect=True)
def test_indexes_keep_their_directions(follower: Follower) -> None:
    follows(
        follower,
        "CREATE TABLE v (a INT, b INT, c INT, UNIQUE p (a DESC, b, c DESC), KEY q ((a + c) DESC, c DESC))",
        "ALTER TABLE v DROP b",
        "CREATE INDEX r ON v (c DESC, a)",
        "ALTER TABLE v RENAME INDEX r TO s, ADD PRIMARY KEY (c DESC)",
    )


@pytest.mark.parametrize("binlog_server", ["mariadb"], indirect=True)
@pytest.mark.parametrize("literal", ["20200102030405.6", "NULL", "NOW()", "(NOW())"])
@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE v (t TIMESTAMP NULL DEFAULT NOW() ON UPDATE NOW())"],
        ["CREATE TABLE v (t TIMESTAMP NULL DEFAULT NOW(3) ON UPDATE NOW())"],
        ["CREATE TABLE v (t TIMESTAMP NULL ON UPDATE NOW())", "ALTER TABLE v ALTER t SET DEFAULT NOW()"],
        [
            "CREATE TABLE v (t TIMESTAMP NULL ON UPDATE NOW())",
            "ALTER TABLE v ALTER t SET DEFAULT (NOW())",
            "ALTER TABLE v ADD a INT",
            "CREATE TABLE w LIKE v",
            "DROP TABLE v",
            "RENAME TABLE w TO v",
        ],
        [
            "CREATE TABLE v (t TIMESTAMP NULL ON UPDATE NOW())",
            "ALTER TABLE v ALTER t SET DEFAULT NOW()",
            "ALTER TABLE v MODIFY t TIMESTAMP NULL DEFAULT NOW() ON UPDATE NOW()",
        ],
        [
            "CREATE TABLE v (t DATETIME NOT NULL ON UPDATE NOW())",
            "ALTER TABLE v ALTER t SET DEFAULT NOW()",
            "ALTER TABLE v ALTER t SET DEFAULT '2020-01-02'",
        ],
    ],
)
def test_a_default_of_the_current_time_goes_with_on_update(
    follower: Follower, statements: list[str], literal: str
) -> None:
    if literal == "NULL" and "NOT NULL" in statements[0]:
        literal = "'2020-01-02'"
    follows(follower, *statements, f"ALTER TABLE v ALTER t SET DEFAULT {literal}")


@pytest.mark.parametrize("binlog_server", ["mariadb"], indirect=True)
@pytest.mark.parametrize(
    "clauses",
    [
        "MODIFY c TIMESTAMP(1) ON UPDATE NOW(1) FIRST, ALTER c DROP DEFAULT",
        "MODIFY c TIMESTAMP(1) ON UPDATE NOW(1) FIRST",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (t)",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (t), ALTER t DROP DEFAULT",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (t), ALTER t SET DEFAULT '2020-01-01'",
    ],
)
def test_the_default_of_a_time_in_the_primary_key(follower: Follower, clauses: str) -> None:
    follows(
        follower,
        "CREATE TABLE v (c BOOL DEFAULT 1 PRIMARY KEY, t TIMESTAMP NULL ON UPDATE NOW())",
        f"ALTER TABLE v {clauses}",
    )


@pytest.mark.parametrize("binlog_server", ["mariadb"], indirect=True)
@pytest.mark.parametrize("kind", ["TIMESTAMP NULL", "DATETIME"])
@pytest.mark.parametrize("clauses", ["ADD PRIMARY KEY (c)", "ADD x CHAR FIRST, ADD PRIMARY KEY (c)"])
@pytest.mark.parametrize("between", ["FORCE", "ADD y INT", "ALTER c SET DEFAULT NULL", "MODIFY k INT FIRST"])
def test_a_time_that_had_no_default_before_it_was_in_the_primary_key(
    follower: Follower, kind: str, between: str, clauses: str
) -> None:
    follows(
        follower,
        f"CREATE TABLE v (k INT, c {kind} ON UPDATE NOW())",
        f"ALTER TABLE v MODIFY c {kind} ON UPDATE NOW() FIRST, ALTER c DROP DEFAULT",
        f"ALTER TABLE v {between}",
        f"ALTER TABLE v {clauses}",
    )


@pytest.mark.parametrize("binlog_server", ["mariadb"], indirect=True)
@pytest.mark.parametrize("kind", ["DECIMAL(10,0)", "INT", "CHAR(7)", "DATETIME(3)"])
@pytest.mark.parametrize("place", ["AFTER a", "AFTER d"])
def test_a_column_that_is_redefined_twice(follower: Follower, kind: str, place: str) -> None:
    follows(
        follower,
        f"CREATE TABLE v (a INT NOT NULL, c {kind} NOT NULL, d INT, UNIQUE y (c), UNIQUE z (d, c))",
        f"ALTER TABLE v MODIFY c MEDIUMBLOB NOT NULL AFTER d, ADD COLUMN b TIME, CHANGE c b TEXT {place}",
    )


@pytest.mark.parametrize("kind", ["INT", "CHAR(7)", "VARBINARY(9)", "DATETIME(3)"])
@pytest.mark.parametrize(
    "clauses",
    [
        "ADD a VARBINARY(9) NOT NULL FIRST, RENAME COLUMN a TO b",
        "ADD a VARBINARY(9) NOT NULL AFTER b, RENAME COLUMN a TO b",
        "ADD a VARBINARY(9) NOT NULL, RENAME COLUMN a TO b",
        "ADD a VARBINARY(9) NOT NULL FIRST, CHANGE a b BINARY(3)",
        "ADD a VARBINARY(9) NOT NULL, CHANGE a b BINARY(3) FIRST",
        "ADD a VARBINARY(9) NOT NULL FIRST, RENAME COLUMN a TO b, DROP KEY u, ADD UNIQUE u (a)",
    ],
)
def test_a_column_that_gets_the_name_of_a_renamed_one(follower: Follower, kind: str, clauses: str) -> None:
    follows(follower, f"CREATE TABLE v (k INT, a {kind} NOT NULL, UNIQUE u (a), KEY n (a, k))")
    follower.execute(f"ALTER TABLE v {clauses}")
    assert follower.compared() == []


@pytest.mark.parametrize(
    ("kind", "length"),
    [
        ("BLOB(100)", 100),
        ("BLOB(255)", 254),
        ("BLOB(255)", 255),
        ("BLOB(256)", 255),
        ("BLOB(256)", 256),
        ("BLOB(300)", 299),
        ("BLOB(300)", 300),
        ("BLOB", 300),
        ("TINYBLOB", 255),
        ("TINYTEXT", 254),
        ("TINYTEXT", 255),
        ("TINYTEXT CHARSET utf8mb4", 63),
        ("TEXT(63) CHARSET utf8mb4", 63),
        ("TEXT(64) CHARSET utf8mb4", 64),
        ("TEXT(300) CHARSET utf8mb3", 300),
        ("VARBINARY(300)", 300),
    ],
)
def test_an_index_over_the_beginning_of_a_large_value(follower: Follower, kind: str, length: int) -> None:
    key, other = f"UNIQUE e (e({length}))", "UNIQUE k (f, k)"
    follows(
        follower,
        f"CREATE TABLE v (f INT, e {kind}, k INT, {key}, {other}) CHARSET latin1",
        "ALTER TABLE v FORCE",
        "ALTER TABLE v ADD z INT",
        f"ALTER TABLE v DROP KEY e, ADD {key}, DROP KEY k, ADD {other}",
        f"ALTER TABLE v MODIFY e {kind}, COMMENT 'x'",
        f"ALTER TABLE v MODIFY e {kind}, DROP KEY e, ADD {key}, DROP KEY k, ADD {other}",
        "CREATE TABLE w LIKE v",
        f"ALTER TABLE v DROP KEY e, DROP e, DROP KEY k, ADD e {kind}, ADD {key}, ADD {other}",
        f"ALTER TABLE w DROP KEY e, DROP KEY k, ADD g {kind}, ADD UNIQUE e (g({length})), ADD {other}",
        f"ALTER TABLE w CHANGE g h {kind}, COMMENT 'y'",
    )


@pytest.mark.parametrize("binlog_server", ["mariadb"], indirect=True)
@pytest.mark.parametrize("table", ["binary", "utf8mb4 COLLATE utf8mb4_bin", "latin2"])
@pytest.mark.parametrize(
    "options",
    [
        "COLLATE DEFAULT COLLATE DEFAULT",
        "COLLATE latin2_general_ci COLLATE DEFAULT",
        "COLLATE DEFAULT COLLATE latin2_general_ci COLLATE DEFAULT",
        "CHARSET DEFAULT COLLATE DEFAULT COLLATE DEFAULT",
    ],
)
def test_default_collations_that_are_given_twice(follower: Follower, table: str, options: str) -> None:
    commas = options.replace(" COLLATE", ", COLLATE")
    statements = [
        f"CREATE TABLE v (a CHAR(3)) CHARSET {table}",
        f"ALTER TABLE v {commas}, ADD COLUMN b ENUM('x') FIRST",
        f"CREATE TABLE w (a CHAR(3), b CHAR(3) CHARSET latin1) {options}",
        f"CREATE DATABASE other {options}",
        "CREATE TABLE other.v (a CHAR(3))",
        f"ALTER DATABASE other CHARSET {table}",
        f"ALTER DATABASE other {options}",
        "CREATE TABLE other.w (a CHAR(3))",
        "DROP DATABASE other",
    ]
    for statement in statements:
        # The server takes some of them for contradictions.
        with contextlib.suppress(pymysql.Error):
            follows(follower, statement)
