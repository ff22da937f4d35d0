"""Binlog events of real servers, mutated and decoded: a clear error or the right events; never a hang or a crash.

What was received has passed its checksum, so a mutated segment stands for a server that writes what it should not. Only
the events of what was mutated may differ, and what depends on it: rows on their table, a payload on itself.
``FLOODMARK_FUZZ_INPUTS`` sets how many inputs there are.
"""

from __future__ import annotations

import os
import random
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from floodmark.capture.retry import RetryPolicy
from floodmark.capture.segment import SegmentData
from floodmark.capture.store import SegmentStore
from floodmark.capture.thread import Capture
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest, TableFailure
from floodmark.connectors.executor_side import LogDecoder
from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.binlog import event_types as types
from floodmark.connectors.mysql.binlog.compressed import payload_events
from floodmark.connectors.mysql.binlog.segments import event_at, places
from floodmark.connectors.mysql.binlog.table_map import table_name
from floodmark.connectors.mysql.decode.tables import TABLE_ID_BYTES
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.registry import connector_module
from floodmark.errors import FloodmarkError
from floodmark.spark.stream.readers import make_decoder, output_schema
from tests.support.mysql import MysqlServer
from tests.support.patience import within

INPUTS = max(int(os.environ.get("FLOODMARK_FUZZ_INPUTS", "3000")) // 10, 1)
SEED = int(os.environ.get("FLOODMARK_FUZZ_SEED", "1"))
SLOWEST_S = within(10.0)
MEMORY_KB = 600 << 10
DATABASE = "fuzzed"
SPECIAL = (0, 1, 2, 0x10, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)

Output = dict[str, dict[str, Any]]

TABLES = (
    "CREATE TABLE plain (id int PRIMARY KEY, v bigint unsigned, d decimal(20, 5), t varchar(300), b blob)",
    """CREATE TABLE kinds (id int PRIMARY KEY, f float, g double, y year, e enum('a', 'b'), s set('x', 'y', 'z'),
       u datetime(6), w timestamp(3) NULL, x time(2), k bit(17), c char(10) CHARACTER SET latin1, m mediumtext)""",
    "CREATE TABLE docs (id int PRIMARY KEY, j json, p point)",
    "CREATE TABLE bare (a int, b varchar(20))",
)
CHANGES = (
    "INSERT INTO plain VALUES (1, 2, 3.5, 'one', x'00ff'), (2, NULL, NULL, REPEAT('z', 280), NULL), (3, 4, 5, '', '')",
    "INSERT INTO kinds VALUES (1, 1.5, 2.25, 2024, 'b', 'x,z', '2024-05-06 07:08:09.123456', "
    "'2024-01-02 03:04:05.678', '-11:22:33.44', b'10101', 'é', 'long')",
    "INSERT INTO kinds VALUES (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    """INSERT INTO docs VALUES (1, '{"a": [1, 2.5, "x", null, true], "b": {"c": "text"}}', POINT(1, 2)),
       (2, NULL, NULL)""",
    "INSERT INTO bare VALUES (1, 'x'), (2, NULL)",
    "UPDATE plain SET v = v + 1, t = CONCAT(t, '!') WHERE id < 3",
    "UPDATE docs SET j = JSON_SET(j, '$.b.c', 'xt') WHERE id = 1",
    "UPDATE kinds SET e = 'a', x = '01:02:03' WHERE id = 1",
    "DELETE FROM plain WHERE id = 2",
    "UPDATE bare SET a = a + 1",
    "TRUNCATE TABLE bare",
)
SETTINGS = {
    "mysql": (
        (),
        ("binlog_row_image = 'minimal'", "binlog_row_value_options = 'PARTIAL_JSON'"),
        ("binlog_transaction_compression = ON", "binlog_rows_query_log_events = ON"),
    ),
    "mariadb": (
        (),
        ("binlog_row_image = 'minimal'", "binlog_annotate_row_events = ON"),
        ("binlog_row_image = 'noblob'",),
    ),
}


@dataclass(frozen=True)
class Base:
    """An intact segment, and what it is decoded into.

    Attributes:
        output: as ``decoded`` returns it.
    """

    data: SegmentData
    after: str
    upto: str
    output: Output


def record(server: MysqlServer, options: dict[str, str]) -> list[Base]:
    """Return a segment for each way in which the server writes changes."""
    parsed = load_options(options)
    module = connector_module(parsed.connector, "connector")
    decoder = make_decoder(parsed, output_schema(parsed))
    result = []
    for number, settings in enumerate(SETTINGS[server.flavor]):
        source = module.make_source(parsed)
        store = SegmentStore(parsed.state_dir, f"fuzz{number}", "run")
        store.create()
        start, _ = source.log.create(False)
        with server.connect(DATABASE) as session, session.cursor() as cursor:
            for statement in (*(f"SET SESSION {setting}" for setting in settings), *CHANGES):
                cursor.execute(statement)
            for table in ("plain", "kinds", "docs"):
                cursor.execute(f"DELETE FROM {table}")
        capture = Capture(source.log.open_stream, store, 1 << 30, RetryPolicy(0, 1, 1))
        target = source.log.end()
        capture.start(start)
        while capture.idle_position(start) < target:
            capture.wait(capture.end(start), 0.2)
        for segment in capture.segments(start):
            data = store.read(segment.name)
            output, failed = decoded(decoder, data, segment.after, segment.upto)
            assert not failed
            result.append(Base(data, segment.after, segment.upto, output))
        capture.stop()
        source.close()
    return result


def decoded(decoder: LogDecoder, data: SegmentData, after: str, upto: str) -> tuple[Output, list[TableFailure]]:
    """Return the events by their position, and the tables that failed."""
    failed: list[TableFailure] = []
    rows = [
        row
        for batch in decoder.decode(DecodeRequest(data, after, upto), DecodeProblems(failed))
        for row in batch.to_pylist()
    ]
    output = {row["position"]: row | {"ts_ms": None, "value": untimed(row["value"])} for row in rows}
    assert len(output) == len(rows)
    return output, failed


def untimed(value: str | None) -> str | None:
    """Return an envelope without the time at which it was made."""
    return None if value is None else value.rpartition(',"ts_ms"')[0]


def mutate(chance: random.Random, base: Base, event: int) -> SegmentData:
    """Return the segment with some bytes of one event's body changed."""
    payload = base.data.payload.copy()
    start = int(base.data.starts[event]) + types.AT_BODY
    end = int(base.data.starts[event + 1]) if event + 1 < len(base.data.starts) else len(payload)
    for _ in range(chance.choice((1, 1, 2, 5))):
        # Most of the structure is in the first bytes.
        at = start + min(chance.randrange(end - start), chance.choice((8, 20, 60, 1 << 30)))
        change = chance.randrange(3)
        if change == 0:
            payload[at] = chance.choice(SPECIAL)
        elif change == 1:
            payload[at] ^= 1 << chance.randrange(8)
        else:
            payload[at:end] = np.roll(payload[at:end], chance.choice((-1, 1, 2)))
    return SegmentData(payload, base.data.starts, base.data.header)


def table_maps(kind: int, event: bytes) -> list[bytes]:
    """Return the TABLE_MAP events that an event is, or holds."""
    if kind == types.TABLE_MAP:
        return [event]
    if kind != types.TRANSACTION_PAYLOAD:
        return []
    plain, starts = payload_events(event[types.HEADER_BYTES :])
    inner = [one.tobytes() for one in np.split(plain, starts[1:])]
    return [one for one in inner if one[types.TYPE] == types.TABLE_MAP]


def may_differ(base: Base, event: int, changed: SegmentData) -> Callable[[Position, str], bool]:
    """Return what tells whether the output at a position, of a table, may be another if an event is changed."""
    starts = base.data.starts.astype(np.int64)
    kinds = base.data.payload[starts + types.AT_TYPE].tolist()
    place = places(base.data)
    offsets = place.offset.tolist()
    if kinds[event] in types.ROWS:
        return lambda position, _: position.event == offsets[event]
    begun = [offset for kind, offset in zip(kinds[: event + 1], offsets, strict=False) if kind in types.GTIDS]
    # Rows name their table by a number, of which the first event that says what it means is believed.
    now, was = (
        table_maps(kinds[event], event_at(data.payload, int(starts[event]), int(place.checksum[event])))
        for data in (changed, base.data)
    )
    known = {int(entry["table_id"]): f"{entry['database']}.{entry['table']}" for entry in base.data.header["tables"]}
    numbers = [int.from_bytes(one[types.HEADER_BYTES :][:TABLE_ID_BYTES], "little") for one in now]
    tables = {known.get(number) for number in numbers} | {".".join(table_name(one)[1:]) for one in was}
    if kinds[event] == types.TABLE_MAP:
        return lambda _, table: table in tables
    return lambda position, table: table in tables or not begun or position.transaction == begun[-1]


@pytest.mark.timeout(max(300, INPUTS // 5))
def test_mutated_events(binlog_server: MysqlServer, tmp_path: Path) -> None:
    server = binlog_server
    server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}")
    server.execute(*TABLES, database=DATABASE)
    options = {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(tmp_path),
        "database.include.list": DATABASE,
        "skipped.operations": "none",
        "include.query": "true",
    }
    bases = record(server, options)
    parsed = load_options(options)
    decoder = make_decoder(parsed, output_schema(parsed))
    chance = random.Random(f"{SEED} {server.flavor}")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = {"equal": 0, "other": 0, "failed": 0, "error": 0}
    for number in range(INPUTS):
        base = chance.choice(bases)
        event = chance.randrange(len(base.data.starts))
        changed = mutate(chance, base, event)
        begun = time.monotonic()
        try:
            output, failed = decoded(decoder, changed, base.after, base.upto)
        except FloodmarkError:
            ended["error"] += 1
            continue
        finally:
            assert time.monotonic() - begun < SLOWEST_S, (number, event)
        ended["failed" if failed else "equal" if output == base.output else "other"] += 1
        touched = may_differ(base, event, changed)
        gone = {failure.table for failure in failed}
        for position, row in base.output.items():
            name = f"{row['database']}.{row['table']}"
            if not touched(Position.parse(position.rpartition("-")[0]), name) and name not in gone:
                assert output.get(position) == row, (number, event, position)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_KB
    assert all(ended.values()), ended
