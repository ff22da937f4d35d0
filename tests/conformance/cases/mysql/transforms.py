"""Cases of transforms of records, with the source blocks of MySQL and MariaDB."""

from __future__ import annotations

from itertools import chain

from tests.conformance.cases.case import Case
from tests.conformance.cases.changed import BOTH
from tests.conformance.cases.cloud_events import CLOUD_EVENTS, WITHOUT_EXTENSIONS, WITHOUT_SCHEMAS
from tests.conformance.cases.mysql.envelope import METADATA, OPERATIONS, TABLES
from tests.conformance.cases.mysql.flavors import both
from tests.conformance.cases.routing import LOGICAL, REGEX, chained
from tests.conformance.cases.transforms import EXTRACT, JSON, extract_options

FIELDS = "op,table,source.db:Database,connector,source.row,snapshot,query,nothing"
ALTERED = (*OPERATIONS[:5], "ALTER TABLE `rows` ADD COLUMN more int", "UPDATE `rows` SET more = 1, id = id + 100")
OTHERS = {"include.schema.changes": "true", **METADATA}
BY_TABLE = {"type": LOGICAL, "topic.regex": "golden(.*)", "topic.replacement": "all$1"}
BY_REGEX = {"type": REGEX, "regex": "golden(.*)", "replacement": "all$1"}
DROPPED = {"type": EXTRACT, "drop.fields.header.name": "unchanged", "drop.fields.keep.schema.compatible": "false"}

CASES: tuple[Case, ...] = tuple(
    chain(
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
