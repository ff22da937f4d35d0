"""Cases of transforms of records, with the source blocks of MySQL and MariaDB."""

from __future__ import annotations

from itertools import chain

from tests.conformance.cases.case import Case
from tests.conformance.cases.changed import BOTH
from tests.conformance.cases.cloud_events import CLOUD_EVENTS, WITHOUT_EXTENSIONS, WITHOUT_SCHEMAS
from tests.conformance.cases.mysql.envelope import METADATA, OPERATIONS, TABLES
from tests.conformance.cases.mysql.flavors import both
from tests.conformance.cases.outbox import ROUTER
from tests.conformance.cases.routing import LOGICAL, REGEX, TOPICS, chained
from tests.conformance.cases.transforms import EXTRACT, JSON, extract_options

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
ONLY_OUTBOX = {"predicates": "outbox", "predicates.outbox.type": TOPICS, "predicates.outbox.pattern": ".*outbox"}

CASES: tuple[Case, ...] = tuple(
    chain(
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
