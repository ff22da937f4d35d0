"""Record the conformance cases' events from Debezium.

``python -m tests.conformance.record_goldens [CASE ...]``
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from floodmark.embedded import EmbeddedPostgres
from tests.conformance.cases import CASES, DDL, Case
from tests.conformance.debezium.debezium import Debezium, Record, postgres_options, schemas
from tests.conformance.golden import Golden, settled
from tests.support.contrib import contrib_server

GOLDENS = Path(__file__).with_name("goldens")
PREFIX = "golden"
SYNC = "floodmark.sync"
TIMEOUT_S = 60.0
RUN_HEADERS = "__debezium.context."


def main(arguments: Sequence[str] | None = None) -> None:
    """Record the goldens of the named cases, of all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(case.name for case in CASES))
    parser.add_argument("--version", type=int, default=18, help="PostgreSQL's major version")
    parsed = parser.parse_args(arguments)
    chosen = [case for case in CASES if not parsed.cases or case.name in parsed.cases]
    settings = {"timezone": "UTC"}
    if plain := [case for case in chosen if not case.extensions]:
        with EmbeddedPostgres(parsed.version, settings) as server:
            record_all(server, plain)
    if extended := [case for case in chosen if case.extensions]:
        with contrib_server(parsed.version, settings) as server:
            record_all(server, extended)


def record_all(server: EmbeddedPostgres, cases: Sequence[Case]) -> None:
    """Record cases and write their goldens."""
    for case in cases:
        records = record(server, case)
        save(case, records)
        print(f"{case.name}: {len(records)} records", flush=True)


def record(server: EmbeddedPostgres, case: Case) -> list[Record]:
    """Run a case in a database of its own and return Debezium's records."""
    with psycopg.connect(server.conninfo(), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(case.name)))
    with psycopg.connect(server.conninfo(case.name), autocommit=True) as connection:
        for statement in case.setup:
            connection.execute(statement.encode())
        options = {
            **postgres_options("127.0.0.1", server.port, server.user, case.name),
            **schemas(case.schemas),
            "topic.prefix": PREFIX,
            "slot.name": case.name,
            "publication.name": case.name,
            "poll.interval.ms": "20",
            **case.options,
        }
        with tempfile.TemporaryDirectory() as scratch:
            output = Path(scratch) / "records.jsonl"
            with Debezium(options, output, jvm_args=("-Duser.timezone=UTC",)) as debezium:
                wait_for_slot(connection, case.name)
                catch_up(connection, debezium, "streaming")
                for number, statement in enumerate(case.statements):
                    if statement.startswith(DDL):
                        catch_up(connection, debezium, f"before {number}")
                    connection.execute(statement.encode())
                catch_up(connection, debezium, "end")
                records = debezium.records()
        connection.execute("SELECT pg_drop_replication_slot(%s)", [case.name])
    return without_marks(records)


def without_marks(records: list[Record]) -> list[Record]:
    """Leave out what ``catch_up`` caused: its messages, and what the transaction topic says of their transactions."""
    marks = [one for one in records if one.key is not None and f'"prefix":"{SYNC} ' in one.key]
    ids = tuple(f'"id":"{_payload(one.value)["source"]["txId"]}:' for one in marks)
    return [one for one in records if one not in marks and not any(mark in (one.key or "") for mark in ids)]


def _payload(text: str | None) -> dict[str, Any]:
    value = json.loads(text or "null")
    payload: dict[str, Any] = value.get("payload", value)
    return payload


def save(case: Case, records: list[Record]) -> None:
    """Write a case's records, without the headers that only name the run."""
    lines = []
    for one in settled([Golden(one.topic, one.key, one.value, one.headers) for one in records]):
        headers = {name: value for name, value in one.headers.items() if not name.startswith(RUN_HEADERS)}
        golden = {"topic": one.topic, "key": one.key, "value": one.value, "headers": headers}
        lines.append(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n")
    GOLDENS.mkdir(exist_ok=True)
    (GOLDENS / f"{case.name}.jsonl").write_text("".join(lines), encoding="utf-8")


def wait_for_slot(connection: psycopg.Connection[tuple[object, ...]], slot: str) -> None:
    """Wait until the slot has a position: everything written from then on is streamed."""
    query = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s"
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        row = connection.execute(query, [slot]).fetchone()
        if row is not None and row[0] is not None:
            return
        time.sleep(0.02)
    raise TimeoutError(f"slot {slot} was not created")


def catch_up(connection: psycopg.Connection[tuple[object, ...]], debezium: Debezium, mark: str) -> None:
    """Wait until Debezium has delivered everything that is committed so far."""
    prefix = f"{SYNC} {mark}"
    connection.execute("SELECT pg_logical_emit_message(true, %s, '')", [prefix])
    debezium.wait_for(f'"prefix":"{prefix}"', TIMEOUT_S)


if __name__ == "__main__":
    main()
