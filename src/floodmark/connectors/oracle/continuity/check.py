"""Whether a database still has the log that a position belongs to.

A change number means nothing without the database that it is of, and without the life of that database: opening it
with RESETLOGS, as after a restore, a flashback or a fail-over, begins another one, in which numbers are used again.
"""

from __future__ import annotations

from floodmark.connectors.oracle.continuity.resume_point import ResumePoint
from floodmark.connectors.oracle.mining.log_queries import deleted_logs, oldest_scn
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.server.connection import Connection, run, value
from floodmark.connectors.oracle.server.database import Database, read_database
from floodmark.errors import ForkedLogError, LogGoneError

NEW_SNAPSHOT = "set snapshot.mode=when_needed, which takes a new snapshot, or start with a new checkpoint"
ANOTHER = (
    "Connect to the database that the checkpoint was written for. snapshot.mode=when_needed doesn't help: start with a "
    "new checkpoint and write to a new target."
)


def prove(conn: Connection, position: str, known: ResumePoint | None) -> Database:
    """Verify that a database's log goes on behind a position; return the database.

    Args:
        conn: the connection.
        position: what follows it is wanted.
        known: what the offset says of it; None: nothing.

    Raises:
        ForkedLogError: it is another database, or it was restored to an earlier time.
        LogGoneError: it was opened with RESETLOGS since, so what follows is in an earlier life's logs.
    """
    found = read_database(conn)
    scn = Position.parse(position).scn
    if known is not None and known.database != found.identity:
        _refuse_other(found, scn, known)
    now = found.scn
    if scn > now + 1:
        raise ForkedLogError(
            f"The database {found.name} is at the change number {now}, before {scn - 1}, which the query has reached: "
            "it was restored to an earlier time.",
            ANOTHER,
        )
    return found


def _refuse_other(found: Database, scn: int, known: ResumePoint) -> None:
    number = known.database.partition("-")[0]
    if number != str(found.number):
        raise ForkedLogError(
            f"The database is another one: {found.name}, with the DBID {found.number}; the checkpoint's is {number}.",
            ANOTHER,
        )
    if found.resetlogs <= scn - 1:
        raise ForkedLogError(
            f"The database {found.name} was opened with RESETLOGS at the change number {found.resetlogs}, and the "
            f"query has delivered changes up to {scn - 1}, which are not part of it any more.",
            ANOTHER,
        )
    raise LogGoneError(
        f"The database {found.name} was opened with RESETLOGS at the change number {found.resetlogs}; the query has "
        f"come to {scn - 1}, and the logs between them belong to the database's earlier life.",
        f"Ways out: {NEW_SNAPSHOT}.",
    )


def prove_kept(conn: Connection, begin: int, hours: int, destinations: tuple[str, ...]) -> None:
    """Verify that the logs go back to a number.

    Args:
        conn: the connection.
        begin: the changes behind this number are wanted.
        hours: the option ``archive.log.hours``.
        destinations: names of the archive destinations.

    Raises:
        LogGoneError: they don't.
    """
    oldest = value(conn, oldest_scn(hours, destinations), "looking for the oldest log")
    if oldest is not None and int(oldest) <= begin + 1:
        return
    deleted = run(conn, deleted_logs(begin + 1, destinations), "looking for deleted logs")
    names = f" Deleted: {', '.join(str(row[0]) for row in deleted)}." if deleted else ""
    place = "there are no logs" if oldest is None else f"the oldest log begins at {int(oldest)}"
    raise LogGoneError(
        f"The query needs the log behind the change number {begin}, where the oldest transaction began that is not "
        f"delivered, but {place}.{names}",
        "Ways out: restore the archived logs (RMAN: RESTORE ARCHIVELOG FROM SCN "
        f"{begin}), raise archive.log.hours, or {NEW_SNAPSHOT}.",
    )
