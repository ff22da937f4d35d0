"""The protocol that a connector implements for capture: one connection that receives the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from floodmark.capture.segment import SegmentData


@dataclass
class Cut:
    """A segment that was cut from a log stream: its content and what it covers.

    Attributes:
        after: position just before its first record.
        upto: position of its last record.
        rows: how many records it holds.
        last_commit_s: when its last transaction was committed, seconds since the epoch.
        signals: rows inserted into the signal table, each with its position.
        inflated: how many bytes larger the records are when they are decompressed.
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
        """Start to receive the log after a position."""

    def read(self, timeout: float) -> int:
        """Receive what has arrived, waiting up to ``timeout`` seconds for something; return how many bytes."""

    def tend(self) -> None:
        """Keep the connection alive while nothing is read."""

    def cut(self, force: bool) -> Cut | None:
        """Cut a segment from the received records at the last transaction end; return None if there is nothing to cut.

        Args:
            force: cut inside a transaction if there is no transaction end.
        """

    @property
    def full(self) -> bool:
        """Whether a segment's worth of records has been received."""

    @property
    def spooled_bytes(self) -> int:
        """How many bytes of state the undecided transactions take."""

    @property
    def received(self) -> str:
        """The position that the next cut reaches."""

    @property
    def idle_position(self) -> str | None:
        """The position up to which the log holds nothing that hasn't been cut; None if records wait."""

    def confirm(self, position: str) -> None:
        """Let the source discard the log up to a position. Safe to call from another thread."""

    def ping(self) -> None:
        """Request the source's current position. Safe to call from another thread."""

    def close(self) -> None:
        """Close the connection."""
