"""Which statements bring or take rows that the log doesn't have."""

from __future__ import annotations

import pytest

from floodmark.connectors.mysql.schema.moved_rows import moved_rows
from floodmark.connectors.mysql.structures.session import Server, Session

SESSION = Session(database="shop")
SERVER = Server()
T, U = ("shop", "t"), ("shop", "u")


@pytest.mark.parametrize(
    ("text", "action", "tables"),
    [
        ("ALTER TABLE t DROP PARTITION p0, p1", "DROP PARTITION", (T,)),
        ("alter table if exists shop.t drop partition if exists p0", "DROP PARTITION", (T,)),
        ("/* nightly */ ALTER TABLE `t` TRUNCATE PARTITION ALL", "TRUNCATE PARTITION", (T,)),
        ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u WITHOUT VALIDATION", "EXCHANGE PARTITION", (T, U)),
        (
            "ALTER ONLINE IGNORE TABLE t WAIT 5 EXCHANGE PARTITION `p 0` WITH TABLE a.b",
            "EXCHANGE PARTITION",
            (T, ("a", "b")),
        ),
        (
            "ALTER TABLE t NOWAIT CONVERT TABLE u TO PARTITION p9 VALUES LESS THAN (9)",
            "CONVERT TABLE TO PARTITION",
            (T, U),
        ),
        ("ALTER TABLE t CONVERT PARTITION p0 TO TABLE u", "CONVERT PARTITION TO TABLE", (T, U)),
        ("ALTER TABLE t IMPORT TABLESPACE", "IMPORT TABLESPACE", (T,)),
        ("ALTER TABLE t IMPORT PARTITION p0 TABLESPACE", "IMPORT TABLESPACE", (T,)),
        ("ALTER TABLE t DISCARD TABLESPACE", "DISCARD TABLESPACE", (T,)),
        ("SET STATEMENT lock_wait_timeout=1 FOR ALTER TABLE t IMPORT TABLESPACE", "IMPORT TABLESPACE", (T,)),
    ],
)
def test_rows_come_or_go(text: str, action: str, tables: tuple[tuple[str, str], ...]) -> None:
    found = moved_rows(text, SESSION, SERVER)
    assert found is not None
    assert (found.action, found.tables) == (action, tables)
    assert found.only_go == (action in ("DROP PARTITION", "TRUNCATE PARTITION", "DISCARD TABLESPACE"))


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t DROP COLUMN `partition`",
        "ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN (9))",
        "ALTER TABLE t REORGANIZE PARTITION p0 INTO (PARTITION a VALUES LESS THAN (1))",
        "ALTER TABLE t REMOVE PARTITIONING",
        "ALTER TABLE t COMMENT 'DROP PARTITION p0'",
        "ALTER DATABASE shop COMMENT 'TRUNCATE PARTITION'",
        "CREATE TABLE t (id int) COMMENT 'ALTER TABLE t DROP PARTITION'",
        "TRUNCATE TABLE t",
    ],
)
def test_no_rows_come_or_go(text: str) -> None:
    assert moved_rows(text, SESSION, SERVER) is None


@pytest.mark.timeout(20)
def test_long_statements_take_no_time() -> None:
    comment = "DROP PARTITION_ " * 50_000
    assert moved_rows(f"ALTER TABLE t COMMENT '{comment}'", SESSION, SERVER) is None
    assert moved_rows(f"ALTER TABLE t COMMENT '{comment} PARTITION'", SESSION, SERVER) is None
