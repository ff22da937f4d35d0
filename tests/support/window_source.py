"""A source in memory whose one table is read in windows."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from floodmark.capture.segment import SegmentData
from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import DescribedTable, KeyRangeChunk

TOP = 1 << 40


@dataclass
class Clock:
    """A time that passes only when work is done."""

    now: float = 100.0

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@dataclass
class WindowSource:
    """A connector with one table whose keys are numbers without gaps.

    Attributes:
        clock: passes while rows are read.
        rows_s: how many are read in a second.
        reads: how many rows each window had.
        failure: what the next reading raises.
    """

    clock: Clock
    rows_s: float
    reads: list[int] = field(default_factory=list)
    failure: Exception | None = None

    @property
    def tables(self) -> Any:
        return self

    @property
    def snapshots(self) -> Any:
        return self

    @property
    def windows(self) -> Any:
        return SimpleNamespace(open=lambda _: self._point())

    def open_unsettled(self) -> Any:
        return self._point()

    def _point(self) -> Any:
        return SimpleNamespace(
            low="0",
            position="1",
            token={},
            alive=lambda: True,
            settle=lambda _: True,
            key_ranges=self._key_ranges,
            rows=self._rows,
            close=lambda: None,
            release=lambda: None,
        )

    def _key_ranges(self, *_: object) -> Any:
        def bounds(after: list[str] | None, top: list[str], size: int, most: int) -> Sequence[tuple[list[str], int]]:
            begin = int(after[0]) if after else 0
            return [([str(begin + size * number)], size) for number in range(1, most + 1)]

        return SimpleNamespace(last=lambda: [str(TOP)], bounds=bounds)

    def describe(self, oids: Sequence[int]) -> dict[int, DescribedTable]:
        return {oid: DescribedTable(oid, "t", None) for oid in oids}

    def fingerprints(self, oids: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(oids, "")

    def captured(self) -> list[CapturedTable]:
        return [CapturedTable("t", "t", 1, 1, "", 0, 0)]

    def _rows(self, chunk: KeyRangeChunk) -> Generator[SegmentData, None, str]:
        assert chunk.upto is not None
        rows = int(chunk.upto[0]) - int((chunk.after or ["0"])[0])
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        self.reads.append(rows)
        self.clock.pass_by(rows / self.rows_s)
        yield SegmentData(np.zeros(1, np.uint8), np.zeros(1, np.uint32))
        return "complete"
