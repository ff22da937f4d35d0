"""The cases whose events are recorded from Debezium: SQL to prepare, SQL to stream, and options.

A case's setup runs before the connector starts, so that its rows come from the snapshot; its statements run
one by one, each in a transaction of its own, once the connector streams. Each module holds the cases of one theme.
"""

from __future__ import annotations

from tests.conformance.cases import (
    altered,
    arrays,
    changed,
    cloud_events,
    columns,
    defaults,
    described,
    fields,
    identity,
    masks,
    modes,
    mysql,
    naming,
    outbox,
    partitions,
    routing,
    scalars,
    schemas,
    scripting,
    special,
    stream,
    tables,
    transforms,
    workload,
    zones,
)
from tests.conformance.cases.case import DDL, Case

THEMES = (
    scalars,
    identity,
    schemas,
    columns,
    masks,
    naming,
    stream,
    defaults,
    arrays,
    special,
    modes,
    altered,
    tables,
    transforms,
    routing,
    changed,
    fields,
    cloud_events,
    outbox,
    zones,
    described,
    partitions,
    scripting,
    workload,
)

CASES: tuple[Case, ...] = tuple(case for theme in THEMES for case in theme.CASES)


def cases_of(connector: str) -> tuple[Case, ...]:
    """Return the cases of a connector."""
    return tuple(case for case in (*CASES, *mysql.CASES) if case.connector == connector)


__all__ = ["CASES", "DDL", "Case", "cases_of"]
