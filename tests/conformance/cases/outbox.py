"""Cases of Debezium's router of an outbox table's events."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.routing import BEATS, TOPICS, chained
from tests.conformance.cases.transforms import EVERY_OPERATION, JSON, METADATA

ROUTER = "io.debezium.transforms.outbox.EventRouter"
TABLES = (
    "CREATE TABLE outbox (id uuid PRIMARY KEY, aggregatetype text NOT NULL, aggregateid text NOT NULL, "
    "type text DEFAULT 'none', payload jsonb, version integer, at timestamp, part integer, tenant text DEFAULT 't')",
    "CREATE TABLE other (id integer PRIMARY KEY, v text)",
    "INSERT INTO outbox VALUES "
    "('00000000-0000-0000-0000-000000000001', 'order', '1', 'created', '{\"snapshot\": true}')",
)
ODD = (
    'CREATE TABLE odd ("Event Id" bigint PRIMARY KEY, "kind é" varchar(40), k bytea, p text DEFAULT \'def\', '
    'version integer, part integer, "q""1" numeric(6,2))',
)
EVENTS = (
    "INSERT INTO outbox VALUES ('00000000-0000-0000-0000-000000000002', 'order', '1', 'changed', "
    '\'{"a": 1, "b": "q\\"uo\\\\te é 😀", "c": null, "d": [1, 2], "e": {"f": 1.50}}\', 1, '
    "'2026-01-02 03:04:05', 0, 'x')",
    "INSERT INTO outbox VALUES ('00000000-0000-0000-0000-000000000003', 'customer', 'c-1', NULL, NULL, 1, NULL, NULL, "
    "'y'), ('00000000-0000-0000-0000-000000000004', 'order', '2', 'text', '\"\"', 1, NULL, 3, 'y')",
    "DELETE FROM outbox WHERE aggregateid = '1'",
    "INSERT INTO other VALUES (1, 'x')",
)
JSON_TEXTS = (
    '{"s":"a\\u00e9\\/\\n","i":1,"l":5000000000,"d":-1.5e10,"z":-0,"t":true,"n":null,"o":{},"e":[]}',
    '{"s":"b","i":2147483648,"l":-9223372036854775808,"d":1E+2,"z":7,"t":false,"n":1,"o":{"x":[[1,2],[3]]},"e":[null,"y"]}',
    ' {"blank":1}',
    '{"lines":[{"a":1,"b":"x"},{"a":2,"b":"y"}],"same":[{"c":{"d":1}}]}',
    '{"lines":[{"a":1,"b":"z"},{"a":3,"b":"w"}],"same":[{"c":{"d":7}}]}',
    '{"mixed":[1,"a"]}',
    '{"numbers":[1,5000000000]}',
    '{"broken":',
    '{"twice":1,"other":2,"twice":"b"} behind',
    '{"a b":{"c.d":[true],"é":"é😀"}, "" : 1e-7}',
    "text",
    "  ",
    "",
)


def routed(
    name: str,
    options: dict[str, str] | None = None,
    schemas: bool = False,
    others: dict[str, str] | None = None,
    statements: tuple[str, ...] = EVENTS,
    tables: tuple[str, ...] = TABLES,
) -> Case:
    """Return a case of the router.

    Args:
        name: behind ``outbox_``.
        options: the transform's.
        schemas: whether records have schemas.
        others: further options.
        statements: what happens.
        tables: what there is before.
    """
    router = {"type": ROUTER, "predicate": "outbox", **(options or {})}
    only = {"predicates": "outbox", "predicates.outbox.type": TOPICS, "predicates.outbox.pattern": r".*\.(outbox|odd)"}
    return Case(
        f"outbox_{name}", tables, statements, {**JSON, **only, **chained(outbox=router), **(others or {})}, schemas
    )


PLACED = "type:header:eventType,tenant:header,at:header,part:envelope:Part,tenant:envelope,version:header:v"
VERSIONED = {
    "table.fields.additional.placement": "tenant:envelope",
    "table.field.event.schema.version": "version",
    "route.topic.replacement": "events",
    "route.topic.regex": "(.*)",
    "route.by.field": "tenant",
}
EXPANDED = tuple(
    f"INSERT INTO odd VALUES ({number}, 'json', NULL, '{text}')" for number, text in enumerate(JSON_TEXTS, 1)
)
NAMED = {
    "table.field.event.id": "Event Id",
    "table.field.event.key": "k",
    "table.field.event.payload": "p",
    "route.by.field": "kind é",
}
ODD_EVENTS = (
    "INSERT INTO odd VALUES (1, 'a\"b', '\\x00ff', 'text \" \\ 😀', 1, NULL, 1.50), (2, '', NULL, NULL, 2, 7, NULL), "
    "(3, 'c', '\\x', ' ', NULL, NULL, -1)",
    "UPDATE odd SET p = 'changed'",
    "INSERT INTO odd VALUES (4, 'new', '\\x01', 'new', 1, 1, 0)",
)
CASES = (
    routed("default", others=METADATA | BEATS | EVERY_OPERATION),
    routed("default_schemas", schemas=True),
    routed("placed", {"table.fields.additional.placement": PLACED}),
    routed("placed_schemas", {"table.fields.additional.placement": PLACED, "route.by.field": "tenant"}, True),
    routed(
        "partitions",
        {"table.fields.additional.placement": "part:partition,type:header", "table.op.invalid.behavior": "error"},
    ),
    routed("versions_schemas", VERSIONED, True, tables=TABLES[:2], statements=EVENTS[:1]),
    routed("expanded", {"table.expand.json.payload": "true"}),
    routed("expanded_schemas", {"table.expand.json.payload": "true"}, True),
    routed(
        "expanded_nulls_schemas",
        {"table.expand.json.payload": "true", "table.json.payload.null.behavior": "optional_bytes"},
        True,
    ),
    routed(
        "expanded_placed_schemas",
        {"table.expand.json.payload": "true", "table.fields.additional.placement": "version:envelope"},
        True,
        statements=EVENTS[:1],
    ),
    routed(
        "texts_schemas",
        {**NAMED, "table.expand.json.payload": "true"},
        True,
        tables=ODD,
        statements=EXPANDED,
    ),
    routed("tombstones_schemas", {"route.tombstone.on.empty.payload": "true"}, True),
    routed(
        "tombstones_texts", {**NAMED, "route.tombstone.on.empty.payload": "true"}, tables=ODD, statements=ODD_EVENTS
    ),
    routed(
        "odd_schemas",
        {
            **NAMED,
            "table.fields.additional.placement": 'missing:header,kind é:header:Kind,q"1:envelope,part:envelope:p"é',
            "table.field.additional.missing": "ignore",
            "route.topic.regex": "(.*)",
            "route.topic.replacement": "all",
            "table.op.invalid.behavior": "error",
        },
        True,
        tables=ODD,
        statements=(*ODD_EVENTS[:1], *ODD_EVENTS[2:]),
    ),
)
