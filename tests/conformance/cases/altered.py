"""Cases of tables and types that are altered while the connector streams."""

from __future__ import annotations

from tests.conformance.cases.case import Case

COLUMNS = (
    "INSERT INTO t VALUES (1, 'a', 1)",
    "ALTER TABLE t ADD b numeric(6,2)",
    "INSERT INTO t VALUES (2, 'b', 2, 2.5)",
    "UPDATE t SET b = 1",
    "ALTER TABLE t DROP n",
    "UPDATE t SET a = 'a2' WHERE id = 1",
    "ALTER TABLE t RENAME a TO note",
    "UPDATE t SET note = 'a3' WHERE id = 1",
    "ALTER TABLE t ALTER note TYPE varchar(20)",
    "INSERT INTO t VALUES (3, 'c', 3)",
    "ALTER TABLE t ALTER b TYPE double precision",
    "UPDATE t SET b = 1.5 WHERE id = 3",
    "DELETE FROM t WHERE id = 3",
    "ALTER TABLE t ADD n bigint",
    "INSERT INTO t VALUES (4, 'd', 4, 4)",
    "ALTER TABLE t ADD u uuid, ADD j jsonb, ADD at timestamptz(3), ALTER id TYPE bigint, DROP b",
    "INSERT INTO t VALUES (5, 'e', 5, '00000000-0000-0000-0000-000000000005', '[5]', '2024-01-05 05:05:05.5+00')",
    "ALTER TABLE t ALTER at TYPE timestamp USING at AT TIME ZONE 'UTC', ALTER n TYPE numeric USING n / 2.0",
    "UPDATE t SET n = n + 1 WHERE id = 5",
    "ALTER TABLE t RENAME id TO number",
    "UPDATE t SET number = 50 WHERE number = 5",
    "DELETE FROM t WHERE number = 50",
    "ALTER TABLE t RENAME u TO swap",
    "ALTER TABLE t RENAME j TO u",
    "ALTER TABLE t RENAME swap TO j",
    "INSERT INTO t (number, note, u, j) VALUES (6, 'f', '{}', '00000000-0000-0000-0000-000000000006')",
)

REQUIRED = (
    "INSERT INTO t VALUES (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)",
    "ALTER TABLE t ALTER n SET NOT NULL, ALTER a SET NOT NULL",
    "DELETE FROM t WHERE id = 2",
    "ALTER TABLE t ALTER n DROP NOT NULL",
    "UPDATE t SET id = 5 WHERE id = 3",
    "ALTER TABLE t ALTER a DROP NOT NULL",
    "DELETE FROM t WHERE id = 5",
    "DELETE FROM t WHERE id = 4",
)

KEYS = (
    "INSERT INTO k VALUES (1, 10, 100, 'v'), (2, 20, 200, 'w'), (3, 30, 300, 'x')",
    "UPDATE k SET a = 4 WHERE a = 1",
    "ALTER TABLE k DROP CONSTRAINT k_pkey, ADD PRIMARY KEY (b, a)",
    "UPDATE k SET v = 'v2' WHERE a = 4",
    "UPDATE k SET a = 5 WHERE a = 4",
    "DELETE FROM k WHERE a = 5",
    "ALTER TABLE k DROP CONSTRAINT k_pkey, ADD PRIMARY KEY (a, b)",
    "UPDATE k SET b = 21 WHERE a = 2",
    "ALTER TABLE k RENAME b TO bb",
    "UPDATE k SET a = 6 WHERE a = 2",
    "ALTER TABLE k DROP CONSTRAINT k_pkey",
    "INSERT INTO k VALUES (7, 70, 700, 'y')",
    "CREATE UNIQUE INDEX k_unique ON k (c, bb)",
    "INSERT INTO k VALUES (8, 80, 800, 'z')",
    "ALTER TABLE k REPLICA IDENTITY FULL",
    "UPDATE k SET c = 801 WHERE a = 8",
    "UPDATE k SET v = NULL WHERE a = 8",
    "DELETE FROM k WHERE a = 8",
    "ALTER TABLE k ADD PRIMARY KEY (a)",
    "UPDATE k SET a = 9 WHERE a = 7",
    "DELETE FROM k WHERE a = 9",
    "ALTER TABLE k DROP CONSTRAINT k_pkey",
    "DROP INDEX k_unique",
    "UPDATE k SET c = 201 WHERE a = 6",
    "DELETE FROM k WHERE a = 6",
    "ALTER TABLE k ADD PRIMARY KEY (c)",
    "ALTER TABLE k REPLICA IDENTITY DEFAULT",
    "ALTER TABLE k DROP a",
    "UPDATE k SET c = 301",
    "DELETE FROM k",
)

