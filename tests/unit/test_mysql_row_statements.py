"""Which tables a statement in the log changes the rows of."""

from __future__ import annotations

import pytest

from floodmark.connectors.mysql.schema.row_statements import changed_tables, changes_rows, fills_table
from floodmark.connectors.mysql.schema.session import Server, Session

SESSION = Session(database="shop")
SERVER = Server()
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
    ],
)
def test_changed_tables(text: str, changed: tuple[str, str], untouched: tuple[str, str] | None) -> None:
    assert changes_rows(text)
    found = changed_tables(text, SESSION, SERVER)
    assert changed in found
    assert untouched not in found


@pytest.mark.timeout(20)
def test_many_comments_take_no_time() -> None:
    comments = "/**/" * 10_000
    assert not changes_rows(f"{comments} CREATE TABLE t (id int)")
    assert changes_rows(f"{comments} DELETE FROM t")


def test_names_are_folded_as_on_the_server() -> None:
    assert T in changed_tables("UPDATE Shop.T SET v = 1", SESSION, Server(fold_names=True))
    assert T not in changed_tables("UPDATE Shop.T SET v = 1", SESSION, SERVER)


@pytest.mark.parametrize("text", ["ALTER TABLE t ADD x int", "TRUNCATE t", "CREATE TABLE t (id int)", "BEGIN"])
def test_statements_that_change_no_rows(text: str) -> None:
    assert not changes_rows(text)


def test_tables_that_are_filled_when_they_are_created() -> None:
    assert fills_table("CREATE TABLE t AS SELECT * FROM u", SESSION, SERVER)
    assert not fills_table("CREATE TABLE t (id int COMMENT 'SELECT', `select` int)", SESSION, SERVER)
