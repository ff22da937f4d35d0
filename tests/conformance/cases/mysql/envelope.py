"""Cases of the envelope, of operations and of what a stream holds beside rows."""

from __future__ import annotations

from itertools import chain

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import both

TABLES = (
    "CREATE TABLE `rows` (id int PRIMARY KEY, v varchar(20))",
    "CREATE TABLE other (id int PRIMARY KEY, v varchar(20))",
    "CREATE TABLE nokey (v varchar(20))",
    "CREATE TABLE nothing (id int PRIMARY KEY)",
    "CREATE TABLE left_out (id int PRIMARY KEY)",
    "INSERT INTO `rows` VALUES (1, 'snapshot'), (2, 'snapshot'), (3, NULL)",
    "INSERT INTO other VALUES (1, 'only')",
    "INSERT INTO nokey VALUES ('a'), ('b')",
)
OPERATIONS = (
    "INSERT INTO `rows` VALUES (4, 'a'), (5, 'b')",
    "UPDATE `rows` SET v = 'u' WHERE id = 4",
    "UPDATE `rows` SET id = 40 WHERE id = 4",
    "INSERT INTO nokey VALUES ('c')",
    "UPDATE nokey SET v = 'd' WHERE v = 'c'",
    "DELETE FROM nokey WHERE v = 'd'",
    "DELETE FROM `rows` WHERE id = 40",
    "REPLACE INTO `rows` VALUES (5, 'replaced'), (41, 'new')",
    "INSERT INTO `rows` VALUES (5, 'x') ON DUPLICATE KEY UPDATE v = 'upsert'",
    "BEGIN",
    "INSERT INTO `rows` VALUES (6, 'c')",
    "INSERT INTO other VALUES (2, 'c')",
    "UPDATE `rows` SET id = 7 WHERE id = 6",
    "UPDATE `rows` SET v = 'z'",
    "DELETE FROM `rows`",
    "COMMIT",
    "TRUNCATE other",
    "INSERT INTO other VALUES (3, 'after')",
)
TRANSACTIONS = (
    "BEGIN",
    "INSERT INTO `rows` VALUES (10, 'a')",
    "INSERT INTO other VALUES (10, 'b'), (11, 'c')",
    "INSERT INTO left_out VALUES (1)",
    "INSERT INTO `rows` VALUES (11, 'd')",
    "COMMIT",
    "INSERT INTO left_out VALUES (2)",
    "BEGIN",
    "INSERT INTO `rows` VALUES (12, 'kept')",
    "SAVEPOINT one",
    "INSERT INTO `rows` VALUES (13, 'undone')",
    "ROLLBACK TO one",
    "INSERT INTO `rows` VALUES (14, 'kept')",
    "COMMIT",
    "BEGIN",
    "INSERT INTO `rows` VALUES (15, 'undone')",
    "ROLLBACK",
    "UPDATE `rows` SET id = 20 WHERE id = 10",
    "TRUNCATE other",
    "CREATE TABLE made (id int PRIMARY KEY)",
    "INSERT INTO made VALUES (1), (2), (3)",
    "UPDATE `rows` JOIN other ON other.id = `rows`.id SET `rows`.v = 'none', other.v = 'none'",
    "DELETE FROM `rows` WHERE id > 10",
)
PARENTS = (
    "CREATE TABLE parent (id int PRIMARY KEY)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int, "
    "FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE SET NULL)",
    "INSERT INTO parent VALUES (1), (2)",
    "INSERT INTO child VALUES (10, 1), (11, 1), (12, 2)",
)
METADATA = {"provide.transaction.metadata": "true"}
FILTER = {"table.exclude.list": r".*\.left_out"}
SKIPPED = ("c", "u", "d", "none", "u,d", "c,t", "d,t")


def skipped(operations: str) -> tuple[Case, ...]:
    name = f"skipped_{operations.replace(',', '_')}"
    return both(name, TABLES, OPERATIONS, {"skipped.operations": operations, **METADATA})


