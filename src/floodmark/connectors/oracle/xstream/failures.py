"""What goes wrong in Oracle's Java interface: trying again, or stopping.

Oracle Database Error Messages for the numbers; which of them a client should try again at, Debezium 3.6 does.
"""

from __future__ import annotations

from dataclasses import dataclass

from py4j.protocol import Py4JError, Py4JJavaError

from floodmark.connectors.oracle.server.failures import refusal, statement_error
from floodmark.errors import (
    ConnectError,
    FloodmarkError,
    LogGoneError,
    NotReadyError,
    SourceStateError,
)

BUSY = 26812
_STARTING = frozenset((23656, 26653, 26928))
"""The outbound server, its coordinator or its capture is starting, stopping or not running."""
_STARTING_TEXTS = (
    "did not start properly and is currently in state",
    "Timeout occurred while starting XStream process",
    "Unable to communicate with XStream apply coordinator process",
)
_NO_SERVER = 26701
_OTHER_INSTANCE = 26913
_BACKWARDS = 26876
_INTERRUPTED = 26877
_NO_HANDLES = 17023
_MOST_CAUSES = 10
_LIBRARY = (
    "xstream.library.path must be the folder of Oracle's Instant Client (libocijdbc…, libclntsh…), of the same release "
    "as the jars; it also needs the system's libaio."
)


@dataclass(frozen=True)
class Said:
    """An error of Java's, in the form that python-oracledb's have.

    Attributes:
        code: Oracle's number; 0: there is none.
        message: its text.
        kind: the name of its class.
    """

    code: int
    message: str
    kind: str


def said_of(exc: Py4JJavaError) -> Said:
    """Return what an exception says; its causes are asked if it has no number of Oracle's itself."""
    found = exc.java_exception
    first: Said | None = None
    for _ in range(_MOST_CAUSES):
        if found is None:
            break
        kind = str(found.getClass().getName())
        text = " ".join(str(found.getMessage() or kind).split())
        has_code = kind.startswith("oracle.streams.") or _is_sql(found)
        said = Said(abs(int(found.getErrorCode())) if has_code else 0, text, kind)
        if said.code:
            return said if first is None else Said(said.code, f"{first.message}: {said.message}", first.kind)
        first = first or said
        found = found.getCause()
    return first or Said(0, str(exc), "")


def _is_sql(found: object) -> bool:
    kind = found.getClass()  # type: ignore[attr-defined]
    while kind is not None:
        if kind.getName() == "java.sql.SQLException":
            return True
        kind = kind.getSuperclass()
    return False


def bridge_error(exc: Exception, doing: str, server: str) -> FloodmarkError:
    """Return the error of a call of Oracle's interface.

    Args:
        exc: what py4j has raised.
        doing: what the call was for.
        server: the outbound server's name.
    """
    if not isinstance(exc, Py4JJavaError):
        return ConnectError(f"The JVM in which XStream runs has ended, or doesn't answer, while {doing}.")
    try:
        said = said_of(exc)
    except (Py4JError, OSError):
        return ConnectError(f"The JVM in which XStream runs has ended while {doing}.")
    return said_error(said, doing, server)


def said_error(said: Said, doing: str, server: str) -> FloodmarkError:
    """Return the error that an exception of Java's means; see ``bridge_error``."""
    code, text = said.code, said.message.rstrip(".")
    if said.kind in ("java.lang.UnsatisfiedLinkError", "java.lang.NoClassDefFoundError", "java.lang.NoSuchMethodError"):
        return SourceStateError(f"Oracle's client library can't be used: {text}.", _LIBRARY)
    if code == _NO_HANDLES or "getOCIHandles" in text:
        return SourceStateError(f"The connection isn't one of Oracle's OCI driver: {text}.", _LIBRARY)
    if code == BUSY:
        return NotReadyError(
            f"Another client is attached to the outbound server {server}, or its session hasn't ended yet: {text}.",
            "Stop the other client, or give this query an outbound server of its own (xstream.out.server.name).",
        )
    if code in _STARTING or any(one in text for one in _STARTING_TEXTS):
        return NotReadyError(
            f"The outbound server {server} isn't ready: {text}.",
            "See ALL_XSTREAM_OUTBOUND and ALL_CAPTURE; DBMS_XSTREAM_ADM.START_OUTBOUND starts it.",
        )
    if code == _NO_SERVER:
        return SourceStateError(
            f"The database has no outbound server {server}: {text}.",
            "Check xstream.out.server.name, and that database.dbname is the root container's service.",
        )
    if code == _OTHER_INSTANCE:
        return SourceStateError(
            f"The outbound server {server} runs on another instance: {text}.",
            "Connect to that instance by database.url with a service of its own.",
        )
    if code == _BACKWARDS:
        return LogGoneError(
            f"The outbound server {server} was told to forget more than this query has delivered: {text}.",
            "Give each query an outbound server of its own; snapshot.mode=when_needed takes a new snapshot.",
        )
    if code == _INTERRUPTED:
        return ConnectError(f"The outbound server {server} was stopped, or has ended a call, while {doing}: {text}.")
    return statement_error(RuntimeError(said), doing)


def connect_error(exc: Exception, place: str, user: str, timeout_ms: int, server: str) -> FloodmarkError:
    """Return the error of a connection that couldn't be opened; see ``server.failures.refusal``."""
    if not isinstance(exc, Py4JJavaError):
        return bridge_error(exc, "connecting", server)
    said = said_of(exc)
    if said.code and said.code != _NO_HANDLES:
        return refusal(place, user, timeout_ms, RuntimeError(said))
    return said_error(said, "connecting", server)
