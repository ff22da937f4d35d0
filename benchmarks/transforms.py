"""Drain a backlog with chains of transforms, beside the same without any."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks import engine
from benchmarks.common import Result, Scale, database
from benchmarks.workload import create_backlog

DEBEZIUM, KAFKA = "io.debezium.transforms", "org.apache.kafka.connect.transforms"
PLAIN = "without"
CHAINS: Mapping[str, Mapping[str, str]] = {
    PLAIN: {},
    "RegexRouter": {
        "transforms": "route",
        "transforms.route.type": f"{KAFKA}.RegexRouter",
        "transforms.route.regex": r"bench\.public\.(.*)",
        "transforms.route.replacement": "shop.$1",
    },
    "ExtractNewRecordState": {
        "transforms": "unwrap",
        "transforms.unwrap.type": f"{DEBEZIUM}.ExtractNewRecordState",
        "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
        "transforms.unwrap.add.fields": "op,source.lsn",
    },
    "ExtractNewRecordState, InsertField": {
        "transforms": "unwrap,insert",
        "transforms.unwrap.type": f"{DEBEZIUM}.ExtractNewRecordState",
        "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
        "transforms.insert.type": f"{KAFKA}.InsertField$Value",
        "transforms.insert.static.field": "origin",
        "transforms.insert.static.value": "bench",
    },
    "Filter": {
        "transforms": "some",
        "transforms.some.type": f"{DEBEZIUM}.Filter",
        "transforms.some.language": "sql",
        "transforms.some.condition": "value.op IN ('c', 'u', 'd') AND value.source.lsn > 0",
        "transforms.some.null.handling.mode": "keep",
    },
    "CloudEvents": {"value.converter": "io.debezium.converters.CloudEventsConverter"},
}
"""Each leaves as many events as there are, so that what is delivered is the same."""


def run(scale: Scale, postgres: int) -> Result:
    """Drain copies of one slot with each chain, in a session that is warm."""
    result = Result("transforms", scale.name, f"PostgreSQL {postgres}")
    with database(postgres) as (server, connection):
        backlog = create_backlog(connection, scale.drain_transactions)
        result.notes.append(f"{backlog.changes:,} row changes, {backlog.events:,} events with tombstones")
        for name, options in CHAINS.items():
            with tempfile.TemporaryDirectory() as scratch:
                leg = engine.drain(server, connection, backlog, Path(scratch), options=dict(options), warm_up=True)
            result.legs.append(replace(leg, name=name))
    result.add_ratio("changes/s", f"x {PLAIN}", PLAIN)
    result.add_ratio("CPU s", f"CPU x {PLAIN}", PLAIN)
    return result
