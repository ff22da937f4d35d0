"""Brings a query and its source together, once in each process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import IntEnum

from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.read_points import ReadPoint
from floodmark.connectors.contract.source import Source
from floodmark.errors import ConnectError, ForkedLogError, LogGoneError, LoginError, NotReadyError
from floodmark.extensions.snapshotter import Snapshotter
from floodmark.logger import get_logger
from floodmark.schema_registry.client import check_registries
from floodmark.spark.stream.captured_log import CapturedLog
from floodmark.spark.stream.offsets import Offset
from floodmark.spark.stream.planning.startup import Start, decide, refuse_another_source

log = get_logger(__name__)


class Stage(IntEnum):
    """How far a query has come with its source in this process."""

    CLOSED = 0
    ANSWERED = 1
    """The source of a new query has answered with the query's options."""
    OPEN = 2
    """The checkpoint belongs to the source, and the log is available, or ``Opening.lost`` says what is missing."""
    DECIDED = 3
    """What the query does first has been decided, and has led to an offset."""


@dataclass(frozen=True)
class LostLog:
    """Log that a new snapshot is going to replace.

    Attributes:
        after: the position after which it is lost.
        error: why.
    """

    after: str
    error: LogGoneError


class Opening:
    """Opens the source for a query, and decides what the query does first.

    Each step can be repeated after a connection error. The stage only advances when a step has succeeded.

    Args:
        options: the source's options.
        source: the source.
        captured: what capture has received.
        snapshotter: decides when a snapshot is taken and whether the log follows.

    Attributes:
        stage: how far it has come.
        lost: the log that a new snapshot is going to replace; None: nothing is lost.
    """

    def __init__(self, options: CommonOptions, source: Source, captured: CapturedLog, snapshotter: Snapshotter) -> None:
        self._source = source
        self._captured = captured
        self._snapshotter = snapshotter
        self._converters = options.key_avro, options.value_avro
        self._snapshot_delay_s = options.snapshot_delay_ms / 1000
        self.stage = Stage.CLOSED
        self.lost: LostLog | None = None

    @property
    def is_open(self) -> bool:
        """Whether the source has been opened."""
        return self.stage >= Stage.OPEN

    @property
    def is_decided(self) -> bool:
        """Whether it has been decided what the query does first."""
        return self.stage is Stage.DECIDED

    def is_final(self, new: bool, error: ConnectError) -> bool:
        """Return whether an error before the source was opened is the user's mistake, not a fault to wait out.

        Args:
            new: whether the query has no checkpoint, so that no source has ever answered with its options.
            error: the connection error.
        """
        if self.is_open or isinstance(error, NotReadyError):
            return False
        return isinstance(error, LoginError) or (new and self.stage is Stage.CLOSED)

    def create(self) -> tuple[dict[str, str], str, ReadPoint | None]:
        """Create what a new query needs at the source.

        Returns:
            What identifies the source, the position to start from, and the read point of the snapshot that begins
            there; None if the options ask for none.
        """
        check_registries(self._converters)
        self._captured.create()
        identity = self._source.identity()
        self.stage = max(self.stage, Stage.ANSWERED)
        snapshot = self._snapshotter.should_snapshot_data(False, False)
        if snapshot:
            self.delay_snapshot()
        position, point = self._source.log.create(snapshot)
        self.stage = Stage.DECIDED
        return identity, position, point

    def open(self, offset: Offset) -> None:
        """Verify once that a checkpoint belongs to this source and that its log is available."""
        if self.is_open:
            return
        check_registries(self._converters)
        refuse_another_source(offset.source, self._source.identity())
        self._captured.create()
        try:
            self._source.log.resume(offset.oldest, offset.bookmark, offset.known)
        except LogGoneError as exc:
            self._do_without_log(exc, offset.log)
        self.stage = Stage.OPEN

    def prove_planned(self, start: Offset, end: Offset) -> None:
        """Verify that what an earlier process planned can be delivered, so that nothing waits for a lost log."""
        try:
            self._source.log.check_planned(end.oldest, end.bookmark)
        except LogGoneError as exc:
            self._do_without_log(exc, start.log)

    def _do_without_log(self, error: LogGoneError, after: str) -> None:
        """Go on without the log after a position, if a new snapshot may replace it."""
        if isinstance(error, ForkedLogError) or not self._snapshotter.should_snapshot_on_data_error():
            raise error
        log.warning("log_is_gone", error=error.what, snapshotter=self._snapshotter.name, next="a new snapshot")
        self.lost = LostLog(after, error)

    def decide(self, start: Offset) -> Start:
        """Return what the query does first; once that has led to an offset (``decided``), it just goes on."""
        return Start.GO_ON if self.is_decided else decide(self._snapshotter, start, self.lost is not None)

    def decided(self) -> None:
        """Record that the decision has led to an offset."""
        self.stage = Stage.DECIDED

    def delay_snapshot(self) -> None:
        """Wait for ``snapshot.delay.ms``, once in this process, however often planning is repeated."""
        delay_s, self._snapshot_delay_s = self._snapshot_delay_s, 0.0
        time.sleep(delay_s)
