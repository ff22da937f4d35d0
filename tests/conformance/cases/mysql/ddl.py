"""Cases of DDL: the schema change topic, and the rows before and after a change of their table."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import both

CHANGES = {"include.schema.changes": "true"}
SETUP = (
    "CREATE TABLE items (id int NOT NULL AUTO_INCREMENT, name varchar(20) NOT NULL DEFAULT 'none' COMMENT 'its name', "
    "price decimal(8,2) unsigned DEFAULT 1.50, kind enum('a','b') DEFAULT 'a', tags set('x','y'), "
    "made timestamp NULL DEFAULT CURRENT_TIMESTAMP, note text CHARACTER SET latin1, b bit(3) DEFAULT b'101', "
    "PRIMARY KEY (id), KEY by_name (name)) COMMENT='things'",
    "INSERT INTO items (id, name, made) VALUES (1, 'one', '2024-02-29 10:00:00')",
    "CREATE TABLE other (id int PRIMARY KEY)",
    "CREATE VIEW seen AS SELECT id FROM items",
)
MADE = "'2024-02-29 10:00:00'"
ALTERED = (
    f"INSERT INTO items (id, name, made) VALUES (2, 'two', {MADE})",
    "ALTER TABLE items ADD COLUMN added int NOT NULL DEFAULT 7",
    f"INSERT INTO items (id, name, made) VALUES (3, 'three', {MADE})",
    "ALTER TABLE items ADD first_one varchar(5) FIRST, ADD second_one bigint unsigned AFTER id",
    f"INSERT INTO items (id, name, made, second_one) VALUES (4, 'four', {MADE}, 9)",
    "UPDATE items SET name = 'eins' WHERE id = 1",
    "ALTER TABLE items DROP COLUMN added, DROP first_one",
    f"INSERT INTO items (id, name, made) VALUES (5, 'five', {MADE})",
    "ALTER TABLE items RENAME COLUMN price TO cost",
    f"INSERT INTO items (id, cost, made) VALUES (6, 2.25, {MADE})",
    "ALTER TABLE items CHANGE name title varchar(40) CHARACTER SET utf8mb4 NULL DEFAULT NULL",
    f"INSERT INTO items (id, title, made) VALUES (7, 'é', {MADE})",
    "ALTER TABLE items MODIFY COLUMN cost decimal(12,4) AFTER id, MODIFY kind enum('a','b','c')",
    f"INSERT INTO items (id, title, cost, kind, made) VALUES (8, 'acht', 1.2345, 'c', {MADE})",
    "ALTER TABLE items ALTER COLUMN title SET DEFAULT 'later', ALTER tags SET DEFAULT 'x,y'",
    f"INSERT INTO items (id, made) VALUES (9, {MADE})",
    "ALTER TABLE items CONVERT TO CHARACTER SET latin1",
    f"INSERT INTO items (id, title, note, made) VALUES (10, 'é', 'ü', {MADE})",
    "ALTER TABLE items DROP PRIMARY KEY, MODIFY id bigint NOT NULL, ADD PRIMARY KEY (id, title), MODIFY title "
    "varchar(40) NOT NULL",
    f"UPDATE items SET made = {MADE}, title = 'key' WHERE id = 2",
    "DELETE FROM items WHERE id = 3",
    "ALTER TABLE items COMMENT 'other things', ENGINE=InnoDB, ADD INDEX by_kind (kind), DROP INDEX by_name",
    f"INSERT INTO items (id, title, made) VALUES (11, 'x', {MADE})",
)
RENAMED = (
    "RENAME TABLE items TO things",
    f"INSERT INTO things (id, name, made) VALUES (2, 'two', {MADE})",
    "ALTER TABLE things RENAME TO stuff",
    f"INSERT INTO stuff (id, name, made) VALUES (3, 'three', {MADE})",
    "CREATE TABLE stuff_new LIKE stuff",
    "ALTER TABLE stuff_new ADD COLUMN extra int",
    "INSERT INTO stuff_new (id, name, made, extra) SELECT id, name, made, 5 FROM stuff WHERE id = 3",
    "RENAME TABLE stuff TO stuff_old, stuff_new TO stuff",
    f"INSERT INTO stuff (id, name, made, extra) VALUES (4, 'four', {MADE}, 6)",
    "DROP TABLE stuff_old, other",
    "CREATE TABLE other (name varchar(10) PRIMARY KEY, v json)",
    "INSERT INTO other VALUES ('a', '{\"k\": 1}')",
    "DROP TABLE IF EXISTS other, nowhere",
)
CREATED = (
    "CREATE TABLE plain (id int PRIMARY KEY, v varchar(10)) ENGINE=InnoDB DEFAULT CHARSET=latin1",
    "INSERT INTO plain VALUES (1, 'é')",
    "CREATE TABLE IF NOT EXISTS plain (id int)",
    "CREATE TABLE parts (id int NOT NULL, day date NOT NULL, PRIMARY KEY (id, day)) "
    "PARTITION BY RANGE (YEAR(day)) (PARTITION p0 VALUES LESS THAN (2024), PARTITION p1 VALUES LESS THAN MAXVALUE)",
    "INSERT INTO parts VALUES (1, '2023-01-01'), (2, '2024-01-01')",
    "ALTER TABLE parts TRUNCATE PARTITION p0",
    "ALTER TABLE parts DROP PARTITION p0",
    "CREATE INDEX by_v ON plain (v)",
    "DROP INDEX by_v ON plain",
    "CREATE UNIQUE INDEX only_v ON plain (v(5))",
    "CREATE TABLE hidden (a int NOT NULL, b int NOT NULL, c varchar(5), UNIQUE KEY u (b, a))",
    "INSERT INTO hidden VALUES (1, 2, 'x')",
    "CREATE OR REPLACE VIEW looking AS SELECT * FROM hidden",
    "DROP VIEW looking",
    "CREATE PROCEDURE nothing_much() SELECT 1",
    "CREATE TRIGGER fires BEFORE INSERT ON hidden FOR EACH ROW SET NEW.c = 'fired'",
    "INSERT INTO hidden VALUES (3, 4, 'x')",
    "TRUNCATE TABLE hidden",
    "TRUNCATE plain",
    "CREATE TEMPORARY TABLE passing (id int)",
    "INSERT INTO passing VALUES (1)",
    "DROP TEMPORARY TABLE passing",
    "ANALYZE TABLE plain",
    "GRANT SELECT ON *.* TO cdc@'%'",
    "CREATE TABLE copied AS SELECT 1 AS id, 'a' AS v",
    "ALTER DATABASE ddl_created CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "CREATE TABLE inherits (id int PRIMARY KEY, v varchar(10))",
    "INSERT INTO inherits VALUES (1, 'é')",
)
GENERATED = (
    "CREATE TABLE made_up (id int PRIMARY KEY, a int, v int GENERATED ALWAYS AS (a + 1) VIRTUAL, "
    "s int AS (a * 2) STORED, last varchar(5))",
    "INSERT INTO made_up (id, a, last) VALUES (1, 10, 'x')",
)
GENERATED_LATER = (
    "INSERT INTO made_up (id, a, last) VALUES (2, 20, 'y')",
    "UPDATE made_up SET a = 21 WHERE id = 2",
    "ALTER TABLE made_up ADD t varchar(10) AS (CONCAT(last, '!')) STORED AFTER a",
    "INSERT INTO made_up (id, a, last) VALUES (3, 30, 'z')",
    "DELETE FROM made_up WHERE id = 1",
)
INVISIBLE = (
    "CREATE TABLE unseen (id int PRIMARY KEY, a int, h int DEFAULT 5 INVISIBLE, z int)",
    "INSERT INTO unseen (id, a, h, z) VALUES (1, 1, 1, 1)",
)
INVISIBLE_LATER = (
    "INSERT INTO unseen (id, a, z) VALUES (2, 2, 2)",
    "ALTER TABLE unseen ADD later varchar(5) DEFAULT 'x' INVISIBLE AFTER id",
    "INSERT INTO unseen (id, a, z) VALUES (3, 3, 3)",
    "UPDATE unseen SET h = 6 WHERE id = 3",
)
SECOND = "ddl_databases_b"
DATABASES = (
    "CREATE TABLE here (id int PRIMARY KEY)",
    f"CREATE DATABASE {SECOND} CHARACTER SET latin1",
    f"CREATE TABLE {SECOND}.there (id int PRIMARY KEY, v varchar(5))",
    f"INSERT INTO {SECOND}.there VALUES (1, 'é')",
    "INSERT INTO here VALUES (1)",
)
DATABASES_LATER = (
    f"INSERT INTO {SECOND}.there VALUES (2, 'ü')",
    "INSERT INTO here VALUES (2)",
    f"CREATE TABLE {SECOND}.more (v varchar(5) PRIMARY KEY)",
    f"INSERT INTO {SECOND}.more VALUES ('ß')",
    f"RENAME TABLE {SECOND}.more TO here_too",
    "INSERT INTO here_too VALUES ('é')",
    f"DROP DATABASE {SECOND}",
    f"CREATE DATABASE {SECOND}",
    f"CREATE TABLE {SECOND}.there (v varchar(5) PRIMARY KEY)",
    f"INSERT INTO {SECOND}.there VALUES ('plain')",
    f"DROP DATABASE {SECOND}",
)

OUTSIDE = (
    "CREATE TABLE here (id int PRIMARY KEY)",
    "CREATE DATABASE not_captured",
    "CREATE TABLE not_captured.before (id int PRIMARY KEY)",
)
OUTSIDE_LATER = (
    "CREATE TABLE not_captured.later (id int PRIMARY KEY)",
    "ALTER TABLE not_captured.before ADD v int",
    "INSERT INTO not_captured.before VALUES (1, 2)",
    "ALTER TABLE here ADD v int",
    "INSERT INTO here VALUES (1, 2)",
    "DROP DATABASE not_captured",
)

PARTITIONED = (
    "CREATE TABLE parts (id int PRIMARY KEY, v int) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10), "
    "PARTITION b VALUES LESS THAN MAXVALUE)",
    "CREATE TABLE hashed (id int PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 3",
    "INSERT INTO parts VALUES (1, 1), (20, 2)",
)
PARTITIONED_LATER = (
    "INSERT INTO parts VALUES (2, 1)",
    "CREATE TABLE later (id int PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 2",
    "INSERT INTO later VALUES (1)",
    "ALTER TABLE parts ADD w int",
    "INSERT INTO parts VALUES (3, 1, 1)",
)

CASES: tuple[Case, ...] = (
    *both("ddl_altered", SETUP, ALTERED, CHANGES),
    *both("ddl_altered_schemas", SETUP, ALTERED, schemas=True),
    *both("ddl_renamed", SETUP, RENAMED, CHANGES),
    *both("ddl_created", SETUP, CREATED, {**CHANGES, "skipped.operations": "none"}),
    *both("ddl_topic_schemas", SETUP, ALTERED[:4], CHANGES, schemas=True),
    *both("ddl_comments", SETUP, ALTERED[:4], {**CHANGES, "include.schema.comments": "true"}, schemas=True),
    *both("ddl_filtered", SETUP, RENAMED, {**CHANGES, "table.include.list": r"ddl_filtered\.stuff"}),
    *both(
        "ddl_stored_tables",
        SETUP,
        ALTERED[:6],
        {
            **CHANGES,
            "table.include.list": r"ddl_stored_tables\.items",
            "schema.history.internal.store.only.captured.tables.ddl": "true",
        },
    ),
    *both("ddl_partitioned", PARTITIONED, PARTITIONED_LATER, CHANGES),
    *both("ddl_generated", GENERATED, GENERATED_LATER, CHANGES),
    *both("ddl_invisible", INVISIBLE, INVISIBLE_LATER, CHANGES),
    *both(
        "ddl_metadata",
        SETUP,
        ALTERED,
        settings={"binlog_row_metadata": "FULL"},
    ),
    *both("ddl_databases", DATABASES, DATABASES_LATER, {**CHANGES, "database.include.list": "ddl_databases.*"}),
    *both(
        "ddl_databases_excluded",
        DATABASES,
        DATABASES_LATER,
        {**CHANGES, "database.include.list": "ddl_databases.*", "table.exclude.list": rf"{SECOND}\..*"},
    ),
    *both("ddl_outside", OUTSIDE, OUTSIDE_LATER, {**CHANGES, "database.include.list": "ddl_outside"}),
    *both(
        "ddl_outside_left_out",
        OUTSIDE,
        # Debezium takes an ALTER of a table that it doesn't know for one in the session's database.
        OUTSIDE_LATER[:1] + OUTSIDE_LATER[3:],
        {
            **CHANGES,
            "database.include.list": "ddl_outside_left_out",
            "schema.history.internal.store.only.captured.databases.ddl": "true",
        },
    ),
)
