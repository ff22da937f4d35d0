"""Cases of transforms that rename topics, of records of all kinds."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.transforms import EVERY_OPERATION, EXTRACT, METADATA, STATEMENTS, TABLES

REGEX = "org.apache.kafka.connect.transforms.RegexRouter"
LOGICAL = "io.debezium.transforms.ByLogicalTableRouter"
TOPICS = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"
BEATS = {"heartbeat.interval.ms": "1"}
ALTERED = ("ALTER TABLE plain ADD COLUMN more text", "INSERT INTO plain VALUES (6, 'f', 7, NULL, 'more')")


def chained(**transforms: dict[str, str]) -> dict[str, str]:
    """Return the options of transforms by their names; their types and options without what they begin with."""
    options = {f"transforms.{name}.{key}": value for name, own in transforms.items() for key, value in own.items()}
    return {"transforms": ",".join(transforms), **options}


def routed(name: str, options: dict[str, str], schemas: bool = False, more: tuple[str, ...] = ()) -> Case:
    """Return a case with rows, keyless ones among them, messages, transactions and heartbeats."""
    every = {**EVERY_OPERATION, **METADATA, **BEATS, **options}
    return Case(f"route_{name}", TABLES, (*STATEMENTS, *more), every, schemas)


HEARTBEATS = {"type": REGEX, "regex": r"__debezium-heartbeat\.(.*)", "replacement": "beats.$1"}
NOTIFIED = {"notification.enabled.channels": "sink", "notification.sink.topic.name": "golden.notices"}
CASES = (
    Case(
        "route_notifications_schemas",
        TABLES[:1],
        (),
        NOTIFIED | chained(every={"type": LOGICAL, "topic.regex": r"golden\.(.*)", "topic.replacement": "all.$1"}),
        schemas=True,
    ),
    routed(
        "regex",
        chained(
            tables={"type": REGEX, "regex": r"golden\.public\.(?<name>\w+)", "replacement": r"shop-${name}\$"},
            beats=HEARTBEATS,
        ),
        more=ALTERED,
    ),
    routed(
        "regex_schemas",
        chained(every={"type": REGEX, "regex": r"golden\.(.*)", "replacement": "all.$1"}, beats=HEARTBEATS),
        schemas=True,
    ),
    routed(
        "logical",
        chained(
            tables={
                "type": LOGICAL,
                "topic.regex": r"golden\.public\.(plain|whole)",
                "topic.replacement": "golden.both",
            }
        ),
        more=ALTERED,
    ),
    routed(
        "logical_every_schemas",
        chained(
            every={
                "type": LOGICAL,
                "topic.regex": r"golden\.(.*)",
                "topic.replacement": "all.$1",
                "key.field.name": "from",
                "key.field.regex": r"golden\.public\.(.*)",
                "key.field.replacement": "<$1>",
            },
            beats={
                "type": LOGICAL,
                "topic.regex": r"__debezium-heartbeat\.(.*)",
                "topic.replacement": "beats.$1",
                "logical.table.cache.size": "2",
            },
        ),
        schemas=True,
        more=ALTERED,
    ),
    routed(
        "logical_same_key_schemas",
        chained(
            tables={
                "type": LOGICAL,
                "topic.regex": r"golden\.public\.(.).*",
                "topic.replacement": "golden.pub-lic.$1",
                "key.enforce.uniqueness": "false",
                "schema.name.adjustment.mode": "avro",
            }
        ),
        schemas=True,
    ),
    routed(
        "unwrapped_schemas",
        {
            **chained(
                unwrap={
                    "type": EXTRACT,
                    "delete.tombstone.handling.mode": "rewrite-with-tombstone",
                    "route.by.field": "topic",
                    "predicate": "tables",
                },
                tables={
                    "type": LOGICAL,
                    "topic.regex": r"golden\.public\.(.*)",
                    "topic.replacement": "golden.$1",
                    "predicate": "tables",
                },
                others={
                    "type": REGEX,
                    "regex": r"([^.]*)",
                    "replacement": "routed.$1",
                    "predicate": "tables",
                    "negate": "true",
                },
                beats=HEARTBEATS,
            ),
            "predicates": "tables",
            "predicates.tables.type": TOPICS,
            "predicates.tables.pattern": r"golden\.public\.(plain|whole)",
        },
        schemas=True,
    ),
)
