"""Filtered, masked and converted columns in snapshots, streams, typed rows and batch reads."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from floodmark.connectors.postgres.checks.server import check_source
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.errors import ConfigError
from tests.conftest import Source
from tests.integration.test_incremental import SIGNALS, query_of, signal
from tests.support.batch import batch_options, fails, load
from tests.support.example import install
from tests.support.inprocess import InProcess

EXAMPLE = Path(__file__).parents[2] / "examples" / "converter"


def drained(source: Source, options: dict[str, str], *statements: str) -> list[dict[str, Any]]:
    """Return the rows of a snapshot, and of the log of some statements."""
    query = InProcess({**source.options, **options})
    rows = query.drain()
    source.execute(*statements)
    rows += query.drain()
    query.stop()
    return rows


@pytest.mark.parametrize("points", ["exact", "watermarks"])
def test_an_incremental_snapshot_without_the_keys_column(source: Source, points: str) -> None:
    source.execute(
        SIGNALS,
        "CREATE TABLE t (id integer, part text, v text, secret text, PRIMARY KEY (id, part))",
        "INSERT INTO t SELECT g, 'p', 'v' || g, 's' FROM generate_series(1, 3000) g",
    )
    query = query_of(
        source,
        column_exclude_list=r"public\.t\.(id|part|secret)",
        message_key_columns=r"public\.t:v",
        incremental_snapshot_read_points=points,
    )
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    source.execute("UPDATE t SET v = 'new' WHERE id = 5", "DELETE FROM t WHERE id = 6")
    rows = [row for row in query.drain() if row["table"] == "t"]
    query.stop()
    state: dict[str, Any] = {}
    for row in rows:
        value = json.loads(row["value"]) if row["value"] else None
        if value is None or value["after"] is None:
            continue
        assert list(value["after"]) == ["v"]
        state[row["key"]] = value["after"]["v"]
    assert {value for key, value in state.items()} >= {f"v{g}" for g in range(1, 3001) if g not in (5, 6)} | {"new"}
    assert json.dumps({"v": "new"}, separators=(",", ":")) in state


def test_the_key_stays_without_its_columns(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, a text, secret text)",
        "INSERT INTO t VALUES (1, 'a', 's')",
    )
    rows = drained(source, {"column.include.list": r"public\.t\.a"}, "UPDATE t SET secret = 'other'")
    assert [(row["op"], json.loads(row["value"])["after"], row["key"]) for row in rows] == [
        ("r", {"a": "a"}, '{"id":1}'),
        ("u", {"a": "a"}, '{"id":1}'),
    ]


def test_a_statement_of_its_own_need_not_return_what_is_left_out(source: Source) -> None:
    source.execute("CREATE TABLE t (id integer PRIMARY KEY, a text, b text)", "INSERT INTO t VALUES (1, 'a', 'b')")
    overrides = "snapshot.select.statement.overrides"
    options = {
        "column.exclude.list": r"public\.t\.(id|b)",
        overrides: "public.t",
        f"{overrides}.public.t": "SELECT a || '!' AS a, id FROM t",
    }
    rows = drained(source, options)
    assert [(row["key"], json.loads(row["value"])["after"]) for row in rows] == [('{"id":1}', {"a": "a!"})]


ROWS_OPTIONS = {
    "column.exclude.list": r".*\.secret",
    "column.mask.with.3.chars": r".*\.m",
    "column.mask.hash.v2.SHA-256.with.salt.A": r".*\.h",
    "column.truncate.to.2.chars": r".*\.c",
}


def test_typed_rows_hide_the_same(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, m text, h varchar(8), c text, secret text)",
        "INSERT INTO t VALUES (1, 'm', 'h', 'cut', 's')",
    )
    rows = drained(source, {**ROWS_OPTIONS, "format": "rows"}, "INSERT INTO t VALUES (2, NULL, NULL, NULL, NULL)")
    assert [row["after"] for row in rows] == [
        {"id": 1, "m": "***", "h": "a604d856", "c": "cu"},
        {"id": 2, "m": "***", "h": None, "c": None},
    ]


def test_too_many_tables(source: Source) -> None:
    source.execute("CREATE TABLE a (id integer PRIMARY KEY)", "CREATE TABLE b (id integer PRIMARY KEY)")
    limit = {**source.options, "guardrail.collections.max": "1"}
    assert drained(source, {"guardrail.collections.max": "1"}) == []
    with pytest.raises(ConfigError, match=r"2 tables are captured, but 'guardrail\.collections\.max' is 1"):
        InProcess({**limit, "guardrail.collections.limit.action": "fail"}).drain()
    for action, status in (("warn", "warning"), ("fail", "error")):
        found = check_source(PostgresOptions.parse({**limit, "guardrail.collections.limit.action": action}))
        assert [finding.status for finding in found if "guardrail" in finding.finding] == [status]


def test_replica_identities_are_set_at_the_start(source: Source) -> None:
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, b integer NOT NULL UNIQUE)",
        "CREATE TABLE b (id integer PRIMARY KEY)",
        "ALTER TABLE b REPLICA IDENTITY FULL",
        "CREATE TABLE c (id integer PRIMARY KEY)",
    )
    values = "public.a:index a_b_key, PUBLIC.b:default ,public.c:INDEX none"
    drained(source, {"replica.identity.autoset.values": values})
    with psycopg.connect(source.conninfo) as conn:
        found = conn.execute("SELECT relname, relreplident FROM pg_class WHERE relname IN ('a', 'b', 'c')").fetchall()
    assert dict(found) == {"a": "i", "b": "d", "c": "d"}
    with pytest.raises(ConfigError, match=r"match the table public.a: public.a, public\\.."):
        InProcess({**source.options, "replica.identity.autoset.values": r"public.a:FULL,public\..:FULL"}).drain()


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example package and return the directory that holds it."""
    return install(EXAMPLE, tmp_path_factory.mktemp("example"))


