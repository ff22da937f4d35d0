"""Asks a database which logs it has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from floodmark.connectors.oracle.mining.log_queries import minable_logs
from floodmark.connectors.oracle.mining.logs import CURRENT, LogFile, of_destinations
from floodmark.connectors.oracle.server.connection import Connection, run, value
from floodmark.errors import SourceStateError

_ONLINE = "ONLINE"
_GRANTS = "GRANT SELECT ON V_$LOG, V_$LOGFILE, V_$ARCHIVED_LOG and V_$ARCHIVE_DEST_STATUS TO the account."


def archive_destinations(conn: Connection, named: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the destinations whose archived logs are read.

    Args:
        conn: the connection.
        named: the option ``archive.destination.name``; empty: the first one that is local and valid.

    Raises:
        SourceStateError: there is none, or one isn't local and valid.
    """
    rows = run(
        conn,
        "SELECT DEST_NAME, STATUS, TYPE FROM V$ARCHIVE_DEST_STATUS ORDER BY DEST_ID",
        "reading the archive destinations",
        _GRANTS,
    )
    usable = [name for name, status, kind in rows if status == "VALID" and kind == "LOCAL"]
    wrong = [name for name in named if name not in usable]
    if wrong:
        raise SourceStateError(
            f"Option 'archive.destination.name' names {', '.join(wrong)}, which is no local and valid destination.",
            f"There are: {', '.join(usable) or 'none'}.",
        )
    if not usable:
        raise SourceStateError(
            "The database has no archive destination that is local and valid.",
            "Set LOG_ARCHIVE_DEST_1, or the fast recovery area, and check V$ARCHIVE_DEST_STATUS.",
        )
    return tuple(named) or (usable[0],)


def available_logs(
    conn: Connection, after: int, hours: int, archived_only: bool, destinations: Sequence[str]
) -> list[LogFile]:
    """Return the logs that have changes behind a number, each once; an archived copy is preferred.

    Args:
        conn: the connection.
        after: the number.
        hours: only archived logs that are no older; 0: all.
        archived_only: whether the logs that are being written are left out.
        destinations: names of the archive destinations, in the order in which they are preferred.
    """
    rows = run(conn, minable_logs(after, hours, archived_only, destinations), "reading the list of logs", _GRANTS)
    copies: dict[str, list[LogFile]] = defaultdict(list)
    online: list[LogFile] = []
    for name, first, following, _, _, kind, sequence, begins, ends, thread, size, destination in rows:
        is_online = kind == _ONLINE
        end = CURRENT if is_online else int(following)
        dictionary = begins == "YES", ends == "YES"
        log = LogFile(name, int(thread), int(sequence), int(first), end, not is_online, int(size or 0), *dictionary)
        if is_online:
            online.append(log)
        else:
            copies[destination].append(log)
    archived = of_destinations(copies, destinations)
    known = {log.place for log in archived}
    return archived + [log for log in online if log.place not in known]


def largest_log(conn: Connection) -> int:
    """Return the size of the largest online log, in bytes."""
    return int(value(conn, "SELECT MAX(BYTES) FROM V$LOG", "reading the size of the logs", _GRANTS) or 0)
