"""Cases of which tables are captured: signal tables, partitioned tables, inheriting tables."""

from __future__ import annotations

from tests.conformance.cases.case import Case

SIGNALS_SETUP = (
    "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))",
    "INSERT INTO signals VALUES ('before', 'log', '{\"message\": \"before the start\"}')",
    "CREATE TABLE t (id integer PRIMARY KEY, a text)",
    "INSERT INTO t VALUES (1, 'a')",
)
SIGNALS = (
    "INSERT INTO t VALUES (2, 'b')",
    "INSERT INTO signals VALUES ('later', 'log', '{\"message\": \"while it streams\"}')",
    "DELETE FROM signals WHERE id = 'before'",
    "UPDATE t SET a = 'c' WHERE id = 2",
)
SIGNALS_OPTION = {"signal.data.collection": "public.signals"}

PARTITIONS_SETUP = (
    "CREATE TABLE p (id integer, k integer, v text, PRIMARY KEY (id, k)) PARTITION BY LIST (k)",
    "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
    "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) PARTITION BY LIST (id)",
    "CREATE TABLE p2a PARTITION OF p2 FOR VALUES IN (2, 4)",
    "CREATE TABLE plain (id integer PRIMARY KEY)",
    "INSERT INTO p VALUES (1, 1, 'a'), (2, 2, 'b')",
    "INSERT INTO plain VALUES (1)",
)
PARTITIONS = (
    "INSERT INTO p VALUES (3, 1, 'c'), (4, 2, 'd')",
    "UPDATE p SET v = 'e' WHERE id < 3",
    "DELETE FROM p WHERE id = 3",
    "INSERT INTO plain VALUES (2)",
)
VIA_ROOT = {"publish.via.partition.root": "true"}

INHERITING_SETUP = (
    "CREATE TABLE parent (id integer PRIMARY KEY, v text)",
    "CREATE TABLE child (extra integer, PRIMARY KEY (id)) INHERITS (parent)",
    "INSERT INTO parent VALUES (1, 'a')",
    "INSERT INTO child VALUES (2, 'b', 7)",
)
INHERITING = (
    "INSERT INTO parent VALUES (3, 'c')",
    "INSERT INTO child VALUES (4, 'd', 8)",
    "UPDATE parent SET v = 'e'",
    "DELETE FROM parent WHERE id > 2",
)

REFUSED = {"partitions_of_the_root": "p", "partitions_of_a_part": "p1"}
"""Cases whose filters match only names under which no changes come, with such a table: Debezium reads it once, and
captures none of its changes."""

CASES = (
    Case("signal_table", SIGNALS_SETUP, SIGNALS, SIGNALS_OPTION),
    Case("signal_table_left_out", SIGNALS_SETUP, SIGNALS, {**SIGNALS_OPTION, "table.include.list": r"public\.t"}),
    Case("partitions_unfiltered", PARTITIONS_SETUP, PARTITIONS),
    Case("partitions_unfiltered_root", PARTITIONS_SETUP, PARTITIONS, VIA_ROOT),
    Case("partitions_of_the_root", PARTITIONS_SETUP, PARTITIONS, {"table.include.list": r"public\.p"}),
    Case("partitions_of_a_part", PARTITIONS_SETUP, PARTITIONS, {"table.include.list": r"public\.p1", **VIA_ROOT}),
    Case("inheriting", INHERITING_SETUP, INHERITING),
    Case("inheriting_parent", INHERITING_SETUP, INHERITING, {"table.include.list": r"public\.parent"}),
)
