"""Cases of what a stream holds beside rows, and of the options that leave events out."""

from __future__ import annotations

from tests.conformance.cases.case import Case

ROWS = "CREATE TABLE rows (id integer PRIMARY KEY, v text)"
TABLES = (
    ROWS,
    "CREATE TABLE whole (id integer PRIMARY KEY, v text)",
    "ALTER TABLE whole REPLICA IDENTITY FULL",
    "CREATE TABLE left_out (id integer PRIMARY KEY, v text)",
    "CREATE TABLE nokey (v text)",
    "INSERT INTO rows VALUES (1, 'snapshot')",
)
ALL_PUBLISHED = "CREATE PUBLICATION everything FOR ALL TABLES"
MANY = tuple(f"many_{number}" for number in range(15))

TRANSACTIONS = (
    "INSERT INTO rows VALUES (2, 'a')",
    "INSERT INTO rows VALUES (3, 'a'), (4, 'b'); INSERT INTO whole VALUES (1, 'c'); INSERT INTO rows VALUES (5, 'd')",
    "INSERT INTO left_out VALUES (1, 'x'); INSERT INTO nokey VALUES ('n'); INSERT INTO left_out VALUES (2, 'y')",
    "INSERT INTO left_out VALUES (3, 'z')",
    "UPDATE rows SET v = 'u' WHERE id = 2; UPDATE rows SET id = 20 WHERE id = 2; UPDATE whole SET id = 10; "
    "UPDATE whole SET v = 'w'; DELETE FROM rows WHERE id = 20",
    "INSERT INTO rows VALUES (6, 'e'); TRUNCATE whole, nokey, left_out; INSERT INTO whole VALUES (2, 'f')",
    "; ".join(f"INSERT INTO {table} VALUES (30)" for table in (*MANY[3:8], "whole (id)", "rows (id)")),
    "; ".join(f"INSERT INTO {table} VALUES (1), (2)" for table in MANY),
)

MESSAGES = (
    "SELECT pg_logical_emit_message(false, 'outside', 'not in a transaction')",
    "SELECT pg_logical_emit_message(true, 'inside', 'in a transaction')",
    "INSERT INTO rows VALUES (2, 'a'); SELECT pg_logical_emit_message(true, 'outbox', '{\"id\": 1}'); "
    "INSERT INTO rows VALUES (3, 'b'); SELECT pg_logical_emit_message(true, 'outbox', '')",
    r"SELECT pg_logical_emit_message(false, 'Binary', '\x00ff10fbefbe'::bytea)",
    r"SELECT pg_logical_emit_message(true, 'quote " r" é 😀', 'tab' || chr(9) || '\ 😀')",
    "SELECT pg_logical_emit_message(false, '', 'no prefix')",
    "INSERT INTO rows VALUES (4, 'c')",
)

OPERATIONS = (
    "INSERT INTO rows VALUES (2, 'a'), (3, 'b')",
    "UPDATE rows SET v = 'u' WHERE id = 2",
    "UPDATE rows SET id = 20 WHERE id = 2",
    "INSERT INTO whole VALUES (1, 'a')",
    "UPDATE whole SET v = 'u'",
    "UPDATE whole SET id = 10",
    "DELETE FROM whole",
    "DELETE FROM rows WHERE id = 20",
    "TRUNCATE rows, whole",
    "INSERT INTO rows VALUES (5, 'c'); UPDATE rows SET id = 6; UPDATE rows SET v = 'z'; DELETE FROM rows",
)
SKIPPED = ("c", "u", "d", "none", "u,d", "c,t", "d,t", "c,u,d", "c,u,d,t")

METADATA = {"provide.transaction.metadata": "true"}
FILTER = {"table.exclude.list": "public.left_out"}
EVERYTHING = {"publication.name": "everything"}


def many_tables() -> tuple[str, ...]:
    return tuple(f"CREATE TABLE {table} (id integer PRIMARY KEY)" for table in MANY)


def messages(name: str, options: dict[str, str] | None = None, schemas: bool = False) -> Case:
    return Case(f"messages_{name}", (ROWS,), MESSAGES, options or {}, schemas)


