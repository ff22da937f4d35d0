"""What Oracle's error numbers mean for capture: try again, log in again, or stop.

Oracle Database Error Messages for the numbers; python-oracledb's documentation, "Error handling", for DPY-….
"""

from __future__ import annotations

import re

import oracledb

from floodmark.errors import (
    ConnectError,
    FloodmarkError,
    LockTimeoutError,
    LoginError,
    NotReadyError,
    PrivilegeError,
    ReadPointGoneError,
    SourceStateError,
    StatementTimeoutError,
    UnreadableLogError,
)

GONE_FROM_UNDO = 1555
ALTERED_SINCE = 1466
NO_OBJECT = 8103
NO_UNDO_AT_ALL = 8180
NO_SNAPSHOT = 8181
READ_POINT_LOST = frozenset((GONE_FROM_UNDO, ALTERED_SINCE, NO_UNDO_AT_ALL, NO_SNAPSHOT, NO_OBJECT))
"""Rows as of a number aren't known any more: the undo is gone, or the table was altered since."""

LOST = frozenset((28, 41, 600, 603, 1012, 1033, 1034, 1041, 1089, 1090, 1092, 2396, 2399, 3113, 3114, 3135))
"""The session was ended, by the server or on the way; among them internal errors, which end with the session."""
STALE = frozenset((604, 1001, 1327, 1333, 4030, 4031, 4068))
"""What another session may do: LogMiner's dictionary is locked or being changed, memory is short, a cursor is gone."""
NOT_READY = frozenset((1033, 1034, 1109, 1154, 12505, 12514, 12516, 12518, 12519, 12520, 12523, 12528, 18, 20, 1219))
"""Starting, stopping, mounting, or out of sessions or processes; the listener doesn't know the service yet."""
LOGIN = frozenset((1005, 1017, 1045, 28000, 28001, 28009, 28040, 12638, 12660, 12650, 1004))
NO_RIGHT = frozenset((942, 1031, 1950, 6550, 41900, 990, 1720, 2030))
"""Oracle says of what one may not see that it isn't there."""
UNREADABLE = frozenset(
    (308, 310, 333, 334, 353, 354, 355, 368, 1281, 1284, 1289, 1291, 1292, 1293, 1306, 1323, 1324, 1343, 1346, 1371)
)
"""A log is missing, has another sequence by now, or is damaged; LogMiner finds no complete dictionary, or isn't where
we think that it is."""
LOCKED = frozenset((54, 60, 4021, 30006))
TOO_LONG = frozenset((1013, 40, 3136, 12170))
UNREADABLE_FILE, NO_DICTIONARY = 1284, 1371
_ARCHIVED = "Check that the archived logs are where V$ARCHIVED_LOG says."
_FILES = f"{_ARCHIVED[:-1]}, and the dictionary where log.mining.strategy and log.mining.path.dictionary say."
_TIMEOUTS = ("DPY-4024", "DPI-1067")
_DRIVER_LOST = ("DPY-4011", "DPY-1001", "DPY-6005", "DPY-6000", "DPY-6003", "DPY-4005", "DPY-6002")
_SIMILAR = re.compile(r"\(Similar to ORA-(\d+)\)")
_ADDRESS = "Check database.hostname, database.port, database.dbname and firewalls, and that the listener runs."
_ALERT_LOG = "Check that the database and its listener run; its alert log says more."
PDB = frozenset((65011, 65049, 65020, 65024, 65054))


def number_of(exc: BaseException) -> int:
    """Return the number of Oracle's error; 0: it is none.

    What the listener answers, the driver tells in words of its own.
    """
    found = exc.args[0] if exc.args else None
    similar = _SIMILAR.search(str(getattr(found, "message", "")))
    return int(getattr(found, "code", 0) or (similar and similar[1]) or 0)


def text_of(exc: BaseException) -> str:
    """Return an error's text on one line, without the link that the driver adds."""
    found = exc.args[0] if exc.args else None
    text = str(getattr(found, "message", None) or exc)
    lines = [line for line in text.splitlines() if not line.startswith(("Help:", "https://"))]
    return " ".join(" ".join(lines).split()).rstrip(".")


def refusal(place: str, user: str, timeout_ms: int, exc: Exception) -> ConnectError:
    """Return the error of a connection that couldn't be opened."""
    code, text = number_of(exc), text_of(exc)
    what = f"Cannot connect to {place} as '{user}': {text}."
    if code in LOGIN:
        return LoginError(what, "Check database.user and database.password, and that the account isn't locked.")
    if code in NOT_READY:
        return NotReadyError(what, "Wait until the database is open, and check database.dbname.")
    if any(one in text for one in _TIMEOUTS) or isinstance(exc, TimeoutError):
        return ConnectError(f"Cannot connect to {place} as '{user}': no answer within {timeout_ms} ms.", _ADDRESS)
    if "certificate" in text.lower() or "SSL" in text:
        return LoginError(what, "Check database.ssl, database.ssl.wallet and the server's certificate.")
    return ConnectError(what, _ADDRESS)


def statement_error(exc: Exception, doing: str, cure: str = "") -> FloodmarkError:
    """Return the error of a statement that failed.

    Args:
        exc: what the driver raised.
        doing: what the statement was for.
        cure: what helps if the server refuses it, unless that has another reason than rights and settings.
    """
    code, text = number_of(exc), text_of(exc)
    refused = f"The server refused {doing}: {text}."
    if isinstance(exc, OSError) or code in LOST or any(one in text for one in _DRIVER_LOST):
        return ConnectError(f"Lost the connection to the server while {doing}: {text}.", _ALERT_LOG)
    if code in STALE:
        return ConnectError(refused, _ALERT_LOG)
    if code in TOO_LONG or any(one in text for one in _TIMEOUTS):
        return StatementTimeoutError(
            f"The server took too long for {doing}: {text}.", "Raise database.query.timeout.ms."
        )
    if code in READ_POINT_LOST:
        return ReadPointGoneError(refused, "Let undo be kept for longer (undo_retention).")
    if code in LOCKED:
        return LockTimeoutError(refused, "End the session that holds the lock.")
    if code in UNREADABLE:
        return UnreadableLogError(refused, _FILES if code in (UNREADABLE_FILE, NO_DICTIONARY) else _ARCHIVED)
    if code in NO_RIGHT:
        return PrivilegeError(refused, cure or "`floodmark check` lists the statements that grant what is needed.")
    if code in PDB:
        return SourceStateError(refused, "Check database.pdb.name, and that the account is a common one (C##…).")
    return SourceStateError(
        refused, cure or "Oracle Database Error Messages say what the number means, and what helps."
    )


ERRORS = (oracledb.Error, OSError)
"""What the driver raises."""
