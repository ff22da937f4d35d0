"""Options of the MySQL and MariaDB connectors that change what is asked of the server, or what is delivered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.checks.server import check_source
from floodmark.connectors.mysql.connector import BinlogSource
from floodmark.connectors.mysql.decode import decoder
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.server.connection import connect, connection, run
from floodmark.connectors.mysql.values.row_images import split_events
from floodmark.errors import ConfigError, DecodeError, FloodmarkError, SourceStateError
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer
from tests.support.recording import Recorder

DATABASE = "opted"
OTHER_SOURCE = "aaaaaaaa-1111-2222-3333-444444444444"


@pytest.fixture
def shop(binlog_server: MysqlServer) -> Iterator[MysqlServer]:
    binlog_server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    binlog_server.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(40))", database=DATABASE)
    yield binlog_server
    binlog_server.execute(f"DROP DATABASE {DATABASE}")


def given(server: MysqlServer, directory: Path, options: dict[str, str]) -> dict[str, str]:
    return {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(directory / "state"),
        "database.include.list": DATABASE,
        "include.schema.changes": "false",
        "snapshot.mode": "no_data",
        **options,
    }


def delivered(query: InProcess) -> list[int]:
    return [json.loads(row["key"])["id"] for row in query.drain()]


def loaded(options: dict[str, str]) -> BinlogOptions:
    made = load_options(options)
    assert isinstance(made, BinlogOptions)
    return made


def insert(number: int, text: str = "x") -> str:
    return f"INSERT INTO t VALUES ({number}, '{text}')"


def test_initial_statements(shop: MysqlServer, tmp_path: Path) -> None:
    statements = "SET @said = 'a;;b'; SET SESSION sql_mode = 'ANSI', sql_safe_updates = 1"
    options = given(shop, tmp_path, {"database.initial.statements": statements})
    with connection(loaded(options)) as conn:
        asked = run(conn, "SELECT @said, @@sql_mode, @@sql_safe_updates", "asking")
    assert asked == [("a;b", "", 1)]
    query = InProcess(options)
    query.drain()
    shop.execute(insert(1), database=DATABASE)
    assert delivered(query) == [1]
    query.stop()
    with pytest.raises(SourceStateError, match=r"database\.initial\.statements"):
        connect(loaded({**options, "database.initial.statements": "SET nothing"}))


def test_too_many_tables(shop: MysqlServer, tmp_path: Path) -> None:
    shop.execute("CREATE TABLE other (id int PRIMARY KEY)", database=DATABASE)
    options = given(shop, tmp_path, {"guardrail.collections.max": "1"})
    query = InProcess(options)
    assert query.drain() == []
    query.stop()
    failing = {**options, "guardrail.collections.limit.action": "fail"}
    told = "2 tables are captured, but 'guardrail.collections.max' is 1."
    for offset in (None, query.offset):
        with pytest.raises(ConfigError, match=re.escape(told)):
            InProcess(failing, offset).drain()
    for tried, status in ((options, "warning"), (failing, "error")):
        found = [finding for finding in check_source(loaded(tried)) if finding.finding == told]
        assert [finding.status for finding in found] == [status]
    shop.execute("DROP TABLE other", database=DATABASE)
    query = InProcess(failing)
    assert query.drain() == []
    query.stop()


def test_a_query_of_the_catalogs_is_limited(shop: MysqlServer, tmp_path: Path) -> None:
    source = BinlogSource(loaded(given(shop, tmp_path, {"database.query.timeout.ms": "300"})))
    conn = source._session.ordinary()
    slow = "SELECT count(*) FROM information_schema.COLUMNS a, information_schema.COLUMNS b, information_schema.COLUMNS"
    with pytest.raises(SourceStateError, match=r"database\.query\.timeout\.ms"):
        run(conn, slow, "asking")
    source.close()


@pytest.mark.parametrize("filtered", [True, False])
def test_sources_of_gtids(shop: MysqlServer, tmp_path: Path, filtered: bool) -> None:
    mariadb = shop.flavor == "mariadb"
    others = "7-.*" if mariadb else OTHER_SOURCE
    options = {"gtid.source.excludes": others, "gtid.source.filter.dml.events": str(filtered).lower()}
    query = InProcess(given(shop, tmp_path, {**options, "provide.transaction.metadata": "true"}))
    query.drain()
    with shop.connect(DATABASE) as session, session.cursor() as cursor:
        cursor.execute(insert(1))
        if mariadb:
            cursor.execute("SET gtid_domain_id = 7")
        else:
            cursor.execute("SELECT count(*) FROM performance_schema.global_variables")
            cursor.execute(f"SET gtid_next = '{OTHER_SOURCE}:{next_number(cursor)}'")
        cursor.execute(insert(2))
        cursor.execute("SET gtid_domain_id = 0" if mariadb else "SET gtid_next = 'AUTOMATIC'")
        cursor.execute(insert(3))
    rows = [row for row in query.drain() if row["op"] == "c"]
    query.stop()
    assert [json.loads(row["key"])["id"] for row in rows] == ([1, 3] if filtered else [1, 2, 3])
    assert all(json.loads(row["value"])["transaction"]["total_order"] == 1 for row in rows)


def next_number(cursor: Any) -> int:
    """Return a number that the other source's transactions do not have yet."""
    cursor.execute("SELECT GTID_SUBTRACT(@@global.gtid_executed, @@global.gtid_purged)")
    executed = str(cursor.fetchone()[0])
    return next(
        number
        for number in range(1, 100)
        if f"{OTHER_SOURCE}:1-{number}" not in executed and not (number == 1 and f"{OTHER_SOURCE}:1" in executed)
    )


