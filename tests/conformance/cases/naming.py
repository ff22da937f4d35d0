"""Cases of what topics, schemas and fields are called, and of which tables are captured."""

from __future__ import annotations

from tests.conformance.cases.case import Case

ODD_SETUP = (
    'CREATE SCHEMA "odd-schéma"',
    'CREATE TABLE "odd-schéma"."my_tâble 😀" ("my-id" integer, "2nd" integer, "a.b" text, "übér_" text, plain text,'
    ' "日本" text, PRIMARY KEY ("my-id", "2nd"))',
    "CREATE TABLE plain (id integer PRIMARY KEY, a text)",
    "INSERT INTO \"odd-schéma\".\"my_tâble 😀\" VALUES (1, 2, 'a', 'b', 'c', 'd')",
    "INSERT INTO plain VALUES (1, 'a')",
)
ODD_STATEMENTS = (
    "INSERT INTO \"odd-schéma\".\"my_tâble 😀\" VALUES (3, 4, 'a', 'b', 'c', 'd')",
    'UPDATE "odd-schéma"."my_tâble 😀" SET "2nd" = 5 WHERE "2nd" = 4',
    'DELETE FROM "odd-schéma"."my_tâble 😀" WHERE "2nd" = 5',
    "INSERT INTO plain VALUES (2, 'a')",
    "DELETE FROM plain WHERE id = 2",
)


def adjusted(mode: str) -> dict[str, str]:
    return {"schema.name.adjustment.mode": mode, "field.name.adjustment.mode": mode}


def strategy(name: str, **options: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in options.items()}
    return {"topic.naming.strategy": f"io.debezium.schema.{name}TopicNamingStrategy", **given}


SHARDS_SETUP = (
    "CREATE TABLE shard_1 (id integer PRIMARY KEY, a text)",
    "CREATE TABLE shard_2 (id integer PRIMARY KEY, a text)",
    "CREATE TABLE nokey_1 (a text)",
    "CREATE TABLE other (id integer PRIMARY KEY)",
    "INSERT INTO shard_1 VALUES (1, 'a')",
    "INSERT INTO shard_2 VALUES (1, 'b')",
)
SHARDS_STATEMENTS = (
    "INSERT INTO shard_1 VALUES (2, 'a')",
    "UPDATE shard_2 SET id = 3",
    "DELETE FROM shard_2",
    "INSERT INTO nokey_1 VALUES ('a')",
    "INSERT INTO other VALUES (1)",
)

TABLES_SETUP = (
    "CREATE SCHEMA sales",
    'CREATE SCHEMA "Sales_old"',
    *(
        f"CREATE TABLE {table} (id integer PRIMARY KEY)"
        for table in ("orders", "sales.orders", 'sales."Orders"', "sales.orders_old", '"Sales_old".orders')
    ),
    "INSERT INTO sales.orders VALUES (1)",
    'INSERT INTO "Sales_old".orders VALUES (1)',
    "INSERT INTO orders VALUES (1)",
)
TABLES_STATEMENTS = tuple(
    f"INSERT INTO {table} VALUES (2)"
    for table in ("orders", "sales.orders", 'sales."Orders"', "sales.orders_old", '"Sales_old".orders')
)

PARTITIONS_SETUP = (
    "CREATE TABLE parts (id integer, region text, a text, PRIMARY KEY (id, region)) PARTITION BY LIST (region)",
    "CREATE TABLE parts_eu PARTITION OF parts FOR VALUES IN ('eu')",
    "CREATE TABLE parts_us (a text, region text NOT NULL, id integer NOT NULL, PRIMARY KEY (id, region))",
    "ALTER TABLE parts ATTACH PARTITION parts_us FOR VALUES IN ('us')",
    "CREATE TABLE plain (id integer PRIMARY KEY)",
    "INSERT INTO parts VALUES (1, 'eu', 'a')",
    "INSERT INTO parts_us VALUES ('z', 'us', 9)",
)
PARTITIONS_STATEMENTS = (
    "INSERT INTO parts VALUES (2, 'eu', 'b')",
    "INSERT INTO parts_us VALUES ('c', 'us', 3)",
    "UPDATE parts SET a = 'd' WHERE id = 2",
    "UPDATE parts SET region = 'us' WHERE id = 2",
    "DELETE FROM parts WHERE id = 3",
    "INSERT INTO plain VALUES (1)",
)

CASES = (
    Case("names_avro", ODD_SETUP, ODD_STATEMENTS, adjusted("avro"), schemas=True),
    Case("names_avro_unicode", ODD_SETUP, ODD_STATEMENTS, adjusted("avro_unicode"), schemas=True),
    Case("names_fields_avro", ODD_SETUP, ODD_STATEMENTS, {"field.name.adjustment.mode": "avro"}),
    Case("names_plain", ODD_SETUP, ODD_STATEMENTS, schemas=True),
    Case("topics_default", ODD_SETUP, ODD_STATEMENTS, strategy("Default"), schemas=True),
    Case("topics_schema_unicode", ODD_SETUP, ODD_STATEMENTS, strategy("SchemaUnicode"), schemas=True),
    Case("topics_default_unicode", ODD_SETUP, ODD_STATEMENTS, strategy("DefaultUnicode")),
    Case("topics_delimiter", ODD_SETUP, ODD_STATEMENTS, {"topic.delimiter": "-", "topic.cache.size": "10"}),
    Case(
        "topics_regex",
        SHARDS_SETUP,
        SHARDS_STATEMENTS,
        strategy("SchemaRegex", topic_regex=r"(.*)\.public\.(shard|nokey)_\d", topic_replacement="$1.$2s"),
        schemas=True,
    ),
    Case(
        "topics_regex_key",
        SHARDS_SETUP,
        SHARDS_STATEMENTS,
        strategy(
            "DefaultRegex",
            topic_regex=r"(.*)_(\d)",
            topic_replacement="$1_all",
            topic_key_field_name="shard",
            topic_key_field_regex=r".*_(\d)",
            topic_key_field_replacement="number $1",
        ),
    ),
    Case(
        "topics_regex_plain_key",
        SHARDS_SETUP,
        SHARDS_STATEMENTS,
        strategy(
            "SchemaRegex",
            topic_regex=r"(?<head>.*)_\d",
            topic_replacement="${head}",
            topic_key_enforce_uniqueness="false",
        ),
    ),
    Case("tables_include", TABLES_SETUP, TABLES_STATEMENTS, {"table.include.list": r"SALES\.orders,public\.order"}),
    Case("tables_exclude", TABLES_SETUP, TABLES_STATEMENTS, {"table.exclude.list": r"sales.*\.orders,orders"}),
    Case("tables_builtin", TABLES_SETUP, TABLES_STATEMENTS, {"table.ignore.builtin": "false"}),
    Case("schemas_include", TABLES_SETUP, TABLES_STATEMENTS, {"schema.include.list": "SALES.*"}),
    Case("schemas_exclude", TABLES_SETUP, TABLES_STATEMENTS, {"schema.exclude.list": "sales,pub"}),
    Case(
        "partitions", PARTITIONS_SETUP, PARTITIONS_STATEMENTS, {"table.include.list": r"public\.(parts_.*|plain)"}, True
    ),
    Case(
        "partitions_root",
        PARTITIONS_SETUP,
        PARTITIONS_STATEMENTS,
        {"publish.via.partition.root": "true", "table.include.list": r"public\.(parts|plain)"},
        True,
    ),
)