@pytest.fixture
def installed(example: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(example))
    yield
    sys.modules.pop("floodmark_example_converter", None)


CONVERTERS = {
    "converters": "mail,money",
    "mail.type": "domains",
    "mail.columns": r".*\.mail",
    "money.type": "cents",
    "money.columns": r".*\.(price|wide)",
}


@pytest.mark.usefixtures("installed")
def test_the_example_converters(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, mail text NOT NULL, price numeric(10,2), wide numeric)",
        "INSERT INTO t VALUES (1, 'ann@example.org', 12.34, 1)",
    )
    options = {**CONVERTERS, "schemas.enable": "true"}
    rows = drained(source, options, "INSERT INTO t VALUES (2, 'bob@example.com', NULL, NULL)", "DELETE FROM t")
    events = [json.loads(row["value"]) for row in rows if row["value"]]
    payloads = [event["payload"] for event in events]
    shown = [
        (one["op"], (one["after"] or one["before"])["mail"], (one["after"] or one["before"])["price"])
        for one in payloads
    ]
    assert shown == [("r", "example.org", 1234), ("c", "example.com", None), ("d", "", None), ("d", "", None)]
    fields = {field["field"]: field for field in events[0]["schema"]["fields"][1]["fields"]}
    assert fields["mail"] == {
        "type": "string",
        "optional": False,
        "name": "example.Domain",
        "version": 1,
        "field": "mail",
    }
    assert fields["price"] == {"type": "int64", "optional": True, "parameters": {"unit": "cent"}, "field": "price"}
    assert fields["wide"]["name"] == "io.debezium.data.VariableScaleDecimal"


@pytest.mark.usefixtures("installed")
def test_converters_in_typed_rows(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, mail text, price numeric(10,2))",
        "INSERT INTO t VALUES (1, 'ann@example.org', 12.34)",
    )
    rows = drained(source, {**CONVERTERS, "format": "rows"})
    assert [row["after"] for row in rows] == [{"id": 1, "mail": "example.org", "price": 1234}]


