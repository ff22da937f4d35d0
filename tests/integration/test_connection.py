"""How the server is reached, and what capture creates on it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import trustme

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import ConnectError, SourceStateError
from tests.conftest import Source, drop, make_source
from tests.support.inprocess import InProcess
from tests.support.tls_proxy import TlsProxy

ROWS = 3000


def fill(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, note text)",
        f"INSERT INTO t SELECT g, repeat('n', 50) FROM generate_series(1, {ROWS}) g",
    )


def query_of(source: Source, **options: str) -> InProcess:
    return InProcess({**source.options, **{name.replace("_", "."): value for name, value in options.items()}})


def select(source: Source, statement: str) -> list[Any]:
    with psycopg.connect(source.conninfo, autocommit=True) as conn:
        return conn.execute(statement).fetchall()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls_port(authority: trustme.CA, pg18: EmbeddedPostgres) -> Iterator[str]:
    """Return a port on which the server is reached by TLS only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    proxy = TlsProxy(context, pg18.port)
    yield str(proxy.port)
    proxy.close()


def test_capture_over_tls(pg18: EmbeddedPostgres, tls_port: str, authority: trustme.CA, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state", **{"database.port": tls_port})
    fill(source)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    query = query_of(source, database_sslmode="verify-full", database_sslrootcert=str(tmp_path / "ca.pem"))
    rows = query.drain()
    source.execute("UPDATE t SET note = repeat('m', 500)")
    rows += query.drain()
    query.stop()
    assert [row["op"] for row in rows] == ["r"] * ROWS + ["u"] * ROWS
    drop(source)


def test_a_server_of_another_authority_is_refused(pg18: EmbeddedPostgres, tls_port: str, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state", **{"database.port": tls_port})
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
    query = query_of(source, database_sslmode="verify-full", database_sslrootcert=str(tmp_path / "ca.pem"))
    with pytest.raises(ConnectError, match="certificate verify failed"):
        query.drain()
    query.stop()


def test_a_server_without_tls_is_refused_where_it_is_required(source: Source) -> None:
    query = query_of(source, database_sslmode="require")
    with pytest.raises(ConnectError, match="does not support SSL"):
        query.drain()
    query.stop()


def test_failover_slot(pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg18, tmp_path / "state")
    fill(source)
    query = query_of(source, slot_failover="true")
    assert len(query.drain()) == ROWS
    query.stop()
    slots = select(source, f"SELECT failover FROM pg_replication_slots WHERE database = '{source.dbname}'")
    assert slots == [(True,)]
    drop(source)


def test_failover_slot_needs_version_17(pg16: EmbeddedPostgres, tmp_path: Path) -> None:
    source = make_source(pg16, tmp_path / "state")
    fill(source)
    query = query_of(source, slot_failover="true")
    with pytest.raises(SourceStateError, match=r"slot\.failover.*17"):
        query.drain()
    query.stop()


def test_slot_drop_on_stop(source: Source) -> None:
    fill(source)
    query = query_of(source, slot_drop_on_stop="true")
    query.drain()
    source.execute("DELETE FROM t WHERE id = 1")
    query.drain()
    query.stop()
    assert select(source, f"SELECT 1 FROM pg_replication_slots WHERE database = '{source.dbname}'") == []


@pytest.mark.parametrize(
    ("mode", "published"), [("all_tables", ["other", "t"]), ("filtered", ["t"]), ("no_tables", [])]
)
def test_publication_autocreate_mode(source: Source, mode: str, published: list[str]) -> None:
    fill(source)
    source.execute("CREATE TABLE other (id integer PRIMARY KEY)")
    query = query_of(source, publication_autocreate_mode=mode, table_include_list="public.t")
    query.drain()
    source.execute("INSERT INTO t VALUES (0, '')", "INSERT INTO other VALUES (0)")
    changes = query.drain()
    query.stop()
    tables = select(source, "SELECT tablename::text FROM pg_publication_tables ORDER BY 1")
    assert [name for (name,) in tables] == published
    assert [row["table"] for row in changes] == (["t"] if "t" in published else [])


def test_changes_under_the_partition_root(source: Source) -> None:
    source.execute(
        "CREATE TABLE p (id integer, part integer, PRIMARY KEY (id, part)) PARTITION BY LIST (part)",
        # A partition may have its columns in another order.
        "CREATE TABLE p1 (part integer NOT NULL, id integer NOT NULL)",
        "ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) PARTITION BY LIST (id)",
        "CREATE TABLE p2a PARTITION OF p2 FOR VALUES IN (2, 4)",
        "INSERT INTO p VALUES (1, 1), (2, 2)",
    )
    query = query_of(source, publish_via_partition_root="true", table_include_list="public.p")
    rows = query.drain()
    source.execute("INSERT INTO p VALUES (3, 1), (4, 2)")
    rows += query.drain()
    query.stop()
    assert {row["topic"] for row in rows} == {"test.public.p"}
    assert sorted((row["op"], row["key"]) for row in rows) == [
        ("c", '{"id":3,"part":1}'),
        ("c", '{"id":4,"part":2}'),
        ("r", '{"id":1,"part":1}'),
        ("r", '{"id":2,"part":2}'),
    ]


@pytest.mark.parametrize(("via_root", "named"), [("false", "p"), ("true", "p1")])
def test_a_filter_that_matches_only_names_under_which_no_changes_come(
    source: Source, monkeypatch: pytest.MonkeyPatch, via_root: str, named: str
) -> None:
    source.execute(
        "CREATE TABLE p (id integer PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE other (id integer PRIMARY KEY)",
    )
    options = {"publish_via_partition_root": via_root, "table_include_list": rf"public\.{named}"}
    query = query_of(source, **options)
    with pytest.raises(SourceStateError, match=rf"No changes would be captured. Changes of public\.{named} come as"):
        query.drain()
    query.stop()
    told: list[tuple[str, str]] = []
    note = SimpleNamespace(warning=lambda event, **more: told.append((event, more["text"])))
    monkeypatch.setattr("floodmark.connectors.postgres.source.log.log", note)
    query = query_of(source, **{**options, "table_include_list": rf"public\.({named}|other)"})
    query.drain()
    query.stop()
    ((event, text),) = told
    assert event == "tables_capture_nothing"
    assert f"public.{named} come as" in text


def test_typed_rows_of_a_partitioned_table(source: Source) -> None:
    source.execute(
        "CREATE TABLE p (id integer PRIMARY KEY, v integer) PARTITION BY HASH (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        "INSERT INTO p SELECT g, g FROM generate_series(1, 10) g",
    )
    query = query_of(source, publish_via_partition_root="true", format="rows")
    rows = query.drain()
    query.stop()
    assert sorted(row["after"]["id"] for row in rows) == list(range(1, 11))


def test_creating_the_slot_tells_what_it_waits_for(
    source: Source, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(source)
    monkeypatch.setattr("floodmark.connectors.postgres.snapshot.read_point.WAIT_LOGGED_S", 0.2)
    writer = psycopg.connect(source.conninfo)
    writer.execute("INSERT INTO t VALUES (0, '')")

    def end_when_told(event: dict[str, Any]) -> None:
        if event["event"] == "slot_creation_waits" and event["for_transactions_of"] == [writer.info.backend_pid]:
            writer.commit()

    told: list[dict[str, Any]] = []

    class Log:
        def warning(self, event: str, **fields: Any) -> None:
            told.append({"event": event, **fields})
            end_when_told(told[-1])

    monkeypatch.setattr("floodmark.connectors.postgres.snapshot.read_point.log", Log())
    query = query_of(source)
    assert len(query.drain()) == ROWS + 1
    query.stop()
    writer.close()
    assert told