@pytest.mark.parametrize("mode", ["fail", "warn", "skip"])
def test_a_change_that_does_not_fit_the_structure(
    shop: MysqlServer, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, decoder.__name__)
    shop.execute("CREATE TABLE other (id int PRIMARY KEY)", database=DATABASE)
    options = {"inconsistent.schema.handling.mode": mode, "errors.tables": "fail"}
    query = InProcess(given(shop, tmp_path, options))
    query.drain()
    shop.execute(
        insert(1),
        "SET sql_log_bin = 0",
        "ALTER TABLE t ADD COLUMN unseen int",
        "SET sql_log_bin = 1",
        "INSERT INTO t VALUES (2, 'x', 5)",
        "INSERT INTO other VALUES (3)",
        database=DATABASE,
    )
    if mode == "fail":
        with pytest.raises(FloodmarkError, match="columns"):
            query.drain()
    else:
        assert delivered(query) == [1, 3]
    assert len(recorder.of("changes_are_left_out")) == (mode == "warn")
    query.stop()


@pytest.mark.parametrize("mode", ["fail", "warn", "skip"])
def test_rows_that_cannot_be_split(
    shop: MysqlServer, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, decoder.__name__)

    def damaged(buf: Any, begin: Any, end: Any, *images: Any) -> Any:
        if any(b"damaged" in bytes(buf[one:other]) for one, other in zip(begin, end, strict=True)):
            raise DecodeError("A row is cut off.")
        return split_events(buf, begin, end, *images)

    monkeypatch.setattr(decoder, "split_events", damaged)
    options = {"event.deserialization.failure.handling.mode": mode, "errors.tables": "fail"}
    query = InProcess(given(shop, tmp_path, options))
    query.drain()
    shop.execute(*(insert(number, "damaged" if number == 3 else "fine") for number in range(6)), database=DATABASE)
    if mode == "fail":
        with pytest.raises(FloodmarkError, match="cut off"):
            query.drain()
    else:
        assert delivered(query) == [0, 1, 2, 4, 5]
    assert [line["events"] for line in recorder.of("changes_are_left_out")] == [1] * (mode == "warn")
    query.stop()
