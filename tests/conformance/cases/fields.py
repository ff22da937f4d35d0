"""Cases of Kafka Connect's transforms of fields, on rows and on envelopes."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.routing import REGEX, TOPICS, chained
from tests.conformance.cases.transforms import EVERY_OPERATION, EXTRACT

PACKAGE = "org.apache.kafka.connect.transforms"
SETUP = (
    "CREATE TABLE typed (id bigint PRIMARY KEY, s smallint, i integer DEFAULT 5, r real, d double precision, "
    "b boolean, t text DEFAULT 'x', n numeric(20,3), n0 numeric(10), small numeric(12,9), y bytea, a integer[], "
    '"q""é😀" text, nn text NOT NULL DEFAULT \'must\', m timestamp, u uuid)',
    "ALTER TABLE typed REPLICA IDENTITY FULL",
    "CREATE TABLE keys (a integer, b text, c integer DEFAULT 3, PRIMARY KEY (a, b))",
    "CREATE TABLE nokey (v text)",
    "INSERT INTO typed VALUES (1, 1, 1, 1, 1, true, 'snapshot', 1, 1, 1, '\\x01', '{1}', 'q', 'n', 'epoch', "
    "'00000000-0000-0000-0000-000000000001')",
)
STATEMENTS = (
    "INSERT INTO typed (id) VALUES (2)",
    "INSERT INTO typed VALUES (3, -300, 70000, 1e10, -2.75, false, '12', -12345678901234567.891, 0, 0.000000001, "
    "'\\x00ff', '{}', NULL, '-7', '2024-02-29 13:14:15.123456', NULL), "
    "(9223372036854775807, 32767, -2147483648, 'NaN', 'Infinity', NULL, 'TRUE', 0.5, 9999999999, -123.456789012, '', "
    "NULL, 'é\"\\😀', '2147483648', '1969-12-31 23:59:59', NULL), "
    "(-5, 0, 0, -0.0, 1e300, true, ' true', 0, -5, 0, NULL, '{NULL}', '', '+1', NULL, NULL)",
    "UPDATE typed SET t = NULL, i = NULL WHERE id = 3",
    "INSERT INTO keys VALUES (1, 'k', NULL)",
    "UPDATE keys SET c = 4",
    "UPDATE keys SET b = 'moved'",
    "DELETE FROM keys",
    "DELETE FROM typed WHERE id = 3",
    "INSERT INTO nokey VALUES ('n')",
)
NO_DEFAULTS = {"value.converter.replace.null.with.default": "false"}
UNWRAP = {"type": EXTRACT, "delete.tombstone.handling.mode": "rewrite-with-tombstone", "predicate": "tables"}
TABLES = {
    "predicates": "tables,typed,null",
    "predicates.tables.type": TOPICS,
    "predicates.tables.pattern": r"golden\.public\..*",
    "predicates.typed.type": TOPICS,
    "predicates.typed.pattern": r"golden\.public\.typed",
    "predicates.null.type": f"{PACKAGE}.predicates.RecordIsTombstone",
}


def fields(name: str, transforms: dict[str, str], schemas: bool = False, others: dict[str, str] | None = None) -> Case:
    """Return a case with many types; predicates ``tables``, ``typed`` and ``null`` may limit its transforms."""
    every = {**EVERY_OPERATION, **TABLES, **transforms, **(others or {})}
    return Case(f"fields_{name}", SETUP, STATEMENTS, every, schemas)


def of(kind: str, **options: str) -> dict[str, str]:
    """Return a transform; ``_`` in the names of its options is a dot."""
    return {"type": f"{PACKAGE}.{kind}", **{key.replace("_", "."): value for key, value in options.items()}}


UNPREDICATED = {key: value for key, value in UNWRAP.items() if key != "predicate"}
CASES = (
    fields(
        "inserted_schemas",
        chained(
            envelope=of("InsertField$Value", topic_field="topic!", partition_field="part", timestamp_field="time?"),
            unwrap=UNPREDICATED,
            row=of("InsertField$Value", static_field="by!", static_value='a "b" 😀', topic_field="where"),
            key=of("InsertField$Key", static_field="shard", static_value="1", topic_field="of!"),
        ),
        schemas=True,
    ),
    fields(
        "inserted_nulls",
        chained(
            unwrap=UNPREDICATED,
            row=of("InsertField$Value", static_field="by", static_value="a", replace_null_with_default="false"),
            topic={"type": REGEX, "regex": r"golden\.public\.(.*)", "replacement": "$1"},
        ),
        others=NO_DEFAULTS,
    ),
    fields(
        "replaced_schemas",
        chained(
            unwrap=UNPREDICATED,
            row=of("ReplaceField$Value", exclude='s,y,q"é😀', renames="id:key,i:number"),
            key={**of("ReplaceField$Key", include="b,id", renames="b:name"), "predicate": "tables"},
        ),
        schemas=True,
        others=NO_DEFAULTS,
    ),
    fields(
        "replaced_envelopes",
        chained(
            envelope={
                **of("ReplaceField$Value", exclude="source,ts_us,ts_ns,transaction", renames="op:operation"),
                "predicate": "tables",
            }
        ),
    ),
    fields(
        "masked_schemas",
        chained(
            unwrap=UNPREDICATED,
            rows={**of("MaskField$Value", fields="s,i,r,d,b,t,n0,a,m,u,nn"), "predicate": "null", "negate": "true"},
            key={**of("MaskField$Key", fields="id"), "predicate": "typed"},
        ),
        schemas=True,
    ),
    fields(
        "masked_by",
        chained(
            unwrap=UNPREDICATED,
            numbers={
                **of("MaskField$Value", fields="s,i,r,d,n0,m", replacement="-70000", replace_null_with_default="false"),
                "predicate": "null",
                "negate": "true",
            },
            texts={
                **of("MaskField$Value", fields='t,u,q"é😀', replacement='*"é'),
                "predicate": "null",
                "negate": "true",
            },
            key={**of("MaskField$Key", fields="id", replacement="1e2"), "predicate": "typed"},
        ),
        others=NO_DEFAULTS,
    ),
    fields(
        "keyed_schemas",
        chained(
            unwrap={**UNWRAP, "delete.tombstone.handling.mode": "rewrite"},
            keys={**of("ValueToKey", fields="t,id"), "predicate": "typed"},
        ),
        schemas=True,
        others=NO_DEFAULTS,
    ),
    fields(
        "extracted_schemas",
        chained(
            unwrap=UNPREDICATED,
            key={**of("ExtractField$Key", field="id"), "predicate": "typed"},
            cast={**of("Cast$Key", spec="string"), "predicate": "typed"},
        ),
        schemas=True,
    ),
    fields(
        "extracted_envelopes_schemas",
        chained(
            after={**of("ExtractField$Value", field="after"), "predicate": "tables"},
            row={**of("ExtractField$Value", field="t"), "predicate": "typed"},
            key={**of("ExtractField$Key", field="id", field_syntax_version="V2"), "predicate": "typed"},
            hoist={**of("HoistField$Key", field="hoisted"), "predicate": "typed"},
        ),
        schemas=True,
        others=NO_DEFAULTS,
    ),
    fields(
        "extracted_paths",
        chained(
            value={
                **of("ExtractField$Value", field="source.`table`", field_syntax_version="V2"),
                "predicate": "tables",
            },
            hoist={**of("HoistField$Value", field="table"), "predicate": "typed"},
        ),
        others={"tombstones.on.delete": "false"},
    ),
    fields(
        "cast_schemas",
        chained(
            unwrap=UNPREDICATED,
            rows=of(
                "Cast$Value",
                spec="id:int32,s:int8,i:string,r:float64,d:float32,b:string,t:boolean,n:float64,n0:int64,small:string,"
                "y:string,m:float64,u:string",
            ),
            key={**of("Cast$Key", spec="id:string, a: int64"), "predicate": "tables"},
        ),
        schemas=True,
    ),
    fields(
        "cast",
        chained(
            unwrap=UNPREDICATED,
            rows={
                **of(
                    "Cast$Value",
                    spec="id:string,s:boolean,i:int16,r:int32,d:int64,b:int8,n:string,n0:boolean,small:float32,m:string",
                    replace_null_with_default="false",
                ),
                "predicate": "typed",
            },
            again={
                **of("Cast$Value", spec="id:float64,n:float64,d:int8,i:float32,b:boolean,small:int32"),
                "predicate": "typed",
            },
        ),
        others=NO_DEFAULTS,
    ),
    fields(
        "cast_to_other_types",
        chained(
            unwrap=UNPREDICATED,
            rows={
                **of("Cast$Value", spec="id:float32,s:float64,r:string,d:string,b:float32,n:int16,n0:string"),
                "predicate": "typed",
            },
            again={**of("Cast$Value", spec="s:string,b:int64,n:boolean"), "predicate": "typed"},
        ),
        others={
            "table.include.list": "public.keys,public.nokey,public.typed",
            "column.exclude.list": "public.typed.nn",
        },
    ),
    fields(
        "cast_dates",
        chained(unwrap=UNPREDICATED, rows=of("Cast$Value", spec="m:string,u:string,small:int64")),
        others={"time.precision.mode": "connect"},
    ),
)
