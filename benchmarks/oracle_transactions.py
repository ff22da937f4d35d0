"""Keep rows of open transactions of Oracle until they are committed: 10,000 transactions at once, and a large one.

No server: the rows of LogMiner's view are made here as Arrow tables, as they come from the driver, since the stand-in's
SQL would be the bottleneck. They are sorted into transactions, spooled, and cut into segments, as the capture thread
does it. Making them isn't counted. Each leg has a process of its own.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.common import Leg, Result, Scale
from floodmark.capture.segment import SegmentData
from floodmark.capture.spool_files import SpoolFiles
from floodmark.connectors.oracle.capture.cutting import Cutter
from floodmark.connectors.oracle.decode.segment import Part
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.spooling.spooled_rows import SpooledRows
from floodmark.connectors.oracle.mining.transactions import Committed, OpenTransactions
from floodmark.connectors.oracle.mining.view import ROWS
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.structures.table import Table

Numbers = NDArray[np.int64]

OPEN = 10_000
FETCH = 10_000
"""How many rows come at once, as ``query.fetch.size`` has it."""
CHANGES_EACH = 100
"""Of each of the many transactions."""
SEGMENT_BYTES = 16 << 20
_STATEMENT = (
    """update "SHOP"."CUSTOMERS" set "SCORE" = '17.5', "NOTE" = 'a note of some length' """
    """where "ID" = '{}' and "NAME" = 'customer 17' and "SCORE" = '16.5' and "NOTE" = 'a note of some length';"""
)
_TABLES: dict[str, Table] = {}
"""Structures go into segments as they are; a change of them would begin another segment."""
_TEXTS = {"TABLE_NAME": "CUSTOMERS", "SEG_OWNER": "SHOP", "OPERATION": "UPDATE", "USERNAME": "SHOP"}


def run(scale: Scale) -> Result:
    """Take many small transactions that are open at once, and two large ones, of which one is ten times the other."""
    result = Result("oracle_transactions", scale.name, "no server")
    # They begin and end while others are open, so there are more of them.
    rounds = scale.transaction_rows // OPEN
    result.legs.append(_apart("10,000 open", "many", rounds))
    large = scale.transaction_rows
    for rows in (large // 10, large):
        result.legs.append(_apart(f"one of {rows:,}", "one", rows // FETCH))
    result.notes.append(
        f"10,000 transactions of {CHANGES_EACH} changes are open at any time, of which one row follows the other; "
        f"rows are fetched {FETCH:,} at a time"
    )
    return result


def _apart(name: str, kind: str, rounds: int) -> Leg:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return Leg(name, pool.apply(_measured, (kind, rounds)))


def _measured(kind: str, rounds: int) -> dict[str, float | int | str | None]:
    fetches = _many(rounds) if kind == "many" else _one(rounds)
    with tempfile.TemporaryDirectory() as directory:
        files = SpoolFiles(directory, "owner")
        store = SpooledRows(files, ROWS)
        transactions, cutter = OpenTransactions(store), Cutter("", SEGMENT_BYTES, lambda _: [])
        seconds = cpu_s = 0.0
        taken = delivered = disk = 0
        # Imports, and what is made of rows to begin with, are the same for all.
        before = _peak_bytes()
        for rows in fetches:
            begun, cpu_begun = time.perf_counter(), time.process_time()
            delivered += sum(map(_changes, _segments(transactions, cutter, rows)))
            store.tidy()
            seconds += time.perf_counter() - begun
            cpu_s += time.process_time() - cpu_begun
            taken += int(np.isin(rows["OPERATION_CODE"].to_numpy(), [int(Operation.UPDATE)]).sum())
            disk = max(disk, files.held_bytes)
        while (cut := cutter.cut(force=True)) is not None:
            delivered += _changes(cut.data)
        if delivered != taken:
            raise RuntimeError(f"{delivered} changes were delivered of {taken}")
        if files.held_bytes:
            raise RuntimeError(f"{files.held_bytes} bytes are left of transactions that have ended")
    return {
        "changes": delivered,
        "changes/s": delivered / seconds,
        "CPU s": cpu_s,
        "MB before": before / 2**20,
        "peak MB": _peak_bytes() / 2**20,
        "disk MB": disk / 2**20,
    }


def _changes(data: SegmentData) -> int:
    return sum(int(one[-1]) for one in data.header["transactions"])


def _segments(transactions: OpenTransactions, cutter: Cutter, rows: pa.Table) -> Iterator[SegmentData]:
    """Yield the segments that rows make full."""
    for found in transactions.add(rows):
        assert isinstance(found, Committed)
        place, done = Position(found.commit["SCN"][0].as_py(), 1, found.xid.upper()), 0
        for number, piece in enumerate(found.changes):
            ends = number == len(found.changes) - 1
            cutter.add(Part(place, 0, found.start_scn, 0, done, len(piece), ends), piece, _TABLES)
            done += len(piece)
            while cutter.full and (cut := cutter.cut(force=True)) is not None:
                yield cut.data


def _many(rounds: int) -> Iterator[pa.Table]:
    """Yield the rows of transactions in ``OPEN`` sessions, which make a change each in turn."""
    sessions = np.arange(OPEN)
    for round_ in range(rounds):
        # They commit in different rounds, all of them in the last one.
        begins = (sessions + round_) % CHANGES_EACH == 0
        ends = (sessions + round_ + 1) % CHANGES_EACH == 0
        begins |= round_ == 0
        ends |= round_ == rounds - 1
        number = (sessions + round_) // CHANGES_EACH
        counts = 1 + begins + ends
        first = np.cumsum(counts) - counts
        operations = np.full(int(counts.sum()), int(Operation.UPDATE), np.int64)
        operations[first[begins]] = int(Operation.START)
        operations[(first + counts - 1)[ends]] = int(Operation.COMMIT)
        each = np.repeat(sessions, counts)
        yield _rows(each * 1_000_000 + number[each] + 1, operations, round_)


def _one(rounds: int) -> Iterator[pa.Table]:
    """Yield the rows of a transaction."""
    for round_ in range(rounds):
        operations = np.full(FETCH, int(Operation.UPDATE), np.int64)
        if round_ == rounds - 1:
            operations = np.append(operations, int(Operation.COMMIT))
        yield _rows(np.ones(len(operations), np.int64), operations, round_)


def _rows(transactions: Numbers, operations: Numbers, fetch: int) -> pa.Table:
    """Return rows of the view.

    Args:
        transactions: a number of each row's transaction, shape (rows,).
        operations: shape (rows,).
        fetch: how many fetches there were before.
    """
    count = len(operations)
    scns = np.arange(count) + fetch * 3 * FETCH + 1
    names, codes = np.unique(transactions, return_inverse=True)
    texts = {
        "XID": pa.array([f"{one:016x}" for one in names.tolist()]).take(pa.array(codes)),
        "SQL_REDO": pa.array([_STATEMENT.format(one) for one in range(1000)]).take(pa.array(scns % 1000)),
        "ROW_ID": pa.array([f"AAAR3sAAEAAAAC{one:04d}" for one in range(1000)]).take(pa.array(scns % 1000)),
        "RS_ID": pa.array([f" 0x00000a.{one:08x}.0010 " for one in range(1000)]).take(pa.array(scns % 1000)),
        **{name: pa.array([text]).take(pa.array(np.zeros(count, np.int64))) for name, text in _TEXTS.items()},
    }
    numbers = {"SCN": scns, "OPERATION_CODE": operations, "THREAD#": np.ones(count, np.int64)}
    columns = []
    for field in ROWS:
        if field.name in texts:
            columns.append(texts[field.name])
        elif field.name in numbers or field.type == pa.int64():
            columns.append(pa.array(numbers.get(field.name, np.zeros(count, np.int64))))
        elif pa.types.is_timestamp(field.type):
            columns.append(pa.array(scns, pa.int64()).cast(field.type))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.table(columns, schema=ROWS)


def _peak_bytes() -> int:
    """Return the most memory that this process has had, files that are mapped included."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10
