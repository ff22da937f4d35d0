"""Cases of transforms of records, with the source blocks of MySQL and MariaDB."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from tests.conformance.cases.case import Case
from tests.conformance.cases.changed import BOTH
from tests.conformance.cases.cloud_events import CLOUD_EVENTS, WITHOUT_EXTENSIONS, WITHOUT_SCHEMAS
from tests.conformance.cases.described import DESCRIBED, VECTOR
from tests.conformance.cases.mysql import specials
from tests.conformance.cases.mysql.envelope import METADATA, OPERATIONS, TABLES
from tests.conformance.cases.mysql.flavors import both
from tests.conformance.cases.outbox import ROUTER
from tests.conformance.cases.partitions import ROUTING
from tests.conformance.cases.routing import LOGICAL, REGEX, TOPICS, chained
from tests.conformance.cases.scripting import FILTER
from tests.conformance.cases.transforms import EXTRACT, JSON, extract_options
from tests.conformance.cases.zones import CONVERTER

FIELDS = "op,table,source.db:Database,connector,source.row,snapshot,query,nothing"
ALTERED = (*OPERATIONS[:5], "ALTER TABLE `rows` ADD COLUMN more int", "UPDATE `rows` SET more = 1, id = id + 100")
OTHERS = {"include.schema.changes": "true", **METADATA}
BY_TABLE = {"type": LOGICAL, "topic.regex": "golden(.*)", "topic.replacement": "all$1"}
BY_REGEX = {"type": REGEX, "regex": "golden(.*)", "replacement": "all$1"}
DROPPED = {"type": EXTRACT, "drop.fields.header.name": "unchanged", "drop.fields.keep.schema.compatible": "false"}
OUTBOX = (
    "CREATE TABLE outbox (id binary(16) PRIMARY KEY, aggregatetype varchar(20) NOT NULL, aggregateid bigint, "
    "type enum('created','gone') DEFAULT 'created', payload json, part int, at datetime(3))",
    "INSERT INTO outbox VALUES ('0123456789abcdef', 'order', 1, 'gone', '{\"snapshot\": [true, null]}', 1, NULL)",
)
ROUTED = (
    'INSERT INTO outbox VALUES (\'1123456789abcdef\', \'order\', 1, NULL, \'{"a": {"b": 1.0}, "c": "é"}\', 2, NULL),'
    "('2123456789abcdef', 'é`', NULL, 'created', NULL, NULL, '2026-01-02 03:04:05.678')",
    "UPDATE outbox SET part = 0",
    "DELETE FROM outbox",
)
EXPANDING = {
    "type": ROUTER,
    "predicate": "outbox",
    "table.expand.json.payload": "true",
    "table.fields.additional.placement": "type:header,at:header,part:header",
    "route.tombstone.on.empty.payload": "true",
}
SCRIPT = {
    "type": FILTER,
    "topic.regex": r"golden\.script\..*",
    "null.handling.mode": "drop",
    "language": "sql",
    "condition": "value.op = 'u' OR value.source.`table` LIKE 'r%' AND value.after.id < 3",
}
GROOVY = {
    "transforms.script.language": "jsr223.groovy",
    "transforms.script.condition": "value.op == 'u' || value.source.table.startsWith('r') && value.after != null "
    "&& value.after.id < 3",
}
PLACED = {
    "type": ROUTING,
    "partition.payload.fields": "change.id,change.part,source.db",
    "partition.topic.num": "999983",
    "partition.hash.function": "murmur",
}
MOMENTS = (
    "CREATE TABLE moments (id int PRIMARY KEY, d datetime(3), d6 datetime(6) DEFAULT '2026-07-01 12:00:00', "
    "t timestamp(3) NULL, t6 timestamp(6) NULL DEFAULT '2026-07-01 12:00:00', c time(6), day date, y year)",
    "INSERT INTO moments VALUES (1, '2026-03-08 02:30:00.678', NULL, '2026-03-08 02:30:00.678', NULL, '-01:00:00', "
    "'2026-03-08', 2026)",
)
MOVED = (
    "INSERT INTO moments (id, d, t) VALUES (2, '1000-01-01', '2026-11-01 05:59:59'), (3, '2026-11-01 01:30:00', NULL), "
    "(4, '9999-12-31 23:59:59.999', '2037-12-31 23:00:00')",
    "UPDATE moments SET d6 = '2026-03-08 02:00:00.000001', t6 = '2026-03-08 07:00:00.1' WHERE id > 2",
    "DELETE FROM moments WHERE id = 1",
)
ZONE = {"type": CONVERTER, "converted.timezone": "America/New_York", "exclude.list": "source:moments:day,moments:y"}
ONLY_OUTBOX = {"predicates": "outbox", "predicates.outbox.type": TOPICS, "predicates.outbox.pattern": ".*outbox"}

CASES: tuple[Case, ...] = tuple(
    chain(
        both(
            "described", TABLES, OPERATIONS, {"column.propagate.source.type": ".*", **chained(add={"type": DESCRIBED})}
        ),
        (
            replace(case, name=f"{case.name}_json", options=case.options | chained(json={"type": VECTOR}))
            for case in specials.CASES
            if case.name == "vectors"
        ),
        (replace(case, reference=GROOVY) for case in both("script", TABLES, ALTERED, OTHERS | chained(script=SCRIPT))),
        both("partition", OUTBOX, ROUTED, chained(place=PLACED)),
        both("zone", MOMENTS, MOVED, chained(zone=ZONE), schemas=True),
        both("zone_connect", MOMENTS, MOVED, {"time.precision.mode": "connect", **chained(zone=ZONE)}),
        both("outbox", OUTBOX, ROUTED, {**OTHERS, **JSON, **ONLY_OUTBOX, **chained(outbox=EXPANDING)}, schemas=True),
        both("extract_default", TABLES, OPERATIONS, extract_options({})),
        both(
            "extract_rewrite",
            TABLES[:5],
            OPERATIONS,
            extract_options({"add.fields": FIELDS, "delete.tombstone.handling.mode": "rewrite"}),
            schemas=True,
        ),
        both("cloud_events", TABLES, OPERATIONS, {"include.schema.changes": "true"} | CLOUD_EVENTS),
        both("cloud_events_bare", TABLES, OPERATIONS, CLOUD_EVENTS | WITHOUT_SCHEMAS | WITHOUT_EXTENSIONS),
        both("changed_dropped", TABLES[:5], OPERATIONS, JSON | chained(changed=BOTH, unwrap=DROPPED), schemas=True),
        both("route_logical", TABLES, ALTERED, OTHERS | chained(every=BY_TABLE), schemas=True),
        both("route_regex", TABLES, ALTERED, OTHERS | chained(every=BY_REGEX)),
    )
)