IDENTITY_CHANGES = (
    "UPDATE i SET v = 'v2' WHERE id = 1",
    "UPDATE i SET id = 11 WHERE id = 1",
    "DELETE FROM i WHERE id = 11",
    "ALTER TABLE i REPLICA IDENTITY FULL",
    "UPDATE i SET v = 'v2' WHERE id = 2",
    "UPDATE i SET id = 12 WHERE id = 2",
    "DELETE FROM i WHERE id = 12",
    "ALTER TABLE i REPLICA IDENTITY USING INDEX i_a_id",
    "UPDATE i SET v = 'v2' WHERE id = 3",
    "UPDATE i SET a = 'a2' WHERE id = 3",
    "UPDATE i SET id = 13 WHERE id = 3",
    "DELETE FROM i WHERE id = 13",
    "ALTER TABLE i REPLICA IDENTITY NOTHING",
    "INSERT INTO i VALUES (7, 'a7', 'v')",
    "ALTER TABLE i REPLICA IDENTITY DEFAULT",
    "UPDATE i SET id = 14 WHERE id = 4",
    "DELETE FROM i WHERE id = 14",
)

NAMES = (
    "INSERT INTO t VALUES (1, 'a')",
    "ALTER TABLE t RENAME TO renamed",
    "INSERT INTO renamed VALUES (2, 'b')",
    "UPDATE renamed SET id = 3 WHERE id = 1",
    "CREATE SCHEMA elsewhere",
    "ALTER TABLE renamed SET SCHEMA elsewhere",
    "DELETE FROM elsewhere.renamed WHERE id = 2",
    "CREATE TABLE t (name text PRIMARY KEY, id integer)",
    "INSERT INTO t VALUES ('x', 1)",
    "UPDATE t SET name = 'y'",
    "DROP TABLE t",
    "CREATE TABLE t (LIKE elsewhere.renamed INCLUDING ALL)",
    "INSERT INTO t SELECT id + 100, v FROM elsewhere.renamed",
    "DELETE FROM t",
    "ALTER TABLE t RENAME TO other",
    "ALTER TABLE elsewhere.renamed RENAME TO t",
    "UPDATE elsewhere.t SET v = 'c'",
    'ALTER TABLE elsewhere.t RENAME TO "odd näme"',
    'DELETE FROM elsewhere."odd näme"',
)

PARTITIONS_SETUP = (
    "CREATE TABLE p (id integer, k integer, v text, PRIMARY KEY (id, k)) PARTITION BY LIST (k)",
    "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
    "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)",
)
PARTITIONS = (
    "INSERT INTO p VALUES (1, 1, 'a'), (2, 2, 'b')",
    "ALTER TABLE p DETACH PARTITION p2",
    "UPDATE p2 SET v = 'b2'",
    "INSERT INTO p2 VALUES (3, 3, 'c')",
    "DELETE FROM p2 WHERE id = 3",
    "CREATE TABLE p3 (v text, extra integer, k integer NOT NULL, id integer NOT NULL, PRIMARY KEY (id, k))",
    "INSERT INTO p3 VALUES ('d', 4, 3, 4)",
    "ALTER TABLE p3 DROP extra",
    "ALTER TABLE p3 DROP CONSTRAINT p3_pkey",
    "ALTER TABLE p ATTACH PARTITION p3 FOR VALUES IN (3)",
    "INSERT INTO p VALUES (5, 3, 'e')",
    "UPDATE p SET id = 50 WHERE id = 5",
    "UPDATE p SET k = 3 WHERE id = 1",
    "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2)",
    "ALTER TABLE p ADD w integer",
    "INSERT INTO p VALUES (6, 2, 'f', 6), (7, 3, 'g', 7)",
    "CREATE TABLE p4 PARTITION OF p FOR VALUES IN (4)",
    "INSERT INTO p VALUES (8, 4, 'h', 8)",
    "ALTER TABLE p RENAME v TO note",
    "UPDATE p SET note = 'x' WHERE id > 5",
    "DROP TABLE p4",
    "ALTER TABLE p DETACH PARTITION p3",
    "DELETE FROM p",
    "DELETE FROM p3 WHERE id = 7",
)

