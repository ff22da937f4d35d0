"""Decides when a micro-batch holds a heartbeat."""

from __future__ import annotations

import time
from collections.abc import Callable

from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.source import Source
from floodmark.logger import get_logger

log = get_logger(__name__)


class Heartbeats:
    """Decides which micro-batches hold a heartbeat, and runs ``heartbeat.action.query`` with each.

    Args:
        options: the source's options.
        source: the source.
        streaming: returns whether the log is read; during a snapshot alone there are no heartbeats.
    """

    def __init__(self, options: CommonOptions, source: Source, streaming: Callable[[], bool]) -> None:
        self._interval_s = options.heartbeat_ms / 1000
        self._action = options.heartbeat_action_query
        self._source = source
        self._streaming = streaming
        self._next = time.monotonic() + self._interval_s
        self._snapshot_ended = False
        if self._action and not self._interval_s:
            log.warning("heartbeat_action_query_has_no_effect", reason="heartbeat.interval.ms is 0")

    def after_snapshot(self) -> None:
        """Let the micro-batch with which a snapshot ends hold a heartbeat."""
        self._snapshot_ended = True

    def due(self, alone: bool, ending: bool) -> int | None:
        """Return the time of a heartbeat in milliseconds since the epoch; None if none is due.

        Args:
            alone: whether the micro-batch would hold nothing else.
            ending: whether the query ends once there is nothing to deliver: a heartbeat must not keep it going.
        """
        ended, self._snapshot_ended = self._snapshot_ended, False
        # Read both clocks before anything that takes time, so that heartbeats are as far apart as the option says.
        now, time_ms = time.monotonic(), time.time_ns() // 1_000_000
        on_time = now >= self._next and self._streaming() and not (alone and ending)
        if not self._interval_s or not (ended or on_time):
            return None
        self._next = now + self._interval_s
        if self._action:
            self._source.execute_in_background(self._action)
        return time_ms
