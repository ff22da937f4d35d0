"""Starts Spark for the command line, with little log output and this process's Python in the workers."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import psutil
from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.sql import SparkSession

from floodmark.errors import FloodmarkError
from floodmark.spark.failures import HIDE_TRACEBACK
from floodmark.spark.jvmlog import JvmLog
from floodmark.spark.versions import require_spark

REQUIREMENT = "Java 17 or later must be installed; --verbose shows all that Spark wrote."
PACKAGES = (
    "Spark downloads spark.jars.packages from Maven Central, which must be reachable and have this version; "
    "spark.jars takes jars that are there already."
)
QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_REASONS = [
    re.compile(pattern)
    for pattern in (
        r"Exception in thread",
        r"Exception: |[Ee]rror: ",
        r"JAVA_HOME|[Nn]o such|not found",
        r"\w",
    )
]
_GENERIC = ("[JAVA_GATEWAY_EXITED]", "An error occurred while calling", "Traceback", "WARNING:")


@contextmanager
def spark_session(
    conf: Mapping[str, str], emit: Callable[[str], None], verbose: bool = False
) -> Iterator[SparkSession]:
    """Start Spark for the duration of a ``with`` block; at its end the queries in it are stopped.

    Args:
        conf: Spark properties; they override the quiet defaults.
        emit: receives each line that the workers and the JVM log.
        verbose: whether stack traces are forwarded too.

    Raises:
        FloodmarkError: this version of Spark is not supported, or Spark does not start.
    """
    require_spark()
    properties = {**QUIET, **conf}
    if properties.get("spark.master", "").startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Spark would start the `python3` of the PATH, which may not be the one that Floodmark is installed in.
    os.environ["PYSPARK_PYTHON"] = properties.get(
        "spark.pyspark.python", os.environ.get("PYSPARK_PYTHON", sys.executable)
    )
    if verbose:
        os.environ.setdefault(HIDE_TRACEBACK, "")
    spark_conf = SparkConf(loadDefaults=False)
    for key, value in properties.items():
        spark_conf.set(key, value)
    log = JvmLog(emit, verbose)
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        gateway = _launch(spark_conf, log)
        context = SparkContext(conf=spark_conf, gateway=gateway)
    except Exception as exc:
        reason = _reason(f"{exc}\n{log.failed()}")
        cure = PACKAGES if "unresolved dependency" in reason else REQUIREMENT
        raise FloodmarkError(f"Spark did not start: {reason}.", cure) from (exc if verbose else None)
    log.launched()
    if threading.current_thread() is threading.main_thread():
        # SparkContext installs a SIGINT handler of its own, which cancels all jobs.
        signal.signal(signal.SIGINT, on_interrupt)
    session = SparkSession(context)
    try:
        yield session
    except Exception:
        _stop(session, log)
        raise
    _stop(session, log)


def _launch(conf: SparkConf, log: JvmLog) -> JavaGateway:
    # PySpark has no types for it.
    launch: Callable[[SparkConf, Mapping[str, int]], JavaGateway] = java_gateway.launch_gateway
    process = psutil.Process()
    before = set(process.children())
    try:
        return launch(conf, {"stderr": log.writer})
    except BaseException:
        # PySpark leaves a JVM behind that isn't ready yet, and takes away the folder for which the JVM waits.
        for started in set(process.children(recursive=True)) - before:
            with suppress(psutil.NoSuchProcess):
                started.kill()
        raise


def _stop(session: SparkSession, log: JvmLog) -> None:
    """Stop Spark; not called on an interrupt, which must not wait: the JVM ends with this process."""
    log.silence()
    for query in session.streams.active:
        query.stop()
    session.stop()


def _reason(written: str) -> str:
    """Return the line that says why Spark gave up."""
    lines = [line.strip(" :\t.") for line in written.splitlines()]
    for reason in _REASONS:
        for line in lines:
            if reason.search(line) and not line.startswith(_GENERIC):
                return line.removeprefix('Exception in thread "main" ')
    return "it gave no reason"
