"""Cases of ``ExtractChangedRecordState``, and of what other transforms do with its headers."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.routing import TOPICS, chained
from tests.conformance.cases.transforms import EVERY_OPERATION, EXTRACT, JSON, MESSAGE, STATEMENTS, TABLES

CHANGED = "io.debezium.transforms.ExtractChangedRecordState"
WIDE = (
    'CREATE TABLE wide (id integer PRIMARY KEY, "q""é😀" text, b bytea, n numeric(10,2), v numeric, a integer[], '
    "d double precision, p point, x text DEFAULT 'x', nn text NOT NULL)",
    "ALTER TABLE wide REPLICA IDENTITY FULL",
    "INSERT INTO wide VALUES (1, 'snapshot', '\\x01', 1, 1, '{1}', 1, '(1,2)', 'a', 'b')",
)
UPDATES = (
    "INSERT INTO wide VALUES (2, 'a', '\\x00ff', 1.5, 1.50, '{1,NULL}', 'NaN', '(1,2)', NULL, 'n')",
    "INSERT INTO wide (id, nn) VALUES (3, '')",
    "UPDATE wide SET b = b, n = n, d = d",
    "UPDATE wide SET n = 2.5, v = 2.50, a = '{2}', d = 0",
    'UPDATE wide SET x = \'x\', "q""é😀" = NULL WHERE id < 3',
    "UPDATE wide SET b = '\\x', p = '(0,0)', d = '-0'",
    "UPDATE wide SET nn = 'other', id = 30 WHERE id = 3",
    "UPDATE wide SET x = NULL, nn = x WHERE x IS NOT NULL",
    "DELETE FROM wide",
)
MOVE = "io.debezium.transforms.HeaderToValue"
ONLY_WIDE = {
    "predicates": "wide",
    "predicates.wide.type": TOPICS,
    "predicates.wide.pattern": r"golden\.public\.wide",
}
BOTH = {"type": CHANGED, "header.changed.name": "changed", "header.unchanged.name": "unchanged"}
UNCHANGED = {"type": CHANGED, "header.unchanged.name": "unchanged"}


def changed(name: str, transforms: dict[str, str], schemas: bool = False, others: dict[str, str] | None = None) -> Case:
    """Return a case with updates of all kinds of columns."""
    every = {**EVERY_OPERATION, **JSON, **transforms, **(others or {})}
    statements = tuple(one for one in (*STATEMENTS, *UPDATES) if one != MESSAGE)
    return Case(f"changed_{name}", (*TABLES, *WIDE), statements, every, schemas)


CASES = (
    changed("headers", chained(changed=BOTH)),
    changed(
        "moved_to_values_schemas",
        chained(
            changed=BOTH,
            move={
                "type": MOVE,
                "headers": "changed,unchanged",
                "fields": "changed,source.same",
                "operation": "move",
                "predicate": "wide",
            },
            unwrap={"type": EXTRACT, "add.fields": "op,changed:changed", "predicate": "wide"},
        ),
        schemas=True,
        others=ONLY_WIDE,
    ),
    changed(
        "copied_to_values",
        chained(
            changed=BOTH,
            copy={"type": MOVE, "headers": "unchanged", "fields": "same", "operation": "copy"},
            again={"type": MOVE, "headers": "changed", "fields": "same", "operation": "copy", "predicate": "wide"},
        ),
        others=ONLY_WIDE,
    ),
    changed(
        "dropped_schemas",
        chained(
            changed=UNCHANGED,
            unwrap={"type": EXTRACT, "drop.fields.header.name": "unchanged", "add.fields": "op"},
        ),
        schemas=True,
    ),
    changed(
        "dropped_from_keys_schemas",
        chained(
            changed=UNCHANGED,
            unwrap={
                "type": EXTRACT,
                "drop.fields.header.name": "unchanged",
                "drop.fields.from.key": "true",
                "drop.fields.keep.schema.compatible": "false",
                "delete.tombstone.handling.mode": "rewrite",
            },
        ),
        schemas=True,
        others={"value.converter.replace.null.with.default": "false"},
    ),
)
