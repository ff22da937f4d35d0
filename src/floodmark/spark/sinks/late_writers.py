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
"""What lets it end after one."""


def warn_of_late_writers(session: SparkSession) -> None:
    """Warn if an executor may run on after the driver has given it up."""
    context = session.sparkContext
    if (context.master or "").startswith("local"):
        return
    conf = context._jsc.sc().conf()
    failures = int(conf.get(_FAILURES, _DEFAULTS[_FAILURES]))
    # A try may take as long as it is until the next one.
    ends_ms = (failures + 1) * int(conf.getTimeAsMs(_INTERVAL, _DEFAULTS[_INTERVAL]))
    given_up_ms = int(conf.getTimeAsMs(_TIMEOUT, _DEFAULTS[_TIMEOUT]))
    if ends_ms >= given_up_ms:
        log.warning(
            "an_executor_may_write_late",
            ends_after_s=ends_ms / 1000,
            given_up_after_s=given_up_ms / 1000,
            cure=f"Set {_FAILURES} to {PROPERTIES[_FAILURES]}, so that {_FAILURES} x {_INTERVAL} < {_TIMEOUT}.",
        )
