"""Partitions that are attached with rows, whose changes come under the name of their root."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from structlog.testing import CapturingLogger

from floodmark.connectors.postgres.server import attached
from tests.conftest import Source
from tests.support.inprocess import InProcess

ROOT = "CREATE TABLE p (id integer, part integer, PRIMARY KEY (id, part)) PARTITION BY LIST (part)"
LEAF = "CREATE TABLE p1 (id integer NOT NULL, part integer NOT NULL)"
FILL = "INSERT INTO p1 VALUES (1, 1), (2, 1)"
ATTACH = "ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1)"
WRITE = "INSERT INTO p VALUES (7, 1)"


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> CapturingLogger:
    logger = CapturingLogger()
    monkeypatch.setattr(attached, "log", logger)
    return logger


def told(reports: CapturingLogger) -> list[tuple[str, str]]:
    return [(call.kwargs["table"], call.kwargs["partition"]) for call in reports.calls]


def query_of(source: Source, **options: str) -> InProcess:
    given = {name.replace("_", "."): value for name, value in options.items()}
    via_root = {"publish.via.partition.root": "true", "table.include.list": r"public\.p"}
    return InProcess({**source.options, **via_root, **given})


def together(source: Source, *statements: str) -> None:
    with psycopg.connect(source.conninfo) as conn:
        for statement in statements:
            conn.execute(statement)


def apart(source: Source, *statements: str) -> None:
    source.execute(*statements)


MISSED: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "filled before": (apart, (LEAF, FILL, ATTACH, WRITE)),
    "filled by the same transaction": (together, (LEAF, FILL, ATTACH, WRITE)),
    "filled and attached by one transaction": (apart, (LEAF, f"BEGIN; {FILL}; {ATTACH}; COMMIT")),
    "frozen before": (apart, (LEAF, FILL, "VACUUM FREEZE p1", ATTACH)),
    "with partitions of its own": (
        apart,
        (
            f"{LEAF} PARTITION BY LIST (id)",
            "CREATE TABLE p1a PARTITION OF p1 FOR VALUES IN (1, 2)",
            FILL,
            ATTACH,
        ),
    ),
    "attached to a partition": (
        apart,
        (
            "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (1) PARTITION BY LIST (id)",
            LEAF,
            FILL,
            "ALTER TABLE p2 ATTACH PARTITION p1 FOR VALUES IN (1, 2)",
        ),
    ),
}
COMPLETE: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "made as one": (apart, ("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)", WRITE)),
    "made as one and filled by one transaction": (
        together,
        ("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)", WRITE),
    ),
    "empty before": (apart, (LEAF, ATTACH, WRITE)),
    "empty before, by one transaction": (together, (LEAF, ATTACH, WRITE)),
    "of a table that nobody captures": (
        apart,
        (
            "CREATE TABLE other (id integer, part integer) PARTITION BY LIST (part)",
            LEAF,
            FILL,
            ATTACH.replace("TABLE p ", "TABLE other "),
        ),
    ),
}


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("case", [*MISSED, *COMPLETE])
def test_rows_that_no_event_tells_of(source: Source, reports: CapturingLogger, case: str, stopped: bool) -> None:
    run, statements = {**MISSED, **COMPLETE}[case]
    source.execute(ROOT, "CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0)", "INSERT INTO p VALUES (0, 0)")
    query = query_of(source)
    query.drain()
    if stopped:
        query.stop()
    run(source, *statements)
    if stopped:
        query.restart()
    rows = query.drain()
    query.restart()
    query.drain()
    query.stop()
    assert told(reports) == ([("public.p", "public.p1")] * len(told(reports)) if case in MISSED else [])
    assert bool(told(reports)) == (case in MISSED)
    assert len(rows) == statements.count(WRITE)


def test_it_is_told_once(source: Source, reports: CapturingLogger) -> None:
    source.execute(ROOT)
    query = query_of(source)
    query.drain()
    source.execute(LEAF, FILL, ATTACH)
    for _ in range(3):
        query.drain()
    query.stop()
    assert told(reports) == [("public.p", "public.p1")]


def test_a_partition_that_the_account_cannot_read(
    source: Source, reports: CapturingLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.execute(ROOT, "DROP ROLE IF EXISTS narrow", "CREATE ROLE narrow LOGIN REPLICATION PASSWORD 'secret'")
    source.execute("CREATE PUBLICATION narrow FOR TABLE p WITH (publish_via_partition_root = true)")
    source.execute("GRANT SELECT ON p TO narrow", "GRANT USAGE ON SCHEMA public TO narrow")
    account = {"database_user": "narrow", "database_password": "secret"}
    query = query_of(source, **account, publication_name="narrow", publication_autocreate_mode="disabled")
    query.drain()
    source.execute(LEAF, FILL, ATTACH)
    query.drain()
    query.stop()
    assert told(reports) == [("public.p", "public.p1")]
    assert "the account can't read it" in reports.calls[0].kwargs["reason"]
    source.execute("DROP OWNED BY narrow")


def test_changes_under_the_partitions_names_need_no_warning(source: Source, reports: CapturingLogger) -> None:
    source.execute(ROOT, "CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0)")
    query = query_of(source, publish_via_partition_root="false", table_include_list=r"public\.p.*")
    query.drain()
    source.execute(LEAF, FILL, ATTACH)
    query.drain()
    query.stop()
    assert told(reports) == []
