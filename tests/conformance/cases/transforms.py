"""Cases of transforms of records: ``transforms``, ``predicates``."""

from __future__ import annotations

from tests.conformance.cases.case import Case

TABLES = (
    "CREATE TABLE plain (id integer PRIMARY KEY, v text, d integer DEFAULT 7, topic text)",
    "CREATE TABLE whole (id integer PRIMARY KEY, v text NOT NULL DEFAULT 'x', n numeric(10,2), topic text)",
    "ALTER TABLE whole REPLICA IDENTITY FULL",
    "CREATE TABLE nokey (v text)",
    "INSERT INTO plain VALUES (1, 'snapshot', NULL, 'elsewhere')",
)
MESSAGE = "SELECT pg_logical_emit_message(true, 'prefix', 'content')"
STATEMENTS = (
    r"INSERT INTO plain VALUES (2, 'a " r"\ 😀', NULL, NULL), (3, NULL, 5, ''), (4, 'b', 6, 'quoted" "\topic')",
    "INSERT INTO whole VALUES (1, 'c', 1.50, 'whole_1'), (2, 'd', NULL, NULL)",
    "UPDATE plain SET v = 'u' WHERE id = 2; UPDATE whole SET v = 'w', topic = 'moved' WHERE id = 1",
    "UPDATE plain SET id = 20 WHERE id = 2; UPDATE whole SET id = 10 WHERE id = 1",
    "INSERT INTO nokey VALUES ('n')",
    "DELETE FROM plain WHERE id = 20; DELETE FROM whole",
    MESSAGE,
    "TRUNCATE plain",
    "INSERT INTO plain VALUES (5, 'e', 6, 'last')",
)
EXTRACT = "io.debezium.transforms.ExtractNewRecordState"
JSON = {"header.converter": "org.apache.kafka.connect.json.JsonConverter"}
METADATA = {"provide.transaction.metadata": "true"}
AS_NULL = {"value.converter.replace.null.with.default": "false", "table.include.list": "public.plain,public.whole"}
EVERY_OPERATION = {"skipped.operations": "none"}
MODES = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
FIELDS = "op,table,schema:Schema,connector,source.name:Name,source.schema,transaction.id,snapshot,origin,nothing"
COUNTS = "transaction.total_order,data_collection_order:n,op"


def extract_options(own: dict[str, str]) -> dict[str, str]:
    """Return the options of a connector with ``ExtractNewRecordState`` and its own options."""
    given = {f"transforms.unwrap.{key}": value for key, value in own.items()}
    return {"transforms": "unwrap", "transforms.unwrap.type": EXTRACT, **given, **EVERY_OPERATION}


def extracted(
    name: str,
    options: dict[str, str] | None = None,
    schemas: bool = False,
    streamed: bool = False,
    others: dict[str, str] | None = None,
) -> Case:
    """Return a case of ``ExtractNewRecordState``.

    Args:
        name: behind ``extract_``.
        options: the transform's.
        schemas: whether values have schemas.
        streamed: whether there is nothing to snapshot.
        others: further options.
    """
    every = extract_options(options or {}) | (others or {})
    statements = STATEMENTS if options is None else tuple(one for one in STATEMENTS if one != MESSAGE)
    return Case(f"extract_{name}", TABLES[:-1] if streamed else TABLES, statements, every, schemas)


CASES = (
    extracted("default"),
    extracted("default_schemas", schemas=True),
    *(
        extracted(
            f"{mode.replace('-', '_')}{'_schemas' if schemas else ''}",
            {"delete.tombstone.handling.mode": mode},
            schemas,
        )
        for mode in MODES
        for schemas in (False, True)
        if mode != "tombstone"
    ),
    extracted("added", {"add.fields": FIELDS}, streamed=True),
    extracted(
        "added_schemas", {"add.fields": FIELDS, "delete.tombstone.handling.mode": "rewrite"}, True, streamed=True
    ),
    extracted("added_rows", {"add.fields": "op,before.v:old,after.d", "add.fields.prefix": "_"}),
    extracted("counted", {"add.fields": COUNTS, "add.headers": COUNTS}, others=METADATA | JSON),
    extracted(
        "headers",
        {
            "add.headers": "op,source.connector,table,snapshot,transaction.id,nothing",
            "delete.tombstone.handling.mode": "rewrite-with-tombstone",
        },
        streamed=True,
        others=JSON,
    ),
    extracted(
        "headers_schemas",
        {"add.headers": f"{COUNTS},source.connector,source.schema,after.d,nothing"},
        others=METADATA | JSON | {"header.converter.schemas.enable": "true"},
    ),
    Case(
        "moved_keys_header_schemas",
        TABLES,
        STATEMENTS,
        {**EVERY_OPERATION, **JSON, "header.converter.schemas.enable": "true"},
    ),
    extracted("headers_prefix", {"add.headers": "op,connector:v", "add.headers.prefix": "h."}, others=JSON),
    extracted(
        "routed",
        {"route.by.field": "topic", "delete.tombstone.handling.mode": "rewrite"},
        others={"table.exclude.list": "public.nokey"},
    ),
    extracted(
        "nulls",
        {"delete.tombstone.handling.mode": "rewrite", "replace.null.with.default": "false"},
        others=AS_NULL,
    ),
    extracted(
        "nulls_replaced",
        {"delete.tombstone.handling.mode": "rewrite"},
        others=AS_NULL,
    ),
    extracted(
        "predicate",
        {"predicate": "plain"},
        others={
            "predicates": "plain",
            "predicates.plain.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
            "predicates.plain.pattern": r".*\.plain",
        },
    ),
    extracted(
        "predicate_negated",
        {"predicate": "gone", "negate": "true", "delete.tombstone.handling.mode": "rewrite"},
        others={
            "predicates": "gone",
            "predicates.gone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        },
    ),
)
