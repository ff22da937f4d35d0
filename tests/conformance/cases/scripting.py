"""Cases of transforms that evaluate expressions: Debezium's in Groovy, and the same in SQL."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.routing import BEATS, TOPICS, chained
from tests.conformance.cases.transforms import EVERY_OPERATION, EXTRACT, MESSAGE, METADATA, STATEMENTS, TABLES

FILTER = "io.debezium.transforms.Filter"
ROUTER = "io.debezium.transforms.ContentBasedRouter"
OPTION = {FILTER: "condition", ROUTER: "topic.expression"}
ROWS = r"golden\.public\..*"
EVENTS = tuple(one for one in STATEMENTS if one != MESSAGE)


def scripted(
    name: str,
    kind: str,
    sql: str,
    groovy: str,
    own: dict[str, str] | None = None,
    others: dict[str, str] | None = None,
    schemas: bool = False,
) -> Case:
    """Return a case of such a transform.

    Args:
        name: behind ``script_``.
        kind: its type.
        sql: the expression.
        groovy: the same for Debezium.
        own: the transform's other options; by default it is applied to the tables' topics.
        others: further options.
        schemas: whether records have schemas.
    """
    given = {"type": kind, "topic.regex": ROWS, **(own or {}), "language": "sql", OPTION[kind]: sql}
    options = {**EVERY_OPERATION, **METADATA, **BEATS, **chained(script=given), **(others or {})}
    reference = {"transforms.script.language": "jsr223.groovy", f"transforms.script.{OPTION[kind]}": groovy}
    return Case(f"script_{name}", TABLES, EVENTS, options, schemas, reference=reference)


CASES = (
    scripted(
        "filter",
        FILTER,
        "value.op = 'u' AND value.after.id > 2 OR value.op IN ('r', 'd')",
        "value.op == 'u' && value.after.id > 2 || value.op == 'r' || value.op == 'd'",
    ),
    scripted(
        "filter_drop",
        FILTER,
        "value.after.v IS NULL OR value.after.v <> 'b'",
        "value.after == null || value.after.v == null || value.after.v != 'b'",
        {"null.handling.mode": "drop", "topic.regex": r"golden\.public\.(plain|whole)"},
    ),
    scripted(
        "filter_evaluate",
        FILTER,
        "value IS NULL AND key.id >= 20",
        "value == null && key.id >= 20",
        {"null.handling.mode": "evaluate", "topic.regex": r"golden\.public\.(plain|whole)"},
    ),
    scripted(
        "filter_topics",
        FILTER,
        "topic LIKE '%whole' AND value.source.snapshot = 'false' AND value.source.txId IS NOT NULL",
        "topic.endsWith('whole') && value.source.snapshot == 'false' && value.source.txId != null",
        {"predicate": "keyless", "negate": "true"},
        {"predicates": "keyless", "predicates.keyless.type": TOPICS, "predicates.keyless.pattern": ".*nokey"},
        schemas=True,
    ),
    scripted(
        "route",
        ROUTER,
        "CASE WHEN value.op = 'u' THEN 'updates' WHEN value.after.id = 2 THEN topic || '.' || value.source.`table` END",
        "value.op == 'u' ? 'updates' : value.after?.id == 2 ? topic + '.' + value.source.table : null",
        {"topic.regex": r"golden\.public\.(plain|whole)"},
    ),
    scripted(
        "route_unwrapped",
        ROUTER,
        "IF(value.n < 2.0, 'few', IF(header.__op = 'c', 'made', NULL))",
        "value.n != null && value.n < 2.0 ? 'few' : header.__op.value == 'c' ? 'made' : null",
        {"topic.regex": r"golden\.public\.whole"},
        {
            "transforms": "unwrap,script",
            "transforms.unwrap.type": EXTRACT,
            "transforms.unwrap.add.headers": "op",
            "transforms.unwrap.delete.tombstone.handling.mode": "drop",
            "transforms.unwrap.predicate": "whole",
            "predicates": "whole",
            "predicates.whole.type": TOPICS,
            "predicates.whole.pattern": ".*whole",
            "header.converter": "org.apache.kafka.connect.json.JsonConverter",
        },
    ),
)
