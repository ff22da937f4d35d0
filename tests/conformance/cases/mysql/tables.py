"""Cases of which tables are captured: the signal table."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import both

SETUP = (
    "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))",
    "INSERT INTO signals VALUES ('before', 'log', '{\"message\": \"before the start\"}')",
    "CREATE TABLE t (id int PRIMARY KEY, a varchar(9))",
    "INSERT INTO t VALUES (1, 'a')",
)
CHANGES = (
    "INSERT INTO t VALUES (2, 'b')",
    "INSERT INTO signals VALUES ('later', 'log', '{\"message\": \"while it streams\"}')",
    "DELETE FROM signals WHERE id = 'before'",
    "UPDATE t SET a = 'c' WHERE id = 2",
)


CASES: tuple[Case, ...] = (
    *both("signal_table", SETUP, CHANGES, {"signal.data.collection": "signal_table.signals"}),
    *both(
        "signal_table_left_out",
        SETUP,
        CHANGES,
        {
            "signal.data.collection": "signal_table_left_out.signals",
            "table.include.list": r"signal_table_left_out\.t",
        },
    ),
)
