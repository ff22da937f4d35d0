"""Record Debezium's events of a case on MySQL or MariaDB."""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pymysql.cursors import Cursor

from tests.conformance.cases import Case
from tests.conformance.debezium.debezium import Debezium, DebeziumError, Record, mysql_options, schemas
from tests.conformance.golden import PREFIX
from tests.support.mysql import Flavor, MysqlServer

SYNC = "floodmark_sync"
MARK = f"{SYNC}.mark"
TIMEOUT_S = 60.0
JVM = ("-Duser.timezone=UTC", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
FILTERS = {"database.include.list": SYNC, "table.include.list": MARK, "column.include.list": rf"{SYNC}\.mark\..*"}
"""What filters must let through beside what a case wants."""


def record_all(cases: Sequence[Case]) -> Iterator[tuple[Case, list[Record]]]:
    """Yield Debezium's records of each case."""
    for (connector, settings), group in itertools.groupby(sorted(cases, key=_server), key=_server):
        flavor: Flavor = "mariadb" if connector == "mariadb" else "mysql"
        with MysqlServer(flavor, **dict(settings)) as server:
            for case in group:
                yield case, record(server, case)


def record(server: MysqlServer, case: Case) -> list[Record]:
    """Run a case in a database of its own and return Debezium's records."""
    with server.connect() as session, session.cursor() as cursor, tempfile.TemporaryDirectory() as scratch:
        for statement in (f"CREATE DATABASE `{case.name}`", f"USE `{case.name}`", *case.setup):
            cursor.execute(statement)
        cursor.execute(f"CREATE DATABASE {SYNC}")
        with Debezium(_options(server, case), Path(scratch) / "records.jsonl", jvm_args=JVM) as run:
            wait_for_stream(cursor, run)
            cursor.execute(f"CREATE TABLE {MARK} (id int PRIMARY KEY, text varchar(80))")
            catch_up(cursor, run, "streaming")
            for statement in case.statements:
                cursor.execute(statement)
            catch_up(cursor, run, "end")
            records = run.records()
        cursor.execute(f"DROP DATABASE {SYNC}")
        cursor.execute(f"DROP DATABASE IF EXISTS `{case.name}`")
    return without_marks(records)


def without_marks(records: list[Record]) -> list[Record]:
    """Leave out what the marks caused: their rows, their table's DDL, and what is told of their transactions."""
    marks = [one for one in records if SYNC in f"{one.topic} {one.key} {one.value}"]
    ids = {(_payload(one.value).get("transaction") or {}).get("id") for one in marks} - {None}
    # MariaDB's DDL begins a transaction that says nothing else; the marks' table is the first that is streamed.
    first = next(place for place, one in enumerate(records) if MARK in one.topic or f"{SYNC} " in (one.value or ""))
    ids |= {_payload(one.value)["id"] for one in records[:first] if "status" in _payload(one.value)}
    return [one for one in records if one not in marks and _payload(one.key).get("id") not in ids]


def _payload(text: str | None) -> dict[str, Any]:
    value = json.loads(text or "null")
    payload = value.get("payload", value) if isinstance(value, dict) else value
    # Transforms make keys and values that are no objects.
    return payload if isinstance(payload, dict) else {}


def wait_for_stream(cursor: Cursor, debezium: Debezium) -> None:
    """Wait until Debezium reads the binlog: what is written from then on is streamed."""
    query = "SELECT 1 FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%' AND id > CONNECTION_ID()"
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and not debezium.failed:
        if cursor.execute(query):
            return
        time.sleep(0.05)
    raise DebeziumError(f"Debezium does not stream:\n{debezium.log_text()[-4000:]}")


def catch_up(cursor: Cursor, debezium: Debezium, mark: str) -> None:
    """Wait until Debezium has delivered everything that is committed so far.

    The row is inserted, changed and deleted, so that one event comes whichever operations are skipped.
    """
    cursor.execute("COMMIT")
    cursor.execute("BEGIN")
    cursor.execute(f"INSERT INTO {MARK} VALUES (1, '{SYNC} {mark}')")
    cursor.execute(f"UPDATE {MARK} SET id = 2")
    cursor.execute(f"DELETE FROM {MARK}")
    cursor.execute("COMMIT")
    debezium.wait_for(f"{SYNC} {mark}", TIMEOUT_S)


def _options(server: MysqlServer, case: Case) -> dict[str, str]:
    chosen = {"database.include.list": case.name, **case.options, **case.reference}
    filters = {name: f"{chosen[name]},{own}" for name, own in FILTERS.items() if name in chosen}
    return {
        **mysql_options(server),
        **schemas(case.schemas),
        "topic.prefix": PREFIX,
        "poll.interval.ms": "20",
        **chosen,
        **filters,
    }


def _server(case: Case) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what a case wants of its server."""
    return case.connector, tuple(sorted((name, value) for name, value in case.settings.items()))
