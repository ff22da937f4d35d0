"""Input that attacks, on real servers: what signals, names and texts must not bring about.

Canaries show whether anything else was done than what was allowed: tables that hostile conditions would change, secrets
that they would read, functions that raise when they are called, files that they would write.
"""

from __future__ import annotations

import json
import os
import random
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from floodmark.cli.logs import readable
from floodmark.config.common import CommonOptions
from floodmark.connectors import side_statements
from floodmark.connectors.contract import source as contract
from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.snapshot.row_filters import MYSQL
from floodmark.connectors.postgres.snapshot.row_filters import POSTGRES
from floodmark.connectors.predicates.parser import TableColumns
from floodmark.connectors.registry import connector_module
from floodmark.errors import ConditionError, ConfigError, SourceStateError
from floodmark.signals import files, records
from floodmark.snapshots import control
from tests.conftest import Source
from tests.integration.test_incremental import SIGNALS, query_of, read_rows, signal, told, until
from tests.support.conditions import HOSTILE, generated_condition, hostile_condition
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer
from tests.support.patience import within
from tests.support.recording import Recorder

INPUTS = max(int(os.environ.get("FLOODMARK_FUZZ_INPUTS", "3000")) // 3, 1)
COLUMNS = ("id", "status", "created_at", "Color", "user", "amount", 'a"b')
SECRET = "swordfish"
TOLD = {"notification_enabled_channels": "sink", "notification_sink_topic_name": "told"}


def connector_of(options: CommonOptions) -> contract.Source:
    made: contract.Source = connector_module(options.connector, "connector").make_source(options)
    return made


@pytest.fixture
def shop(source: Source) -> Source:
    """Return a database with a captured table and canaries."""
    source.execute(
        SIGNALS.replace("varchar(2048)", "text"),
        'CREATE TABLE orders (id integer PRIMARY KEY, status varchar(40), created_at timestamptz, "Color" text, '
        '"user" text, amount numeric, "a""b" text)',
        "INSERT INTO orders SELECT g, 'x', '2026-01-01', 'blue', 'u', g, 'b' FROM generate_series(1, 20) g",
        "CREATE TABLE secrets (n integer PRIMARY KEY, password text)",
        f"INSERT INTO secrets VALUES (1, '{SECRET}')",
        "CREATE TABLE canary (n integer)",
        "INSERT INTO canary VALUES (0)",
        "CREATE SEQUENCE canary_numbers",
        "CREATE FUNCTION evil(anyelement) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$",
        # Better matches than the server's own, in a schema of the search path.
        "CREATE FUNCTION evil_compare(varchar, varchar) RETURNS boolean LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'called'; END $$",
        "CREATE FUNCTION evil_compare(varchar, text) RETURNS boolean LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'called'; END $$",
        *(
            f"CREATE OPERATOR public.{name} (LEFTARG = varchar, RIGHTARG = {right}, FUNCTION = evil_compare)"
            for name in ("=", "<>", "<", "<=", ">", ">=", "~~", "!~~")
            for right in ("varchar", "text")
        ),
        "CREATE FUNCTION lower(varchar) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$",
    )
    return source


HARMLESS = {
    "postgres": ("id /*!", "id = 1 /*!", "id = 1 --"),
    "mysql": ("id = 1 --", "id = 1 #", '"id"', "status = '"),
}
"""How those begin that mean something which is allowed: a comment, or a text that another server would have ended."""


def refused_on(server: str, kind: str) -> list[str]:
    """Return hostile conditions, fewer and as statements for blocking snapshots."""
    texts = [text.replace("\0", "") for text in HOSTILE if not text.startswith(HARMLESS[server])]
    if kind == "incremental":
        return texts
    return [
        "SELECT n AS id, password AS status FROM secrets",
        "DELETE FROM canary RETURNING *",
        *(f"SELECT * FROM orders WHERE {text}" for text in texts[:5]),
        texts[0],
    ]


def scans(rows: list[dict[str, Any]]) -> list[str]:
    """Return how the reading of tables has ended."""
    return [details["status"] for type_, details in told(rows) if type_ == "TABLE_SCAN_COMPLETED"]


def untouched(shop: Source) -> None:
    """Prove that nothing was done to the canaries."""
    with psycopg.connect(shop.conninfo, autocommit=True) as conn:
        assert conn.execute("SELECT array_agg(n) FROM canary").fetchone() == ([0],)
        assert conn.execute("SELECT is_called FROM canary_numbers").fetchone() == (False,)
        assert conn.execute("SELECT count(*) FROM secrets").fetchone() == (1,)


def nodes(plan: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a plan; texts of the condition in it may say anything."""
    if isinstance(plan, dict):
        yield plan
        plan = list(plan.values())
    if isinstance(plan, list | tuple):
        for part in plan:
            yield from nodes(part)


def test_thousands_of_conditions_in_one_session_do_nothing_but_filter(shop: Source) -> None:
    random_ = random.Random(3)
    options = load_options({**shop.options, "table.include.list": "public.orders"})
    connector = connector_of(options)
    (oid,) = [table.oid for table in connector.tables.captured()]
    table = TableColumns((("public", "orders"),), COLUMNS)
    accepted = 0
    try:
        with psycopg.connect(shop.conninfo, autocommit=True) as conn:
            for number in range(INPUTS):
                make = generated_condition if number % 2 else hostile_condition
                text = make(random_, POSTGRES, table)
                try:
                    found = connector.tables.row_filter(oid, text)
                except ConditionError:
                    continue
                accepted += 1
                # By the simple protocol, which would take several statements.
                cursor = conn.execute(f"EXPLAIN (FORMAT JSON) SELECT * FROM ONLY orders WHERE {found}")
                plans = list(nodes(cursor.fetchall()))
                assert cursor.nextset() is None
                assert {plan["Relation Name"] for plan in plans if "Relation Name" in plan} <= {"orders"}
                assert not any("Subplan Name" in plan for plan in plans)
                try:
                    cursor = conn.execute(f"SELECT count(*) FROM ONLY orders WHERE {found}")
                    assert len(cursor.fetchall()) == 1
                    assert cursor.nextset() is None
                except psycopg.errors.DataError:
                    continue  # a value that isn't one of its type
                except psycopg.errors.RaiseException as exc:
                    raise AssertionError(f"{text!r} called a function: {found}") from exc
    finally:
        connector.close()
    assert accepted > INPUTS // 20
    untouched(shop)


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_hostile_conditions_of_signals_end_with_a_notification_and_gain_nothing(shop: Source, kind: str) -> None:
    options = {"table_include_list": "public.orders", "errors_tables": "fail"}
    query = query_of(shop, None, **TOLD, **options)
    query.drain()
    refused = refused_on("postgres", kind)
    for text in refused:
        condition = {"data-collection": "public.orders", "filter": text}
        signal(
            shop, "execute-snapshot", type=kind, data_collections=["public.orders"], additional_conditions=[condition]
        )
    rows = query.drain()
    while len(scans(rows)) < len(refused):
        rows += query.step()
    assert read_rows(rows, "orders") == []
    signal(shop, "execute-snapshot", data_collections=["public.orders"])
    after = query.drain()
    query.stop()
    assert len(read_rows(after, "orders")) == 20
    assert SECRET not in json.dumps([*rows, *after], default=str)
    assert scans(rows) == ["SQL_EXCEPTION"] * len(refused)
    untouched(shop)


def test_columns_that_events_hide_cannot_be_asked_for(shop: Source) -> None:
    options = {
        "table.include.list": "public.orders",
        "column.exclude.list": "public.orders.status",
        "column.mask.with.3.chars": "public.orders.Color",
    }
    connector = connector_of(load_options({**shop.options, **options}))
    try:
        (oid,) = [table.oid for table in connector.tables.captured()]
        assert connector.tables.row_filter(oid, "\"user\" = 'u'")
        for column in ("status", '"Color"'):
            with pytest.raises(ConditionError, match="events leave it out or change it"):
                connector.tables.row_filter(oid, f"{column} LIKE 'b%'")
    finally:
        connector.close()


@pytest.mark.parametrize("kind", ["condition", "statement", "pattern"])
def test_what_waits_in_a_checkpoint_of_an_earlier_version_is_refused_when_it_is_used(shop: Source, kind: str) -> None:
    query = query_of(shop, None, table_include_list="public.orders", incremental_snapshot_chunk_size="1")
    query.drain()
    hostile = "true) TO STDOUT; DROP TABLE canary; COPY (SELECT 1"
    condition = {"data-collection": "public.orders", "filter": "id > 0"}
    what = "incremental" if kind == "condition" else "blocking"
    signal(shop, "execute-snapshot", type=what, data_collections=["public.orders"], additional_conditions=[condition])
    query.restart()
    until(query, lambda offset: bool(offset["incremental"] or offset["blocking"]))
    query.stop()
    offset = json.loads(json.dumps(query.offset))
    if kind == "condition":
        offset["incremental"]["runs"][0]["condition"] = hostile
    else:
        pattern = r"(a+)\1" if kind == "pattern" else "public.orders"
        offset["blocking"][0]["conditions"] = [[pattern, hostile]]
        offset["blocking"][0]["tables"] = ["public.orders", r"(a+)\1"]
    query = query_of(shop, offset, table_include_list="public.orders")
    rows = query.drain()
    shop.execute("INSERT INTO orders VALUES (21)")
    rows += query.drain()
    assert [json.loads(row["value"])["after"]["id"] for row in rows if row["op"] == "c"] == [21]
    assert read_rows(rows, "orders") == []
    assert query.offset["incremental"] is None
    assert query.offset["blocking"] == []
    query.stop()
    untouched(shop)


def test_patterns_of_signals_that_search_for_ever_elsewhere(shop: Source) -> None:
    shop.execute(f"CREATE TABLE {'long_' * 12} (id integer PRIMARY KEY)")
    query = query_of(shop, None)
    query.drain()
    for pattern in (r"(?:[a-z_.]+)+!", r"(a|a)*(a|a)*!", r"(\w+)\1", r"(?=(a+)+!).*", "(" * 500, "a{500}{500}{500}"):
        signal(shop, "execute-snapshot", data_collections=[pattern])
        signal(shop, "stop-snapshot", data_collections=[pattern])
    signal(shop, "execute-snapshot", data_collections=["public.orders"])
    rows = query.drain()
    query.restart()
    rows += query.drain()
    query.stop()
    assert len(read_rows(rows, "orders")) == 20


@pytest.fixture
def binlog_shop(binlog_server: MysqlServer) -> Iterator[MysqlServer]:
    """Return a server with a captured table and canaries."""
    binlog_server.execute(
        "DROP DATABASE IF EXISTS attacks",
        "CREATE DATABASE attacks",
        "CREATE TABLE attacks.signals (id varchar(64) PRIMARY KEY, type varchar(32), data mediumtext)",
        "CREATE TABLE attacks.orders (id int PRIMARY KEY, status varchar(40) CHARACTER SET gbk, created_at datetime, "
        '`Color` varchar(20) CHARACTER SET latin1, `user` text, amount decimal(10, 2), `a"b` text)',
        "INSERT INTO attacks.orders VALUES (1, 'x', '2026-01-01', 'blue', 'u', 1, 'b'), (2, 'y', NULL, '', '', 2, '')",
        "CREATE TABLE attacks.secrets (n int PRIMARY KEY, password text)",
        f"INSERT INTO attacks.secrets VALUES (1, '{SECRET}')",
        "CREATE TABLE attacks.canary (n int)",
        "INSERT INTO attacks.canary VALUES (0)",
        "CREATE FUNCTION attacks.evil(n int) RETURNS int DETERMINISTIC "
        "BEGIN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'called'; RETURN 1; END",
    )
    yield binlog_server
    binlog_server.execute("DROP DATABASE attacks")


def binlog_options(server: MysqlServer, directory: Path, **options: str) -> dict[str, str]:
    return {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(directory),
        "database.include.list": "attacks",
        "table.include.list": r"attacks\.orders",
        "signal.data.collection": "attacks.signals",
        "snapshot.mode": "no_data",
        **options,
    }


def test_thousands_of_conditions_on_mysql_and_mariadb_do_nothing_but_filter(
    binlog_shop: MysqlServer, tmp_path: Path
) -> None:
    random_ = random.Random(4)
    connector = connector_of(load_options(binlog_options(binlog_shop, tmp_path)))
    connector.log.create(False)
    (oid,) = [table.oid for table in connector.tables.captured() if table.name == "attacks.orders"]
    table = TableColumns((("attacks", "orders"),), COLUMNS)
    accepted = 0
    # Several statements would be taken here, whatever the session's mode is.
    flags = pymysql.constants.CLIENT.MULTI_STATEMENTS
    with binlog_shop.connect("attacks", client_flag=flags, charset="utf8mb4") as conn, conn.cursor() as cursor:
        for number in range(INPUTS):
            if number % 100 == 0:
                modes = (
                    "",
                    "ANSI_QUOTES",
                    "NO_BACKSLASH_ESCAPES",
                    "PIPES_AS_CONCAT",
                    "HIGH_NOT_PRECEDENCE,IGNORE_SPACE",
                )
                cursor.execute(f"SET sql_mode = '{modes[number // 100 % len(modes)]}'")
                cursor.execute(f"SET NAMES {('utf8mb4', 'gbk', 'sjis', 'latin1')[number // 100 % 4]}")
            make = generated_condition if number % 2 else hostile_condition
            text = make(random_, MYSQL, table)
            try:
                found = connector.tables.row_filter(oid, text)
            except ConditionError:
                continue
            accepted += 1
            assert found.isascii()
            try:
                cursor.execute(f"SELECT COUNT(*) FROM orders WHERE {found}")
                assert len(cursor.fetchall()) == 1
                assert not cursor.nextset()
            except pymysql.err.Error as exc:
                # Values that don't fit; nothing that the grammar of SQL has against it.
                if exc.args[0] not in DATA_ERRORS:
                    raise AssertionError((text, found)) from exc
        cursor.execute("SELECT n FROM canary")
        assert cursor.fetchall() == ((0,),)
    connector.close()
    assert accepted > INPUTS // 20


DATA_ERRORS = (1267, 1270, 1271, 1292, 1365, 1366, 1411, 1525, 1690, 3854, 4078)
"""Collations that don't mix, values that are out of range or none of their type."""


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_hostile_conditions_of_signals_on_mysql_and_mariadb(
    binlog_shop: MysqlServer, tmp_path: Path, kind: str
) -> None:
    options = binlog_options(binlog_shop, tmp_path, **{name.replace("_", "."): value for name, value in TOLD.items()})
    query = InProcess(options)
    query.drain()
    refused = refused_on("mysql", kind)
    with binlog_shop.connect("attacks", autocommit=True) as conn, conn.cursor() as cursor:
        for number, text in enumerate(refused):
            condition = {"data-collection": "attacks.orders", "filter": text}
            data = {"type": kind, "data-collections": ["attacks.orders"], "additional-conditions": [condition]}
            cursor.execute("INSERT INTO signals VALUES (%s, 'execute-snapshot', %s)", (str(number), json.dumps(data)))
    rows = query.drain()
    while len(scans(rows)) < len(refused):
        rows += query.step()
    assert read_rows(rows, "orders") == []
    last = json.dumps({"data-collections": ["attacks.orders"]})
    binlog_shop.execute(f"INSERT INTO attacks.signals VALUES ('last', 'execute-snapshot', '{last}')")
    after = query.drain()
    query.stop()
    assert len(read_rows(after, "orders")) == 2
    assert SECRET not in json.dumps([*rows, *after], default=str)
    assert scans(rows) == ["SQL_EXCEPTION"] * len(refused)
    with binlog_shop.connect("attacks") as conn, conn.cursor() as cursor:
        cursor.execute("SELECT n FROM canary")
        assert cursor.fetchall() == ((0,),)


PASSWORD = "hunter22"


@pytest.mark.parametrize(
    "statement",
    [
        f"SET nonsense.{PASSWORD} TO '{PASSWORD}' nonsense",
        f"ALTER ROLE no_such_role PASSWORD '{PASSWORD}'",
        f"SELECT '{PASSWORD}'::integer",
    ],
)
def test_a_failing_initial_statement_shows_no_password(source: Source, statement: str) -> None:
    options = {**source.options, "database.initial.statements": f"SELECT 1; {statement}"}
    with pytest.raises(SourceStateError, match=r"statement 2 of database\.initial\.statements") as caught:
        connector_of(load_options(options)).tables.captured()
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("statement", [f"SET PASSWORD '{PASSWORD}'", f"SET @@nonsense = '{PASSWORD}'"])
def test_a_failing_initial_statement_of_mysql_shows_no_password(
    binlog_shop: MysqlServer, tmp_path: Path, statement: str
) -> None:
    options = binlog_options(binlog_shop, tmp_path, **{"database.initial.statements": f"SELECT 1; {statement}"})
    with pytest.raises(SourceStateError, match=r"statement 2 of database\.initial\.statements") as caught:
        connector_of(load_options(options)).log.end()
    assert PASSWORD not in str(caught.value)


def test_statements_of_options_are_one_statement_each(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, side_statements.__name__)
    source.execute("CREATE TABLE canary (n integer)", "CREATE TABLE t (id integer PRIMARY KEY)")
    action = f"INSERT INTO canary VALUES (1); SELECT '{PASSWORD}'"
    query = InProcess({**source.options, "heartbeat.interval.ms": "1", "heartbeat.action.query": action})
    query.drain()
    query.restart()
    deadline = time.monotonic() + within(30)
    while not recorder.of("heartbeat_action_failed"):
        query.step()
        assert time.monotonic() < deadline
    query.stop()
    said = repr(recorder.lines)
    assert "It must be one statement" in said
    assert PASSWORD not in said
    statement = "SELECT * FROM t) AS selected LIMIT 0; INSERT INTO canary VALUES (2); SELECT id FROM (SELECT * FROM t"
    overrides = {
        "snapshot.select.statement.overrides": "public.t",
        "snapshot.select.statement.overrides.public.t": statement,
    }
    connector = connector_of(load_options({**source.options, **overrides}))
    with pytest.raises(ConfigError, match="must be one SELECT"):
        connector.tables.to_snapshot()
    connector.close()
    with psycopg.connect(source.conninfo) as conn:
        assert conn.execute("SELECT count(*) FROM canary").fetchone() == (0,)


TEXTS = [
    ("a\nerror forged=1", "log", '{"message": "x"}'),
    ("\x1b[2J", "log\r\n", "{}"),
    ("i" * 100_000, "log", '{"message": "x"}'),
    ("../../../../etc/passwd", "execute-snapshot", '{"data-collections": ["../../x"]}'),
    ("big", "log", '{"message": "' + "x" * 3_000_000 + '"}'),
    ("deep", "execute-snapshot", '{"data-collections": ' + "[" * 100_000),
    ("deeper", "execute-snapshot", '{"data-collections": ' + "[" * 50_000 + "]" * 50_000 + "}"),
    ("twice", "execute-snapshot", '{"data-collections": ["public.none"], "data-collections": [7]}'),
    ("many", "execute-snapshot", '{"data-collections": [' + ",".join(f'"public.n{n}"' for n in range(20_000)) + "]}"),
    ("number", "log", '{"message": ' + "9" * 10_000 + "}"),
    ("half", "log", '{"message": "\\ud800"}'),
    ("null", "log", '{"message": "\\u0000"}'),
    ("type", "t" * 100_000, "{}"),
    ("", "", ""),
]
LAST = ("last", "execute-snapshot", '{"data-collections": ["public.t"]}')


@pytest.mark.parametrize("channel", ["source", "file"])
def test_texts_of_signals_stop_nothing(source: Source, channel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, control.__name__, records.__name__, files.__name__)
    source.execute("CREATE TABLE signals (id text, type text, data text)", "CREATE TABLE t (id integer PRIMARY KEY)")
    source.execute("INSERT INTO t SELECT generate_series(1, 5)")
    state = Path(source.options["state.dir"])
    file = state.parent / "signals.jsonl"
    given = {"signal_enabled_channels": "source,file", "signal_file": str(file), "signal_poll_interval_ms": "1"}
    query = query_of(source, None, table_include_list="public.t", **given)
    query.drain()
    query.restart()
    if channel == "source":
        with psycopg.connect(source.conninfo, autocommit=True) as conn:
            conn.cursor().executemany("INSERT INTO signals VALUES (%s, %s, %s)", [*TEXTS, LAST])
    else:
        lines = [json.dumps(dict(zip(("id", "type", "data"), one, strict=True))).encode() for one in [*TEXTS, LAST]]
        odd = [b"\xff\xfe", b"[" * 100_000, b'{"id": "x", "type": "log", "data": "\xff"}', b"x" * 2_000_000, b"\0"]
        file.write_bytes(b"\n".join([*odd, *lines]) + b"\n")
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + within(60)
    while len(read_rows(rows, "t")) < 5:
        assert time.monotonic() < deadline
        rows += query.step()
    assert len(json.dumps(query.offset)) < 100_000
    query.stop()
    assert len(TEXTS) // 2 < len(recorder.lines) < 100
    for level, event, fields in recorder.lines:
        # As it is written to the log, and as it is shown to people.
        line = json.dumps({"level": level, "event": event, **fields})
        assert len(line) < 10_000
        assert readable(line).isprintable()
    assert not list(state.parent.glob("**/passwd*"))


def test_what_a_running_query_writes_is_private(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, v text)")
    before = os.umask(0)
    try:
        query = query_of(source, None, segment_bytes="65536")
        query.drain()
        source.execute("INSERT INTO t SELECT g, repeat('n', 100) FROM generate_series(1, 3000) g")
        query.restart()
        # Planned, up to the end of the log, and not committed, so that the segments are still there.
        query.reader.prepareForTriggerAvailableNow()
        query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
        state = Path(source.options["state.dir"])
        found = {path: stat.S_IMODE(path.lstat().st_mode) for path in (state, *state.rglob("*"))}
        assert any(path.is_file() for path in found)
        assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
        assert {mode for path, mode in found.items() if path.is_file()} == {0o600}
        query.stop()
    finally:
        os.umask(before)


KEYS = ("'", "''; DROP TABLE canary; --", "\\", "\\'; DROP TABLE canary; --", '"', "`", "/*", "$$", "%s", "{0}", "é'日")


def test_keys_and_names_get_nothing_into_statements(shop: Source) -> None:
    name = "o'r\"ders; DROP TABLE canary; --"
    quoted = name.replace('"', '""')
    shop.execute(f'CREATE TABLE "{quoted}" ("k\'""" text PRIMARY KEY, "v;--" text)')
    with psycopg.connect(shop.conninfo, autocommit=True) as conn:
        conn.cursor().executemany(f'INSERT INTO "{quoted}" VALUES (%s, %s)', [(key, key) for key in KEYS])
    for points in ("exact", "watermarks"):
        options = {"slot_name": f"s_{points}", "publication_name": f"p_{points}", "topic_prefix": points}
        given = {"incremental_snapshot_chunk_size": "1", "incremental_snapshot_read_points": points}
        query = query_of(shop, None, **given, **options)
        query.drain()
        condition = {"data-collection": ".*", "filter": '"v;--" IS NOT NULL OR "k\'""" = \'\'\';--\''}
        tables = [r"public\.o'r.ders; DROP TABLE canary; --"]
        signal(shop, "execute-snapshot", data_collections=tables, additional_conditions=[condition])
        rows = query.drain()
        query.stop()
        assert sorted(event["after"]["v;--"] for event in read_rows(rows, name)) == sorted(KEYS)
    untouched(shop)


def test_keys_and_names_get_nothing_into_statements_of_mysql_and_mariadb(
    binlog_shop: MysqlServer, tmp_path: Path
) -> None:
    name = "o'r`d\"ers; DROP TABLE canary; --"
    with binlog_shop.connect("attacks", autocommit=True, charset="utf8mb4") as conn, conn.cursor() as cursor:
        quoted = name.replace("`", "``")
        cursor.execute(f"CREATE TABLE `{quoted}` (`k'``` varchar(100) CHARACTER SET utf8mb4 PRIMARY KEY, `v;--` text)")
        for key in KEYS:
            cursor.execute(f"INSERT INTO `{quoted}` VALUES (%s, %s)", (key, key))
        options = {"table.include.list": r"attacks\.o'r.*", "incremental.snapshot.chunk.size": "1"}
        query = InProcess(binlog_options(binlog_shop, tmp_path, **options))
        query.drain()
        condition = {"data-collection": ".*", "filter": "`v;--` IS NOT NULL OR `k'``` = ''';--'"}
        data = {"data-collections": [r"attacks\.o'r.*"], "additional-conditions": [condition]}
        cursor.execute("INSERT INTO signals VALUES ('s', 'execute-snapshot', %s)", (json.dumps(data),))
        rows = query.drain()
        query.stop()
        assert sorted(event["after"]["v;--"] for event in read_rows(rows, name)) == sorted(KEYS)
        cursor.execute("SELECT n FROM canary")
        assert cursor.fetchall() == ((0,),)