@pytest.mark.usefixtures("installed")
def test_wrong_converters(source: Source) -> None:
    def fails(**given: str) -> str:
        with pytest.raises(ConfigError) as caught:
            InProcess({**source.options, **CONVERTERS, **given}).drain()
        return str(caught.value)

    assert "Option 'mail.type' has the value 'domain'" in fails(**{"mail.type": "domain"})
    checked = {**source.options, **CONVERTERS}
    for wanted, status in (("domains", "ok"), ("domain", "error")):
        found = check_source(PostgresOptions.parse({**checked, "mail.type": wanted}))
        assert [one.status for one in found if one.check == "converters"] == [status]
    assert "The converter 'mail' refuses its options" in fails(**{"mail.columns": "("})


def test_what_options_of_columns_would_not_do(source: Source) -> None:
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, a text, b uuid)",
        "CREATE TABLE u (id integer PRIMARY KEY, a text)",
        "ALTER TABLE u REPLICA IDENTITY FULL",
    )

    def told(**given: str) -> list[tuple[str, str]]:
        named = {name.replace("_", "."): value for name, value in given.items()}
        found = check_source(PostgresOptions.parse({**source.options, **named}))
        return [(one.status, one.finding) for one in found if one.check == "columns"]

    assert told() == []
    assert told(column_exclude_list=".*a", message_key_columns="public.u:a") == [
        ("ok", "all options of columns match some")
    ]
    assert told(column_exclude_list="public.t.x,public.t.a", message_key_columns="public.t:a,b;v:c") == [
        ("warning", "No captured column matches public.t.x of column.exclude.list."),
        ("warning", "No captured column matches v.c of message.key.columns."),
        ("warning", "Deletes from public.t do not hold a, b of its message.key.columns."),
    ]
    masks = {"column.mask.with.3.chars": ".*", "column.exclude.list": ".*id"}
    found = check_source(PostgresOptions.parse({**source.options, **masks}))
    text = "Masks are for text alone, so the values of public.t.b are not hidden."
    assert [one.finding for one in found if one.check == "columns"] == [text]


def test_an_incremental_snapshot_by_the_key_of_the_events(source: Source) -> None:
    source.execute(
        SIGNALS,
        "CREATE TABLE t (a integer, v text)",
        "INSERT INTO t SELECT g / 7, 'v' || g FROM generate_series(1, 5000) g",
        "INSERT INTO t VALUES (NULL, 'none'), (NULL, 'neither')",
    )
    query = query_of(source, message_key_columns=r"public\.t:a")
    query.drain()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = [row for row in query.drain() if row["op"] == "r"]
    query.stop()
    values = sorted(json.loads(row["value"])["after"]["v"] for row in rows)
    assert values == sorted([*(f"v{g}" for g in range(1, 5001)), "none", "neither"])
    assert {row["key"] for row in rows} == {*(f'{{"a":{g}}}' for g in range(5000 // 7 + 1)), '{"a":null}'}


def test_options_pass_through_spark(source: Source, spark: SparkSession) -> None:
    """Spark drops the case of option names: no option may need it."""
    source.execute(
        "CREATE TABLE t (id integer PRIMARY KEY, m text, h varchar(8), c text, secret text)",
        "INSERT INTO t VALUES (1, 'm', 'h', 'cut', 's')",
    )
    options = {**ROWS_OPTIONS, "table.include.list": "public.t"}
    literal = "column.mask.hash.v2.SHA-256.with.salt.A"
    fails(lambda: load(spark, {**batch_options(source), **options}), ConfigError, "column.mask.salt.<name>")
    named = {name: value for name, value in options.items() if name != literal}
    named |= {"column.mask.hash.v2.SHA-256.with.salt.main": options[literal], "column.mask.salt.main": "A"}
    (row,) = load(spark, {**batch_options(source), **named}).collect()
    assert row.asDict() == {"id": 1, "m": "***", "h": "a604d856", "c": "cu"}