TYPES_SETUP = (
    "CREATE TYPE mood AS ENUM ('sad', 'happy')",
    "CREATE DOMAIN small AS integer CHECK (VALUE < 1000)",
    "CREATE DOMAIN given AS text NOT NULL",
    "CREATE TABLE e (id integer PRIMARY KEY, m mood, s small, g given)",
    "INSERT INTO e VALUES (1, 'sad', 1, 'g')",
)
TYPES = (
    "INSERT INTO e VALUES (2, 'happy', 2, 'g')",
    "ALTER TYPE mood ADD VALUE 'so so' BEFORE 'happy'",
    "ALTER TABLE e ADD n integer",
    "INSERT INTO e VALUES (3, 'so so', 3, 'g')",
    "ALTER TYPE mood RENAME VALUE 'sad' TO 'very sad'",
    "ALTER TABLE e DROP n",
    "INSERT INTO e VALUES (4, 'very sad', 4, 'g')",
    "UPDATE e SET id = 5 WHERE id = 1",
    "ALTER DOMAIN small DROP CONSTRAINT small_check",
    "ALTER DOMAIN small SET NOT NULL",
    "ALTER TABLE e ADD n integer",
    "DELETE FROM e WHERE id = 5",
    "ALTER TYPE mood RENAME TO feeling",
    "ALTER DOMAIN small RENAME TO tiny",
    "ALTER TABLE e ALTER s TYPE bigint",
    "INSERT INTO e VALUES (6, 'so so', 1000, 'g')",
    "ALTER TABLE e ALTER m TYPE text",
    "UPDATE e SET m = 'none' WHERE id = 6",
)

TRANSACTION = (
    "BEGIN; INSERT INTO t VALUES (1, 'a', 1); ALTER TABLE t ADD b text; INSERT INTO t VALUES (2, 'b', 2, 'B');"
    " ALTER TABLE t DROP n; UPDATE t SET b = 'A' WHERE id = 1; ALTER TABLE t RENAME v TO w;"
    " INSERT INTO t VALUES (3, 'c', 'C'); ALTER TABLE t ALTER w TYPE varchar(5); DELETE FROM t WHERE id = 2;"
    " ALTER TABLE t REPLICA IDENTITY FULL; UPDATE t SET id = 4 WHERE id = 3; DELETE FROM t WHERE id = 1;"
    " ALTER TABLE t REPLICA IDENTITY DEFAULT; UPDATE t SET id = 5 WHERE id = 4; COMMIT",
    "BEGIN; ALTER TABLE t ADD gone text; INSERT INTO t VALUES (6, 'd', 'D', 'x'); ROLLBACK",
    "BEGIN; SAVEPOINT one; ALTER TABLE t ADD gone text; ROLLBACK TO one; INSERT INTO t VALUES (7, 'd', 'D');"
    " SAVEPOINT two; ALTER TABLE t ADD kept text; INSERT INTO t VALUES (8, 'e', 'E', 'x'); COMMIT",
    "INSERT INTO t VALUES (9, 'f', 'F', 'x')",
)

THREE = "(id integer PRIMARY KEY, a text, n integer)"

CASES = (
    Case("altered_columns", (f"CREATE TABLE t {THREE}", "INSERT INTO t VALUES (0, 'z', 0)"), COLUMNS),
    Case("altered_schemas", (f"CREATE TABLE t {THREE}", "INSERT INTO t VALUES (0, 'z', 0)"), COLUMNS, schemas=True),
    Case("altered_required", (f"CREATE TABLE t {THREE}", "INSERT INTO t VALUES (0, 'z', 0)"), REQUIRED, schemas=True),
    Case(
        "altered_keys",
        ("CREATE TABLE k (a integer PRIMARY KEY, b integer NOT NULL, c integer NOT NULL, v text)",),
        KEYS,
    ),
    Case(
        "altered_identity",
        (
            "CREATE TABLE i (id integer PRIMARY KEY, a text NOT NULL, v text)",
            "CREATE UNIQUE INDEX i_a_id ON i (a, id)",
            "INSERT INTO i SELECT g, 'a' || g, 'v' FROM generate_series(1, 6) g",
        ),
        IDENTITY_CHANGES,
    ),
    Case("altered_names", ("CREATE TABLE t (id integer PRIMARY KEY, v text)",), NAMES),
    Case("altered_names_schemas", ("CREATE TABLE t (id integer PRIMARY KEY, v text)",), NAMES, schemas=True),
    Case("altered_partitions", PARTITIONS_SETUP, PARTITIONS),
    Case("altered_partitions_root", PARTITIONS_SETUP, PARTITIONS, {"publish.via.partition.root": "true"}),
    Case("altered_types", TYPES_SETUP, TYPES, schemas=True),
    Case("altered_in_transaction", ("CREATE TABLE t (id integer PRIMARY KEY, v text, n integer)",), TRANSACTION),
)

LATE = (
    "altered_columns",
    "altered_identity",
    "altered_in_transaction",
    "altered_names",
    "altered_partitions",
    "altered_partitions_root",
)
"""The cases whose events are the same if they are read after all statements: the log alone tells what was in force."""
