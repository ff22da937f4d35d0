"""Compressed transactions of real servers: flat memory, and the rows and positions that they have as a whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.mysql.reading import receiver
from tests.support.draining import Drained, drain_elsewhere
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer
from tests.support.patience import within

MEGABYTES = int(os.environ.get("FLOODMARK_COMPRESSED_MB", "120"))
"""How large the transaction is when it is decompressed."""
ROW_BYTES = 8000
SEGMENT_BYTES = 4 << 20
FLAVORS = ("mysql", "mariadb")


@contextmanager
def compressing(server: MysqlServer, on: bool) -> Iterator[list[str]]:
    """Yield what a session must say first, so that its transactions are compressed or not."""
    setting = "ON" if on else "OFF"
    if server.flavor == "mysql":
        yield [f"SET SESSION binlog_transaction_compression = {setting}"]
        return
    server.execute(f"SET GLOBAL log_bin_compress = {setting}")
    try:
        yield []
    finally:
        server.execute("SET GLOBAL log_bin_compress = OFF")


def options_of(server: MysqlServer, directory: Path) -> dict[str, str]:
    return {
        **server.options(),
        "topic.prefix": "p",
        "database.include.list": "packed",
        "state.dir": str(directory / "state"),
        "snapshot.mode": "no_data",
        "segment.bytes": str(SEGMENT_BYTES),
        "max.batch.bytes": str(16 << 20),
        "state.max.bytes": str(32 << 20),
    }


@pytest.fixture(params=FLAVORS)
def server(request: pytest.FixtureRequest) -> Iterator[MysqlServer]:
    found: MysqlServer = request.getfixturevalue(request.param)
    found.execute("CREATE DATABASE packed", "CREATE TABLE packed.t (id INT PRIMARY KEY, pad MEDIUMTEXT)")
    yield found
    found.execute("DROP DATABASE packed")


def begin(options: dict[str, str]) -> dict[str, Any]:
    """Return the offset of a query that has just begun."""
    query = InProcess(options)
    query.drain()
    query.stop()
    return query.offset


def insert(server: MysqlServer, on: bool, first: int, count: int, size: int) -> int:
    """Insert rows in one transaction; return how many bytes of binlog that makes."""
    with compressing(server, on) as said, server.connect("packed", autocommit=False) as session:
        before = log_bytes(server)
        with session.cursor() as cursor:
            for statement in said:
                cursor.execute(statement)
            for at in range(first, first + count, 1000):
                upto = min(at + 1000, first + count)
                numbers = ", ".join(f"({number}, REPEAT('x', {size}))" for number in range(at, upto))
                cursor.execute(f"INSERT INTO t VALUES {numbers}")
        session.commit()
        return log_bytes(server) - before


def log_bytes(server: MysqlServer) -> int:
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        return sum(int(row[1]) for row in cursor.fetchall())


def test_a_transaction_that_is_much_larger_than_its_log_takes_flat_memory(server: MysqlServer, tmp_path: Path) -> None:
    count = (MEGABYTES << 20) // ROW_BYTES
    options = options_of(server, tmp_path)
    offset = begin(options)
    insert(server, False, 0, count // 10, ROW_BYTES)
    plain = drain_elsewhere(options, offset)
    assert plain.rows == count // 10
    options["state.dir"] += "2"
    offset = begin(options)
    logged = insert(server, True, count, count, ROW_BYTES)
    assert logged < (MEGABYTES << 20) // 20
    packed: Drained = drain_elsewhere(options, offset)
    assert packed.rows == count
    assert packed.sorted
    # It spans several micro-batches, as one that came uncompressed does.
    assert packed.batches >= MEGABYTES // 25
    assert packed.peak_bytes < plain.peak_bytes + (48 << 20), (packed, plain)


def test_positions_are_those_of_the_whole(server: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = options_of(server, tmp_path)
    options["segment.bytes"] = str(256 << 10)
    offset = begin(options)
    insert(server, True, 0, 2000, 700)
    with compressing(server, True) as said, server.connect("packed", autocommit=False) as session:
        with session.cursor() as cursor:
            for statement in (*said, "UPDATE t SET pad = CONCAT(pad, 'y')", "DELETE FROM t WHERE id % 2 = 0"):
                cursor.execute(statement)
        session.commit()
    insert(server, False, 5000, 10, 100)

    def rows(whole: int) -> list[dict[str, Any]]:
        monkeypatch.setattr(receiver, "WHOLE_BYTES", whole)
        query = InProcess(options, offset)
        found = query.drain()
        query.stop()
        return [{**row, "value": without_times(row["value"])} for row in found]

    pieces = rows(1 << 16)
    assert pieces == rows(1 << 30)
    assert len(pieces) == 2000 + 2000 + 2 * 1000 + 10
    positions = [row["position"] for row in pieces]
    assert positions == sorted(set(positions))


def test_compressed_transactions_among_others(server: MysqlServer, tmp_path: Path) -> None:
    """In whatever order they are in a segment."""
    orders = list(product((True, False), repeat=3))
    for number, packed in enumerate(orders):
        options = options_of(server, tmp_path / str(number))
        offset = begin(options)
        first = 100 * number
        for place, one in enumerate(packed):
            insert(server, one, first + 10 * place, 10, 20_000)
        query = InProcess({**options, "errors.tables": "fail"}, offset)
        found = query.drain()
        query.stop()
        expected = [first + 10 * place + row for place in range(3) for row in range(10)]
        assert [json.loads(row["key"])["id"] for row in found] == expected, packed


def without_times(value: str | None) -> Any:
    found = None if value is None else json.loads(value)
    for name in ("ts_ms", "ts_us", "ts_ns"):
        if found is not None:
            found.pop(name, None)
    return found


def test_a_restart_after_each_micro_batch(server: MysqlServer, tmp_path: Path) -> None:
    options = {**options_of(server, tmp_path), "segment.bytes": str(64 << 10), "max.batch.bytes": str(128 << 10)}
    offset = begin(options)
    insert(server, True, 0, 250, 6000)
    ids: list[int] = []
    restarts = 0
    deadline = time.monotonic() + within(240)
    while len(ids) < 250:
        query = InProcess(options, offset)
        restarts += 1
        found: list[int] = []
        while not found:
            found = [json.loads(row["value"])["after"]["id"] for row in query.step()]
            assert time.monotonic() < deadline, "The rows did not come in time."
        ids += found
        offset = query.offset
        query.stop()
    assert ids == list(range(250))
    assert restarts > 5
