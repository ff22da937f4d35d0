"""Sees to it that an executor which the driver has lost sight of ends before its tasks are run again elsewhere.

It could go on writing what another executor writes anew, where a target has nothing to refuse the older of two writers.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from floodmark.logger import get_logger

log = get_logger(__name__)

_FAILURES, _INTERVAL, _TIMEOUT = (
    "spark.executor.heartbeat.maxFailures",
    "spark.executor.heartbeatInterval",
    "spark.network.timeout",
)
_DEFAULTS = {_FAILURES: "60", _INTERVAL: "10s", _TIMEOUT: "120s"}
"""Spark's: an executor tries for ten minutes to reach the driver, which gives it up after two."""
PROPERTIES = {_FAILURES: "6"}
"""What lets it end after little more than one."""
_SHUTDOWN_MS = 10_000
"""How long it may take to end, during which its Python processes go on."""


def warn_of_late_writers(session: SparkSession) -> None:
    """Warn if an executor may run on after the driver has given it up."""
    context = session.sparkContext
    if (context.master or "").startswith("local"):
        return
    conf = context._jsc.sc().conf()
    interval_ms = int(conf.getTimeAsMs(_INTERVAL, _DEFAULTS[_INTERVAL]))
    ends_ms = ends_after_ms(int(conf.get(_FAILURES, _DEFAULTS[_FAILURES])), interval_ms)
    given_up_ms = int(conf.getTimeAsMs(_TIMEOUT, _DEFAULTS[_TIMEOUT]))
    if ends_ms >= given_up_ms:
        log.warning(
            "an_executor_may_write_late",
            ends_after_s=ends_ms / 1000,
            given_up_after_s=given_up_ms / 1000,
            cure=f"Set {_FAILURES} to {PROPERTIES[_FAILURES]}.",
        )


def ends_after_ms(failures: int, interval_ms: int) -> int:
    """Return after how many milliseconds an executor that is cut off has ended.

    Args:
        failures: how many heartbeats may fail.
        interval_ms: from one heartbeat to the next, and how long each may take.
    """
    return (failures + 1) * interval_ms + _SHUTDOWN_MS
