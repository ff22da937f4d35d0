"""Cases of Connect schemas, and of tables that are altered."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.scalars import AS_XML, MOOD, ORDINARY, SCALAR_COLUMNS, create_scalars, insert

SCHEMA_CHANGE_STATEMENTS = (
    "INSERT INTO s VALUES (1, 'a')",
    "ALTER TABLE s ADD n integer",
    "INSERT INTO s VALUES (2, 'b', 2)",
    "UPDATE s SET a = 'a2' WHERE id = 1",
    "ALTER TABLE s ADD d text NOT NULL DEFAULT 'new'",
    "UPDATE s SET n = 1 WHERE id = 1",
    "DELETE FROM s WHERE id = 1",
    "ALTER TABLE s DROP a",
    "UPDATE s SET n = 22 WHERE id = 2",
    "ALTER TABLE s ALTER n TYPE numeric(8,3)",
    "UPDATE s SET d = 'x' WHERE id = 2",
    "ALTER TABLE s RENAME d TO e",
    "INSERT INTO s VALUES (3, 3.5, 'y')",
    "ALTER TABLE s DROP CONSTRAINT s_pkey, ADD PRIMARY KEY (id, e)",
    "UPDATE s SET n = 4 WHERE id = 3",
    "DELETE FROM s WHERE id = 3",
)

SCHEMAS_SETUP = (
    MOOD,
    AS_XML,
    create_scalars("scalars", SCALAR_COLUMNS),
    insert("scalars", 1, ORDINARY),
    "CREATE TABLE id_default (id integer PRIMARY KEY, a text NOT NULL, b integer NOT NULL, c text,"
    " e text NOT NULL DEFAULT 'dflt', f integer DEFAULT 5, g numeric(6,2) DEFAULT 1.5,"
    " h date DEFAULT '2024-01-01', i boolean NOT NULL DEFAULT true, j timestamptz DEFAULT now())",
    "CREATE TABLE key_none (id integer, v text)",
    "CREATE TABLE t (id integer PRIMARY KEY)",
)
SCHEMAS_STATEMENTS = (
    insert("scalars", 101, {}),
    "INSERT INTO id_default (id, a, b, j) VALUES (1, 'a', 10, '2024-01-01 00:00:00.5+00')",
    "UPDATE id_default SET id = 2",
    "DELETE FROM id_default",
    "INSERT INTO key_none VALUES (1, 'v')",
    "TRUNCATE t",
)

CASES = (
    Case(
        "schema_change",
        ("CREATE TABLE s (id integer PRIMARY KEY, a text)",),
        SCHEMA_CHANGE_STATEMENTS,
    ),
    Case("schemas_enabled", SCHEMAS_SETUP, SCHEMAS_STATEMENTS, {"skipped.operations": "none"}, schemas=True),
)
