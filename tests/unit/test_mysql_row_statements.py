"""Which tables a statement in the log changes the rows of."""

from __future__ import annotations

import pytest

from floodmark.connectors.mysql.schema.row_statements import changed_tables, changes_rows, fills_table
from floodmark.connectors.mysql.structures.session import Server, Session

SESSION = Session(database="shop")
SERVER = Server()
MARIADB = Server("mariadb", 101114)
T = ("shop", "t")


@pytest.mark.parametrize(
    ("text", "changed", "untouched"),
    [
        ("INSERT INTO t VALUES (1)", T, ("shop", "u")),
        ("insert ignore t (id) values (1)", T, None),
        ("INSERT INTO a.b SELECT * FROM shop.t", ("a", "b"), T),
        ("REPLACE INTO `my db`.`the t` SET x = 1", ("my db", "the t"), T),
        ("/* from app */ UPDATE LOW_PRIORITY t SET v = (SELECT max(v) FROM u)", T, ("shop", "u")),
        ("UPDATE a JOIN t ON a.id = t.id SET t.v = 1", T, None),
        ("UPDATE (a.b JOIN shop.t USING (id)) SET v = 1", T, None),
        ("DELETE FROM t WHERE id IN (SELECT id FROM u)", T, ("shop", "u")),
        ("DELETE t.* FROM t JOIN u USING (id)", T, None),
        ("DELETE FROM x USING other.x JOIN t", T, None),
        ("WITH w AS (SELECT id FROM u) UPDATE t SET v = 1 WHERE id IN (SELECT id FROM w)", T, ("shop", "u")),
        ("LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE shop.t FIELDS TERMINATED BY ','", T, None),
        ("-- from app\n--\n# x\nDELETE FROM t", T, None),
        ("/*!50000 INSERT */ INTO t VALUES (1)", T, None),
        ("/*!50000 INSERT INTO t */ VALUES (1)", T, None),
        ("/*+ no hint here */ UPDATE t SET v = 1", T, None),
        ("SET STATEMENT max_statement_time = 1 FOR UPDATE t SET v = (SELECT max(v) FROM u)", T, ("shop", "u")),
        ("ANALYZE FORMAT=JSON UPDATE t SET v = 1", T, None),
        ("/* a */ SET STATEMENT lock_wait_timeout=1 FOR ANALYZE DELETE FROM t", T, None),
    ],
)
def test_changed_tables(text: str, changed: tuple[str, str], untouched: tuple[str, str] | None) -> None:
    server = MARIADB if "STATEMENT" in text or "ANALYZE" in text else SERVER
    assert changes_rows(text, SESSION, server)
    found = changed_tables(text, SESSION, server)
    assert found is not None
    assert changed in found
    assert untouched not in found


@pytest.mark.parametrize("text", ["SELECT `shop`.`f`(1)", "/* x */ SELECT `shop`.`replace`('INSERT INTO t')"])
def test_a_function_that_changes_rows_of_tables_that_it_does_not_name(text: str) -> None:
    assert changes_rows(text, SESSION, SERVER)
    assert changed_tables(text, SESSION, SERVER) is None


@pytest.mark.timeout(20)
def test_many_comments_take_no_time() -> None:
    comments = "/**/" * 10_000
    assert not changes_rows(f"{comments} CREATE TABLE t (id int)", SESSION, SERVER)
    assert changes_rows(f"{comments} DELETE FROM t", SESSION, SERVER)


def test_names_are_folded_as_on_the_server() -> None:
    assert T in (changed_tables("UPDATE Shop.T SET v = 1", SESSION, Server(fold_names=True)) or ())
    assert T not in (changed_tables("UPDATE Shop.T SET v = 1", SESSION, SERVER) or ())


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t ADD x int",
        "TRUNCATE t",
        "CREATE TABLE t (id int)",
        "BEGIN",
        "SET PASSWORD FOR 'x'@'%' = 'INSERT INTO t'",
        "SET STATEMENT max_statement_time = 1 FOR ALTER TABLE t ADD x int",
        "ANALYZE TABLE t",
        "ANALYZE NO_WRITE_TO_BINLOG TABLE t",
        "SET @a = 'it does not end",
        "/*!99999 INSERT */ CREATE TABLE t (id int)",
        "",
    ],
)
def test_statements_that_change_no_rows(text: str) -> None:
    assert not changes_rows(text, SESSION, SERVER)


def test_tables_that_are_filled_when_they_are_created() -> None:
    for filled in ("AS SELECT * FROM u", "TABLE u", "VALUES ROW(1)", "AS VALUES (1, 2)"):
        assert fills_table(f"CREATE TABLE t {filled}", SESSION, SERVER)
    for empty in (
        "(id int COMMENT 'SELECT', `select` int, `table` int)",
        "(id int) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (1))",
        "(id int) PARTITION BY LIST (id) (PARTITION p VALUES IN (1))",
    ):
        assert not fills_table(f"CREATE TABLE t {empty}", SESSION, SERVER)