def heartbeat(name: str, options: dict[str, str] | None = None, schemas: bool = False) -> tuple[Case, ...]:
    every = {"heartbeat.interval.ms": "1", **(options or {})}
    return both(f"heartbeat_{name}", TABLES, OPERATIONS[:2], every, schemas)


QUERY = (
    "INSERT INTO `rows` VALUES (4, 'a'), (5, 'b') /* a comment */",
    "BEGIN",
    "UPDATE `rows` SET v = 'é\"\\\\' WHERE id = 4",
    "INSERT INTO other VALUES (5, 'b')",
    "COMMIT",
    "UPDATE `rows`\n   SET id = 40\n WHERE id = 4",
    "PREPARE removal FROM 'DELETE FROM `rows` WHERE id = ?'",
    "SET @id = 40",
    "EXECUTE removal USING @id",
    "DELETE FROM `rows`",
)


def query(name: str, options: dict[str, str] | None = None) -> tuple[Case, ...]:
    """Return cases of statements in the log: MariaDB annotates rows by default, MySQL if told to."""
    rows_query = {"binlog_rows_query_log_events": "ON"}
    return (
        *both(name, TABLES, QUERY, options, settings=rows_query, flavors=("mysql",)),
        *both(name, TABLES, QUERY, options, flavors=("mariadb",)),
    )


CASES: tuple[Case, ...] = (
    *both("operations", TABLES, OPERATIONS),
    *both("operations_schemas", TABLES, OPERATIONS, schemas=True),
    *both("no_tombstones", TABLES, OPERATIONS, {"tombstones.on.delete": "false"}),
    *chain.from_iterable(map(skipped, SKIPPED)),
    *both("transactions", TABLES, TRANSACTIONS, {**METADATA, **FILTER}),
    *both("transactions_schemas", TABLES, TRANSACTIONS, {**METADATA, **FILTER}, schemas=True),
    *both("transactions_topic", TABLES, TRANSACTIONS[:6], {**METADATA, "topic.transaction": "tx"}),
    *both("transactions_delimiter", TABLES, TRANSACTIONS[:6], {**METADATA, "topic.delimiter": "_"}),
    *both("cascades", PARENTS, ("DELETE FROM parent WHERE id = 1", "UPDATE parent SET id = 3"), METADATA),
    *heartbeat("default"),
    *heartbeat("prefix", {"topic.heartbeat.prefix": "beat", "topic.delimiter": "-"}),
    *heartbeat("name", {"topic.heartbeat.name": "beats"}),
    *heartbeat("schemas", schemas=True),
    *query("query", {"include.query": "true"}),
    *query("query_left_out"),
    *both("no_data", TABLES, OPERATIONS, {"snapshot.mode": "no_data"}),
    *both("snapshot_always", TABLES, OPERATIONS[:3], {"snapshot.mode": "always"}),
    *both("snapshot_when_needed", TABLES, OPERATIONS[:3], {"snapshot.mode": "when_needed"}),
    *both(
        "snapshot_tables",
        TABLES,
        OPERATIONS[:3],
        {"snapshot.include.collection.list": r"snapshot_tables\.rows,snapshot_tables\.nokey"},
    ),
    *both(
        "snapshot_select",
        TABLES,
        OPERATIONS[:3],
        {
            "snapshot.select.statement.overrides": "snapshot_select.rows",
            "snapshot.select.statement.overrides.snapshot_select.rows": "SELECT * FROM `snapshot_select`.`rows` "
            "WHERE id > 1 ORDER BY id DESC",
        },
    ),
    *both("snapshot_unlocked", TABLES, OPERATIONS[:3], {"snapshot.locking.mode": "none"}),
    *both("snapshot_extended", TABLES, OPERATIONS[:3], {"snapshot.locking.mode": "extended"}),
    *both(
        "without_change",
        TABLES,
        (*OPERATIONS[:2], "UPDATE other SET v = 'left out'"),
        {"skip.messages.without.change": "true", "column.exclude.list": r".*\.other\.v"},
    ),
    *both(
        "gtid_off",
        TABLES,
        OPERATIONS,
        METADATA,
        settings={"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"},
        flavors=("mysql",),
    ),
)
