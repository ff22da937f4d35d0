"""What capture asks of a connector: one connection that receives the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from floodmark.capture.segment import SegmentData


@dataclass
class Cut:
    """What was cut off a log stream: a segment's content and what it covers.

    Attributes:
        after: position just before its first record.
        upto: position of its last record.
        rows: how many records it holds.
        last_commit_s: when its last transaction was committed, seconds since the epoch.
        signals: rows inserted into the signal table, each with its position.
        inflated: bytes that the records have more when they are decompressed.
    """

    data: SegmentData
    after: str
    upto: str
    rows: int
    last_commit_s: float
    signals: Sequence[tuple[str, dict[str, str]]]
    inflated: int = 0


class LogStream(Protocol):
    """One connection that receives the log, in order."""

    def open(self, position: str) -> None:
        """Start to receive what comes after a position."""

    def read(self, timeout: float) -> int:
        """Take what has arrived, waiting up to ``timeout`` seconds if there is nothing; return its bytes."""

    def tend(self) -> None:
        """Keep the connection alive while nothing is read."""

    def cut(self, force: bool) -> Cut | None:
        """Close the received records at the last transaction end.

        Args:
            force: cut inside a transaction if there is no transaction end.
        """

    @property
    def full(self) -> bool:
        """Whether a segment's worth of records has been received."""

    @property
    def spooled_bytes(self) -> int:
        """How many bytes of state transactions take that aren't decided yet."""

    @property
    def received(self) -> str:
        """Up to where the next cut reaches."""

    @property
    def idle_position(self) -> str | None:
        """Up to where the log is known to hold nothing but what has been cut; None if records wait."""

    def confirm(self, position: str) -> None:
        """Let the source discard the log up to a position. Safe to call from another thread."""

    def ping(self) -> None:
        """Ask the source for its current position. Safe to call from another thread."""

    def close(self) -> None:
        """Close the connection."""
