"""Write changes of random rows into a large Delta table, beside an append of the same rows by delta-rs."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake
from numpy.typing import NDArray

from benchmarks.common import Leg, Result, Scale
from floodmark.changes.typed_rows import NAMES
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.parts import make_parts
from floodmark.sinks.delta.planning.target_rows import KeptRows
from floodmark.sinks.delta.stores import table_folder
from floodmark.sinks.delta.writer import DeltaWriter
from floodmark.sinks.options import MirrorOptions

CHANGES = 200_000
"""Of a micro-batch: 70 % updates, 20 % inserts, 10 % deletes."""
BATCHES = 10
TASKS = 2
LOAD = 1_000_000
ROW = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("balance", pa.decimal128(12, 2)),
        ("updated_at", pa.timestamp("us", tz="UTC")),
        ("note", pa.string()),
    ]
)


class _Quiet:
    """Is told about tables."""

    def is_missing(self, table: str, keyed: bool, torn: bool = False) -> None:
        """Nothing is done."""

    def exists(self, table: str) -> None:
        """Nothing is done."""

    def gets_columns(self, table: str, columns: object) -> None:
        """Nothing is done."""


class Workload:
    """Makes rows of about 100 bytes.

    Args:
        rows: how many the table has at first.
    """

    def __init__(self, rows: int) -> None:
        self._chance = np.random.default_rng(1)
        letters = self._chance.integers(97, 123, (20_000, 12), np.uint8)
        self._words = pa.array(letters.view("S12").ravel().astype(str))
        self._rows = self._next = rows
        self._position = 0

    def load(self, first: int, rows: int) -> pa.Table:
        """Return rows that a snapshot reads."""
        return self._events(np.full(rows, "r"), np.arange(first, first + rows))

    def changes(self) -> pa.Table:
        """Return the rows of a micro-batch."""
        ops = np.array(["u", "c", "d"])[self._chance.choice(3, CHANGES, p=[0.7, 0.2, 0.1])]
        new = np.arange(self._next, self._next + CHANGES)
        self._next += CHANGES
        return self._events(ops, np.where(ops == "c", new, self._chance.integers(0, self._rows, CHANGES)))

    def next_key(self, count: int) -> int:
        """Return the first of some keys that no row has."""
        first = self._next
        self._next += count
        return first

    def _word(self, count: int) -> pa.Array:
        return self._words.take(pa.array(self._chance.integers(0, len(self._words), count)))

    def _events(self, ops: NDArray[Any], ids: NDArray[Any]) -> pa.Table:
        count, chance = len(ids), self._chance
        row = pa.StructArray.from_arrays(
            [
                pa.array(ids),
                self._word(count),
                pa.array(np.round(chance.random(count) * 1e6, 2)).cast(pa.decimal128(12, 2), safe=False),
                pa.array(chance.integers(0, 10**15, count)).cast(pa.timestamp("us", tz="UTC")),
                # Different in each row, as texts of real tables are.
                pc.binary_join_element_wise(
                    *(self._word(count) for _ in range(4)), pa.array(ids).cast(pa.string()), " "
                ),
            ],
            fields=list(ROW),
        )
        positions = np.char.mod("%032d", np.arange(self._position, self._position + count))
        self._position += count
        deleted = pa.array(ops == "d")
        return pa.table(
            {
                "op": pa.array(ops),
                "position": pa.array(positions),
                "key": pa.repeat(pa.scalar(["id"], NAMES), count),
                "unavailable": pa.repeat(pa.scalar([], NAMES), count),
                "unrepresentable": pa.repeat(pa.scalar([], NAMES), count),
                "before": row,
                "after": pa.StructArray.from_arrays(row.flatten(), fields=list(ROW), mask=deleted),
            }
        )


def run(scale: Scale, postgres: int) -> Result:
    """Measure all; PostgreSQL isn't needed."""
    del postgres
    rows = scale.target_rows
    result = Result("mirror_writer", scale.name, "one process")
    result.notes.append(f"{BATCHES} micro-batches of {CHANGES:,} changes of random rows of {rows:,}")
    result.notes.append("an append leaves its files as they are, so the mirror's changes without compaction compare")
    plain: list[pa.Table] = []
    for name, compact in (("", "10"), (" without compaction", "0")):
        workload = Workload(rows)
        loads = [workload.load(first, min(LOAD, rows - first)) for first in range(0, rows, LOAD)]
        batches = [workload.changes() for _ in range(BATCHES)]
        plain = [pa.table(batch["after"].combine_chunks().flatten(), names=ROW.names) for batch in batches]
        with tempfile.TemporaryDirectory() as scratch:
            mirror = _Mirror(scratch, compact)
            leg = _measured("mirror, first load", rows, partial(mirror.write, 0, loads))
            if not result.legs:
                result.legs.append(leg)
            result.legs.append(_measured(f"mirror, changes{name}", BATCHES * CHANGES, partial(mirror.change, batches)))
    with tempfile.TemporaryDirectory() as scratch:
        result.legs.append(_measured("delta-rs, append", BATCHES * CHANGES, partial(_append, scratch, plain)))
    for figure in ("changes/s", "changes per CPU s"):
        result.add_ratio(figure, f"{figure}, x append", "delta-rs, append")
    return result


class _Mirror:
    """A Delta table that a mirror writes."""

    def __init__(self, scratch: str, compact: str) -> None:
        self._folder, self._pool = table_folder(scratch, "public.t"), ThreadPoolExecutor(1)
        options = MirrorOptions.parse({"compact.files": compact})
        self._writer = DeltaWriter(self._folder, "bench", "public.t", options, KeptRows(), _Quiet(), self._pool)

    def write(self, batch: int, blocks: Sequence[pa.Table]) -> None:
        """Write a micro-batch, of which each task has a block."""
        with ThreadPoolExecutor(TASKS) as tasks:
            parts = tasks.map(lambda block: make_parts(DataFiles(self._folder.store, "public.t"), [block]), blocks)
            self._writer.write(batch, [part for made in parts for part in made])

    def change(self, batches: Sequence[pa.Table]) -> None:
        """Write micro-batches of changes."""
        for number, batch in enumerate(batches):
            half = batch.num_rows // TASKS
            self.write(number + 1, [batch.slice(first * half, half) for first in range(TASKS)])
        # What is left to be rewritten counts, too.
        self._pool.shutdown()


def _append(scratch: str, tables: Sequence[pa.Table]) -> None:
    for table in tables:
        write_deltalake(str(Path(scratch, "appended")), table, mode="append")


def _measured(name: str, changes: int, work: Callable[[], None]) -> Leg:
    began, cpu = time.perf_counter(), _cpu_s()
    work()
    seconds, cpu_s = time.perf_counter() - began, _cpu_s() - cpu
    return Leg(
        name,
        {"changes/s": changes / seconds, "changes per CPU s": changes / cpu_s, "seconds": seconds, "CPU s": cpu_s},
    )


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
