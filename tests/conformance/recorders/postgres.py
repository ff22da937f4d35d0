"""Record Debezium's events of a case on PostgreSQL."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conformance.cases import DDL, Case
from tests.conformance.debezium.debezium import Debezium, Record, postgres_options, schemas
from tests.conformance.golden import PREFIX
from tests.support.contrib import contrib_server

SYNC = "floodmark.sync"
TIMEOUT_S = 60.0


def record_all(cases: Sequence[Case]) -> Iterator[tuple[Case, list[Record]]]:
    """Yield Debezium's records of each case."""
    settings = {"timezone": "UTC"}
    if plain := [case for case in cases if not case.extensions]:
        with EmbeddedPostgres(18, settings) as server:
            for case in plain:
                yield case, record(server, case)
    if extended := [case for case in cases if case.extensions]:
        with contrib_server(18, settings) as server:
            for case in extended:
                yield case, record(server, case)


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
            **case.reference,
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
    marks = [place for place, one in enumerate(records) if one.key is not None and f'"prefix":"{SYNC} ' in one.key]
    ids = tuple(_transaction(records, place) for place in marks)
    others = [one for place, one in enumerate(records) if place not in marks]
    return [one for one in others if not any(mark in (one.key or "") for mark in ids)]


def _transaction(records: list[Record], place: int) -> str:
    """Return what a key in the transaction topic has of the transaction of a message, which is its only event."""
    value = records[place].value
    if value is not None:
        return f'"id":"{_payload(value)["source"]["txId"]}:'
    # CloudEvents have no values of messages, and of transactions only keys; if they are asked for.
    before = records[place - 1]
    return f"{str(before.key).rpartition(':')[0]}:" if before.topic.endswith("transaction") else SYNC


def _payload(text: str | None) -> dict[str, Any]:
    value = json.loads(text or "null")
    payload: dict[str, Any] = value.get("payload", value)
    return payload


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
