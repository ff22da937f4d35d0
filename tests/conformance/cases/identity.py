"""Cases of keys, replica identities, large values and truncates."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.scalars import AS_XML, MOOD, ORDINARY, SCALAR_COLUMNS, create_scalars, insert

IDENTITY_COLUMNS = (
    "a text NOT NULL, b integer NOT NULL, c text, d integer, e text NOT NULL DEFAULT 'dflt', f integer DEFAULT 5"
)
IDENTITY_SETUP = (
    MOOD,
    AS_XML,
    f"CREATE TABLE id_default (id integer PRIMARY KEY, {IDENTITY_COLUMNS})",
    f"CREATE TABLE id_full (id integer PRIMARY KEY, {IDENTITY_COLUMNS})",
    f"CREATE TABLE id_index (id integer PRIMARY KEY, {IDENTITY_COLUMNS})",
    f"CREATE TABLE id_nothing (id integer PRIMARY KEY, {IDENTITY_COLUMNS})",
    f"CREATE TABLE key_composite (x text, n bigint, {IDENTITY_COLUMNS}, PRIMARY KEY (n, x))",
    f"CREATE TABLE key_none (id integer, {IDENTITY_COLUMNS})",
    f"CREATE TABLE key_none_full (id integer, {IDENTITY_COLUMNS})",
    "CREATE TABLE key_unique_only (id integer NOT NULL UNIQUE, v text)",
    "CREATE UNIQUE INDEX id_index_ab ON id_index (a, b)",
    "ALTER TABLE id_full REPLICA IDENTITY FULL",
    "ALTER TABLE id_index REPLICA IDENTITY USING INDEX id_index_ab",
    "ALTER TABLE id_nothing REPLICA IDENTITY NOTHING",
    "ALTER TABLE key_none_full REPLICA IDENTITY FULL",
    "ALTER TABLE key_unique_only REPLICA IDENTITY FULL",
    create_scalars("not_nulls", SCALAR_COLUMNS, " NOT NULL"),
    insert("not_nulls", 1, ORDINARY),
)
IDENTITY_VALUES = "(id, a, b, c, d) VALUES (1, 'a', 10, 'c', 20)"
IDENTITY_STATEMENTS = (
    *(
        statement.format(table=table)
        for table in ("id_default", "id_full", "id_index", "key_none_full")
        for statement in (
            f"INSERT INTO {{table}} {IDENTITY_VALUES}",
            "UPDATE {table} SET c = 'c2' WHERE id = 1",
            "UPDATE {table} SET a = 'a2', c = NULL WHERE id = 1",
            "UPDATE {table} SET id = 2 WHERE id = 1",
            "DELETE FROM {table} WHERE id = 2",
        )
    ),
    f"INSERT INTO id_nothing {IDENTITY_VALUES}",
    f"INSERT INTO key_none {IDENTITY_VALUES}",
    "INSERT INTO key_composite (x, n, a, b) VALUES ('k\"1', 9007199254740993, 'a', 10)",
    "UPDATE key_composite SET x = 'k2'",
    "DELETE FROM key_composite",
    "INSERT INTO key_unique_only VALUES (1, 'v')",
    "UPDATE key_unique_only SET id = 2",
    "DELETE FROM key_unique_only",
    "INSERT INTO id_default (id, a, b, f) VALUES (3, 'a', 1, NULL), (4, 'b', 2, 6), (5, 'c', 3, 7)",
    "UPDATE id_default SET id = 6 - id + 100 WHERE id IN (4, 5)",
    "UPDATE not_nulls SET id = 2",
    "DELETE FROM not_nulls",
)

WIDE = "repeat('0123456789', 60)"
TOAST_SETUP = (
    *(
        f"CREATE TABLE {table} (id integer PRIMARY KEY, n integer, t text, tn text NOT NULL, b bytea,"
        f" j jsonb, a text[], i int[]) WITH (toast_tuple_target = 128)"
        for table in ("toast_default", "toast_full")
    ),
    *(
        f"ALTER TABLE {table} ALTER {column} SET STORAGE EXTERNAL"
        for table in ("toast_default", "toast_full")
        for column in ("t", "tn", "b", "j", "a", "i")
    ),
    "ALTER TABLE toast_full REPLICA IDENTITY FULL",
)
TOAST_STATEMENTS = tuple(
    statement.format(table=table)
    for table in ("toast_default", "toast_full")
    for statement in (
        f"INSERT INTO {{table}} VALUES (1, 1, {WIDE}, {WIDE}, convert_to({WIDE}, 'UTF8'), to_jsonb({WIDE}),"
        f" ARRAY[{WIDE}], array_fill(7, ARRAY[150]))",
        "UPDATE {table} SET n = 2",
        "UPDATE {table} SET t = 'short'",
        "UPDATE {table} SET id = 2",
        "DELETE FROM {table}",
    )
)

TRUNCATE_SETUP = (
    "CREATE TABLE t1 (id integer PRIMARY KEY)",
    "CREATE TABLE t2 (id integer PRIMARY KEY)",
    "CREATE TABLE t3 (id integer REFERENCES t1)",
)
TRUNCATE_STATEMENTS = (
    "INSERT INTO t1 VALUES (1)",
    "TRUNCATE t2",
    "TRUNCATE t1, t2, t3 RESTART IDENTITY",
    "TRUNCATE t1 CASCADE",
    "INSERT INTO t1 VALUES (2)",
)

MARKERS_SETUP = (
    *(f"CREATE TABLE {table} (id integer PRIMARY KEY)" for table in ("a", "b", "c", "d")),
    *(f"INSERT INTO {table} VALUES (1), (2), (3)" for table in ("a", "c")),
    "INSERT INTO b VALUES (1)",
)

CASES = (
    Case("identity", IDENTITY_SETUP, IDENTITY_STATEMENTS),
    Case("toast", TOAST_SETUP, TOAST_STATEMENTS),
    Case("truncate", TRUNCATE_SETUP, TRUNCATE_STATEMENTS, {"skipped.operations": "none"}),
    Case("snapshot_markers", MARKERS_SETUP, ("INSERT INTO b VALUES (3)",)),
)
