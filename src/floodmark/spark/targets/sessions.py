"""Sessions of Spark: settings that others don't get, and the classes that they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from queue import Empty, SimpleQueue

from pyspark.sql import SparkSession

_SETTINGS = {
    # Texts become constants of SQL in one way only.
    "spark.sql.parser.escapedStringLiterals": "false",
    # Spark 4.0 turns it off for streams; without it a MERGE of a few rows has as many tasks as one of many.
    "spark.sql.adaptive.enabled": "true",
}


class Sessions:
    """Sessions like another one, each for one thread at a time.

    Args:
        session: the one that they have their settings from.
        active: whether each is the active one of the thread that has it, whose settings count where none is named.
    """

    def __init__(self, session: SparkSession, active: bool = False) -> None:
        self._session = session
        self._active = active
        self._free: SimpleQueue[SparkSession] = SimpleQueue()

    @contextmanager
    def one(self) -> Iterator[SparkSession]:
        """Yield a session that no other thread has."""
        try:
            session = self._free.get_nowait()
        except Empty:
            # Unlike `newSession`, it has the settings that the program made.
            session = SparkSession(self._session.sparkContext, self._session._jsparkSession.cloneSession())
            for name, value in _SETTINGS.items():
                session.conf.set(name, value)
        try:
            with _active(session) if self._active else nullcontext():
                yield session
        finally:
            self._free.put(session)


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Let a session be the active one of this thread."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


@contextmanager
def settings(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Give a session settings for the duration of a block; a query that starts in it keeps them.

    Raises:
        AnalysisException: one of them can only be made before the session starts; none is made then.
    """
    before: dict[str, str | None] = {}
    try:
        for name, value in values.items():
            found = session.conf.get(name, None)
            session.conf.set(name, value)
            before[name] = found
        yield
    finally:
        for name, found in before.items():
            if found is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, found)


def class_location(session: SparkSession, name: str) -> str | None:
    """Return where a session has a Java class; None: nowhere. It isn't loaded: one for another Spark fails."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    found = loader.getResource(f"{name.replace('.', '/')}.class")
    return None if found is None else str(found.toString())
