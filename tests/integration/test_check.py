"""``floodmark check`` against real servers."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

import floodmark
from floodmark.connectors.contract.findings import Finding
from floodmark.connectors.postgres.checks.server import check_source
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.demo.embedded import EmbeddedPostgres, free_port
from tests.support.cli import CLI
from tests.support.patience import within


@pytest.fixture(scope="module", params=[16, 18])
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(request.param, {"max_replication_slots": "2", "max_wal_senders": "4"}) as running:
        yield running


@pytest.fixture
def database(server: EmbeddedPostgres, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the name of a new database; its slots are dropped with it."""
    name = "checked"
    with psycopg.connect(server.conninfo(), autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
        yield name
        deadline = time.monotonic() + within(20)
        while conn.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        conn.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        conn.execute(f"DROP DATABASE {name} WITH (FORCE)")
        conn.execute("DROP ROLE IF EXISTS cdc")


@pytest.fixture
def conn(server: EmbeddedPostgres, database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.conninfo(database), autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        yield connection


class Source:
    """Runs the check of a database with changed options."""

    def __init__(self, server: EmbeddedPostgres, database: str, directory: Path) -> None:
        self.base = {
            **server.options(database),
            "topic.prefix": "t",
            "state.dir": str(directory / "state"),
        }

    def check(self, offset: dict[str, Any] | None = None, **changes: str) -> list[Finding]:
        options = {**self.base, **{name.replace("_", "."): value for name, value in changes.items()}}
        return check_source(PostgresOptions.parse(options), offset)

    def problems(self, offset: dict[str, Any] | None = None, **changes: str) -> dict[str, Finding]:
        """Return the errors and warnings by check; not that the log retention is unlimited."""
        found = self.check(offset, **changes)
        assert all(item.fix for item in found if item.status == "error")
        return {item.check: item for item in found if item.status != "ok" and item.check != "log retention"}


@pytest.fixture
def source(server: EmbeddedPostgres, conn: psycopg.Connection[Any], database: str, tmp_path: Path) -> Source:
    return Source(server, database, tmp_path)


def test_nothing_wrong(source: Source) -> None:
    assert source.problems() == {}
    found = {item.check: item.status for item in source.check()}
    assert found["log retention"] == "warning"
    assert {"connection", "server version", "wal_level", "slot", "tables", "publication"} <= found.keys()


def test_check_creates_nothing(source: Source, conn: psycopg.Connection[Any]) -> None:
    source.check()
    assert conn.execute("SELECT count(*) FROM pg_replication_slots").fetchone() == (0,)
    assert conn.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)


def test_unreachable_server(source: Source) -> None:
    (finding,) = source.check(database_port=str(free_port()))
    assert (finding.check, finding.status) == ("connection", "error")
    assert "\n" not in finding.finding


def test_missing_database_and_role(source: Source) -> None:
    assert 'database "nope" does not exist' in source.check(database_dbname="nope")[0].finding
    assert 'role "nope" does not exist' in source.check(database_user="nope")[0].finding


def test_typed_rows_need_one_table(source: Source, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE TABLE items (id int PRIMARY KEY)")

    def typed(**changes: str) -> Finding:
        found = floodmark.check({**source.base, "format": "rows", **changes})
        return next(item for item in found if item.check == "typed rows")

    both = typed()
    assert both.status == "error"
    assert "the filters match 2 (public.items, public.orders)" in both.finding
    assert "table.include.list" in both.fix
    assert typed(**{"table.include.list": r"public\.orders"}).status == "ok"
    # Where no connection can be made, that is the only thing wrong.
    found = floodmark.check({**source.base, "format": "rows", "database.dbname": "nope"})
    assert [item.check for item in found if item.status == "error"] == ["connection"]


def test_signal_tables(source: Source, conn: psycopg.Connection[Any]) -> None:
    finding = source.problems(signal_data_collection="public.signals")["signal table"]
    assert (finding.status, "does not exist" in finding.finding) == ("error", True)
    conn.execute("CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32))")
    assert "has only id, type" in source.problems(signal_data_collection="public.signals")["signal table"].finding
    conn.execute("ALTER TABLE signals ADD data varchar(2048)")
    assert source.problems(signal_data_collection="public.signals") == {}


def test_role_without_privileges(source: Source, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE ROLE cdc LOGIN")
    conn.execute("CREATE SCHEMA hidden")
    conn.execute("CREATE TABLE hidden.t (id int PRIMARY KEY)")
    found = source.check(database_user="cdc")
    errors = [item for item in found if item.status == "error"]
    texts = " ".join(f"{item.finding} {item.fix}" for item in errors)
    assert {item.check for item in errors} == {"replication privilege", "select privilege", "publication"}
    assert 'ALTER ROLE "cdc" REPLICATION' in texts
    assert 'GRANT SELECT ON "hidden"."t", "public"."orders" TO "cdc"' in texts
    assert 'GRANT USAGE ON SCHEMA "hidden" TO "cdc"' in texts
    assert "only a superuser can create it for all tables" in texts


def test_fixes_work(source: Source, conn: psycopg.Connection[Any], database: str) -> None:
    """Applying what the fixes say leaves nothing wrong."""
    conn.execute("CREATE ROLE cdc LOGIN")
    filtered: dict[str, Any] = {"database_user": "cdc", "publication_autocreate_mode": "filtered"}
    problems = source.problems(**filtered)
    assert problems.keys() == {"replication privilege", "replication connection", "select privilege", "publication"}
    conn.execute('ALTER ROLE "cdc" REPLICATION')
    conn.execute('GRANT SELECT ON "public"."orders" TO "cdc"')
    conn.execute(f'GRANT CREATE ON DATABASE "{database}" TO "cdc"')
    problems = source.problems(**filtered)
    assert problems.keys() == {"publication"}
    assert "only a table's owner can" in problems["publication"].finding
    conn.execute('CREATE PUBLICATION "dbz_publication" FOR TABLE "public"."orders"')
    assert source.problems(database_user="cdc") == {}
    assert "only its owner can" in source.problems(**filtered)["publication"].finding
    conn.execute("ALTER TABLE orders OWNER TO cdc")
    conn.execute("ALTER PUBLICATION dbz_publication OWNER TO cdc")
    assert source.problems(**filtered) == {}


def test_row_level_security_hides_rows(source: Source, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE ROLE cdc LOGIN REPLICATION")
    conn.execute("GRANT SELECT ON orders TO cdc")
    conn.execute("ALTER TABLE orders ENABLE ROW LEVEL SECURITY")
    conn.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    assert "Row-level security" in source.problems(database_user="cdc")["select privilege"].finding
    assert source.problems(database_user="cdc", snapshot_mode="no_data") == {}


def test_no_table_matches(source: Source) -> None:
    finding = source.problems(table_include_list=r"public\.order")["tables"]
    assert finding.status == "error"
    assert "Did you mean public.orders?" in finding.fix


def test_one_filter_matches_nothing(source: Source) -> None:
    finding = source.problems(table_include_list=r"public\.orders,public\.gone")["tables"]
    assert finding.status == "warning"
    assert r"public\.gone" in finding.finding


def test_tables_without_key_or_identity(source: Source, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE TABLE log (x int)")
    conn.execute("CREATE TABLE audit (x int)")
    conn.execute("ALTER TABLE audit REPLICA IDENTITY FULL")
    problems = source.problems()
    assert "public.log" in problems["replica identity"].finding
    assert "public.audit" not in problems["replica identity"].finding
    assert "public.audit, public.log" in problems["keys"].finding
    problems = source.problems(table_include_list=r"public\.orders")
    assert problems.keys() == {"publication"}
    assert "UPDATE and DELETE fail on public.log" in problems["publication"].finding
    assert source.problems(table_include_list=r"public\.orders", publication_autocreate_mode="filtered") == {}


def test_partitioned_tables(source: Source, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE TABLE part (id int, d date, PRIMARY KEY (id, d)) PARTITION BY RANGE (d)")
    conn.execute("CREATE TABLE part_old PARTITION OF part FOR VALUES FROM ('2020-01-01') TO ('2030-01-01')")
    assert "publish.via.partition.root" in source.problems(table_include_list=r"public\.part")["tables"].fix
    assert source.problems(table_include_list=r"public\.part", publish_via_partition_root="true") == {}
    assert source.problems(table_include_list=r"public\.part_old") == {}
    problems = source.problems(table_include_list=r"public\.part_old", publish_via_partition_root="true")
    assert "root tables" in problems["tables"].fix
    conn.execute("CREATE TABLE other (id int PRIMARY KEY)")
    problems = source.problems(table_include_list=r"public\.(part|other)")
    assert problems["tables"].status == "warning"
    assert "public.part come as those of their partitions" in problems["tables"].finding


def test_a_publication_for_all_tables_cannot_be_filtered(source: Source, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    problems = source.problems(publication_autocreate_mode="filtered")
    assert problems.keys() == {"publication"}
    assert "is for all tables" in problems["publication"].finding


def test_publication_lacks_tables_and_operations(source: Source, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE TABLE items (id int PRIMARY KEY)")
    conn.execute("CREATE PUBLICATION dbz_publication FOR TABLE orders WITH (publish = 'insert, update')")
    found = [item for item in source.check() if item.check == "publication"]
    assert [item.status for item in found] == ["error", "error"]
    assert "lacks public.items" in found[0].finding
    assert "does not publish delete" in found[1].finding
    conn.execute('ALTER PUBLICATION "dbz_publication" ADD TABLE "public"."items"')
    conn.execute("ALTER PUBLICATION dbz_publication SET (publish = 'insert, update, delete, truncate')")
    assert source.problems() == {}


def test_publication_with_filters(source: Source, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE PUBLICATION dbz_publication FOR TABLE orders WHERE (id > 5)")
    assert "filters rows or columns of public.orders" in source.problems()["publication"].finding


def test_missing_publication_must_not_be_created(source: Source) -> None:
    finding = source.problems(publication_autocreate_mode="disabled")["publication"]
    assert finding.status == "error"
    assert 'CREATE PUBLICATION "dbz_publication" FOR TABLE "public"."orders"' in finding.fix


def create_slot(conn: psycopg.Connection[Any], name: str = "debezium", plugin: str = "pgoutput") -> None:
    conn.execute("SELECT pg_create_logical_replication_slot(%s, %s)", (name, plugin))


def test_slots(source: Source, server: EmbeddedPostgres, conn: psycopg.Connection[Any]) -> None:
    create_slot(conn)
    assert source.problems() == {}
    create_slot(conn, "other")
    assert "2 of 2 slots in use" in source.problems()["slot"].finding
    assert source.problems(snapshot_mode="no_data") == {}
    assert "2 of 2 slots in use" in source.problems(slot_name="third", snapshot_mode="no_data")["slot"].finding
    conn.execute("SELECT pg_drop_replication_slot('other')")
    with psycopg.connect(server.conninfo(), autocommit=True) as elsewhere:
        create_slot(elsewhere, "other")
    assert "belongs to the database 'postgres'" in source.problems(slot_name="other")["slot"].finding


def test_active_slot(source: Source, server: EmbeddedPostgres, conn: psycopg.Connection[Any], database: str) -> None:
    create_slot(conn)
    conn.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    reader = psycopg.connect(f"{server.conninfo(database)} replication=database", autocommit=True)
    try:
        settings = "proto_version '1', publication_names 'dbz_publication'"
        reader.pgconn.exec_(f"START_REPLICATION SLOT debezium LOGICAL 0/0 ({settings})".encode())
        finding = source.problems()["slot"]
    finally:
        reader.close()
    assert finding.status == "error"
    assert "in use by the server process" in finding.finding


def test_walsenders_in_use(source: Source, server: EmbeddedPostgres, database: str) -> None:
    connections = [psycopg.connect(f"{server.conninfo(database)} replication=database") for _ in range(4)]
    try:
        problems = source.problems()
    finally:
        for connection in connections:
            connection.close()
    assert "2 must be free" in problems["walsenders"].finding
    assert problems["replication connection"].status == "error"


def test_failover_slots_need_version_17(source: Source, server: EmbeddedPostgres) -> None:
    problems = source.problems(slot_failover="true")
    assert problems.keys() == (set() if server.version >= 17 else {"slot"})


def test_checkpoints(source: Source, conn: psycopg.Connection[Any], database: str) -> None:
    row = conn.execute("SELECT system_identifier::text FROM pg_control_system()").fetchone()
    assert row is not None
    here = {"system": row[0], "database": database, "slot": "debezium"}
    offset = {"v": 1, "source": here, "log": "0000000000000001-00000000", "snapshot": None}
    assert "does not exist any more" in source.problems(offset)["checkpoint"].finding
    create_slot(conn)
    assert "beyond the checkpoint" in source.problems(offset)["checkpoint"].finding
    assert source.problems({**offset, "log": "FFFFFFFF00000000-00000000"}) == {}
    other = {**offset, "source": {**here, "system": "7"}}
    assert "written for another source: system 7 (now " in source.problems(other)["checkpoint"].finding


def test_wrong_password(source: Source, server: EmbeddedPostgres, conn: psycopg.Connection[Any]) -> None:
    conn.execute("CREATE ROLE cdc LOGIN PASSWORD 'right'")
    hba = server.data / "pg_hba.conf"
    before = hba.read_text()
    hba.write_text(f"host all cdc 127.0.0.1/32 scram-sha-256\n{before}")
    conn.execute("SELECT pg_reload_conf()")
    try:
        (finding,) = source.check(database_user="cdc", database_password="wr0ng-secret")
        assert "password authentication failed" in finding.finding
        assert finding.fix == "Correct database.user or database.password."
        assert "wr0ng-secret" not in finding.finding + finding.fix
        assert source.check(database_user="cdc", database_password="right")[0].status == "ok"
    finally:
        hba.write_text(before)
        conn.execute("SELECT pg_reload_conf()")


def test_wal_level_replica(tmp_path: Path) -> None:
    with EmbeddedPostgres(18, {"wal_level": "replica"}) as running:
        with psycopg.connect(running.conninfo(), autocommit=True) as connection:
            connection.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        problems = Source(running, "postgres", tmp_path).problems()
    assert problems.keys() == {"wal_level"}
    assert "ALTER SYSTEM SET wal_level" in problems["wal_level"].fix


def run_check(
    base: dict[str, str], directory: Path, *arguments: str, **changes: Any
) -> subprocess.CompletedProcess[str]:
    pipeline = {
        "source": base,
        "sink": {"type": "parquet", "path": str(directory / "events")},
        "checkpoint": str(directory / "checkpoint"),
        **changes,
    }
    file = directory / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline), encoding="utf-8")
    command = [*CLI, "check", str(file), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))


def test_command_prints_a_table(source: Source, tmp_path: Path) -> None:
    done = run_check(source.base, tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("Java", "PySpark", "state.dir", "checkpoint", "sink", "wal_level", "warning"):
        assert word in done.stdout
    assert list((tmp_path / "state").iterdir()) == []


def test_command_fails_on_an_error_and_speaks_json(source: Source, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    sink = {"type": "kafka", "options": {"kafka.bootstrap.servers": f"127.0.0.1:{free_port()}"}}
    changed = {**source.base, "state.dir": str(blocked / "state")}
    done = run_check(changed, tmp_path, "--json", sink=sink, spark={"spark.master": "spark://host:7077"})
    assert done.returncode == 1
    report = json.loads(done.stdout)
    statuses = {(item["check"], item["status"]) for item in report["findings"]}
    assert not report["ok"]
    assert {("state.dir", "error"), ("state.dir", "warning"), ("sink", "error"), ("connection", "ok")} <= statuses
