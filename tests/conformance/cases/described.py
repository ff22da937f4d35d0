"""Cases of transforms that add the source's description of columns, and that write vectors as JSON."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.routing import BEATS, TOPICS, chained
from tests.conformance.cases.special import VECTORS, special_case
from tests.conformance.cases.transforms import EVERY_OPERATION, EXTRACT, METADATA

DESCRIBED = "io.debezium.transforms.ExtractSchemaToNewRecord"
VECTOR = "io.debezium.transforms.VectorToJsonConverter"
PROPAGATED = {"column.propagate.source.type": ".*", "include.schema.comments": "true"}
TABLES = (
    'CREATE TABLE described (id integer PRIMARY KEY, v varchar(20) DEFAULT \'x\', n numeric(10,2), "q""é😀" text, '
    "d double precision, ts timestamp(3), a integer[], b bit(5))",
    'COMMENT ON COLUMN described."q""é😀" IS \'a "comment" é\'',
    "ALTER TABLE described REPLICA IDENTITY FULL",
    "CREATE TABLE second (id integer PRIMARY KEY)",
    "INSERT INTO described (id) VALUES (1)",
)
STATEMENTS = (
    "INSERT INTO described VALUES (2, NULL, 1.5, 'q', 1, '2026-01-01', '{1}', '10101')",
    "INSERT INTO second VALUES (1)",
    "UPDATE described SET v = 'y', id = 3 WHERE id = 2",
    "DELETE FROM described WHERE id = 1",
    "ALTER TABLE described ADD COLUMN more char(3)",
    "INSERT INTO described (id, more) VALUES (4, 'abc')",
    "TRUNCATE described",
)


def described(name: str, transforms: dict[str, str], schemas: bool = False) -> Case:
    """Return a case of tables with columns of many types."""
    options = {**EVERY_OPERATION, **METADATA, **PROPAGATED, **transforms}
    return Case(f"described_{name}", TABLES, STATEMENTS, options, schemas)


PREPARED = ("CREATE EXTENSION vector",)
CASES = (
    described("schemas", chained(add={"type": DESCRIBED, "schema.name.adjustment.mode": "avro"}), True),
    described("plain", {**BEATS, **chained(add={"type": DESCRIBED})}),
    described("unwrapped", chained(add={"type": DESCRIBED}, unwrap={"type": EXTRACT, "add.fields": "op"})),
    special_case("vectors_json", PREPARED, VECTORS, chained(json={"type": VECTOR}), strict=False),
    special_case(
        "vectors_json_unwrapped",
        PREPARED,
        VECTORS,
        {
            **BEATS,
            **METADATA,
            **chained(unwrap={"type": EXTRACT, "predicate": "tables"}, json={"type": VECTOR}),
            "predicates": "tables",
            "predicates.tables.type": TOPICS,
            "predicates.tables.pattern": r"golden\.public\..*",
        },
        strict=False,
    ),
)