def heartbeat(name: str, options: dict[str, str] | None = None, schemas: bool = False) -> Case:
    every = {"heartbeat.interval.ms": "1", **(options or {})}
    return Case(f"heartbeat_{name}", (ROWS,), ("INSERT INTO rows VALUES (1, 'a')",), every, schemas)


def skipped(operations: str) -> Case:
    name = f"skipped_{operations.replace(',', '_')}"
    options = {"skipped.operations": operations, **EVERYTHING, **METADATA}
    return Case(name, (*TABLES, ALL_PUBLISHED), OPERATIONS, options)


ORIGIN = (
    "INSERT INTO rows VALUES (2, 'own')",
    "SELECT pg_replication_origin_session_setup('elsewhere \"1\"')",
    "BEGIN; SELECT pg_replication_origin_xact_setup('0/12345', now()); INSERT INTO rows VALUES (3, 'a'); "
    "INSERT INTO rows VALUES (4, 'b'); COMMIT",
    "INSERT INTO rows VALUES (5, 'no position')",
    "SELECT pg_replication_origin_session_reset()",
    "INSERT INTO rows VALUES (6, 'own')",
)
CREATE_ORIGIN = "SELECT pg_replication_origin_create('elsewhere \"1\"')"
CREATE_ORIGIN += " WHERE NOT EXISTS (SELECT FROM pg_replication_origin WHERE roname = 'elsewhere \"1\"')"

CASES = (
    Case("transactions", (*TABLES, *many_tables()), TRANSACTIONS, {**METADATA, **FILTER}),
    Case(
        "transactions_truncates",
        (*TABLES, *many_tables()),
        TRANSACTIONS,
        {**METADATA, **FILTER, "skipped.operations": "none"},
    ),
    Case("transactions_schemas", (*TABLES, *many_tables()), TRANSACTIONS, {**METADATA, **FILTER}, schemas=True),
    Case(
        "transactions_topic",
        TABLES,
        TRANSACTIONS[:2],
        {**METADATA, "topic.transaction": "tx", "topic.delimiter": "_"},
    ),
    Case(
        "transactions_without_change",
        TABLES,
        (
            "INSERT INTO whole VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "UPDATE whole SET v = v || 'x'; UPDATE whole SET id = 10 WHERE id = 1; INSERT INTO rows VALUES (2, 'a')",
            "UPDATE whole SET v = 'y'",
        ),
        {**METADATA, "skip.messages.without.change": "true", "column.exclude.list": "public.whole.v"},
    ),
    messages("bytes"),
    messages("base64", {"binary.handling.mode": "base64"}),
    messages("url_safe", {"binary.handling.mode": "base64-url-safe"}),
    messages("hex", {"binary.handling.mode": "hex"}),
    messages("include", {"message.prefix.include.list": "OUT.*,in,floodmark.*"}),
    messages("exclude", {"message.prefix.exclude.list": "out.*,bin"}),
    messages("schemas", schemas=True),
    messages("schemas_hex", {"binary.handling.mode": "hex"}, schemas=True),
    messages("transactions", METADATA),
    messages("transactions_exclude", {**METADATA, "message.prefix.exclude.list": "outbox"}),
    heartbeat("default"),
    heartbeat("prefix", {"topic.heartbeat.prefix": "beat", "topic.delimiter": "-"}),
    heartbeat("name", {"topic.heartbeat.name": "beats"}),
    heartbeat("schemas", schemas=True),
    *map(skipped, SKIPPED),
    Case("no_tombstones", TABLES, OPERATIONS, {"tombstones.on.delete": "false"}),
    Case("xmin", TABLES, OPERATIONS[:2], {"xmin.fetch.interval.ms": "10"}),
    Case("origins", (*TABLES, CREATE_ORIGIN), ORIGIN),
    Case("origins_none", (*TABLES, CREATE_ORIGIN), ORIGIN, {"slot.stream.params": "origin=none"}),
    Case("flush_manual", TABLES, OPERATIONS[:2], {"lsn.flush.mode": "manual"}),
    Case("flush_driver", TABLES, OPERATIONS[:2], {"lsn.flush.mode": "connector_and_driver"}),
    Case("flush_source", TABLES, OPERATIONS[:2], {"flush.lsn.source": "false"}),
    Case("schema_refresh", TABLES, OPERATIONS, {"schema.refresh.mode": "columns_diff_exclude_unchanged_toast"}),
)
