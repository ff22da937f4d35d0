"""What the database is, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from floodmark.connectors.oracle.server.connection import Connection, run, value

_IDENTITY = "SELECT DBID, RESETLOGS_CHANGE#, DATABASE_ROLE, OPEN_MODE, LOG_MODE, NAME, CURRENT_SCN FROM V$DATABASE"
_GRANTS = "GRANT SELECT ON V_$DATABASE TO the account, in all containers (CONTAINER=ALL)."
PRIMARY = "PRIMARY"
STANDBYS = frozenset(("PHYSICAL STANDBY", "SNAPSHOT STANDBY"))
"""Copies of another database, with its identity; a logical standby is a database of its own."""
NO_PRIMARY_CURE = (
    "Let database.* lead to the primary, at best by a service that follows it. To mine on the standby, set "
    "capture.mode=physical_standby, and its address in secondary.hostname or secondary.url."
)


@dataclass(frozen=True)
class Database:
    """A database.

    Attributes:
        number: its ``DBID``; a clone that was opened as one of its own has another.
        resetlogs: the change number at which its incarnation began: it is another one once the log was reset.
        role: ``PRIMARY``, or what kind of standby it is.
        open_mode: such as ``READ WRITE``.
        log_mode: ``ARCHIVELOG`` if logs are archived.
        name: its name.
        scn: the newest change number then.
    """

    number: int
    resetlogs: int
    role: str
    open_mode: str
    log_mode: str
    name: str
    scn: int

    @property
    def identity(self) -> str:
        """What changes when change numbers may mean something else."""
        return f"{self.number}-{self.resetlogs}"

    @property
    def is_standby(self) -> bool:
        """Whether it is a copy of another one, and has no redo of its own, or only for a while."""
        return self.role in STANDBYS


def read_database(conn: Connection) -> Database:
    """Return what a connection leads to."""
    number, resetlogs, role, open_mode, log_mode, name, scn = run(conn, _IDENTITY, "reading V$DATABASE", _GRANTS)[0]
    return Database(int(number), int(resetlogs), role, open_mode, log_mode, name, int(scn))


def current_scn(conn: Connection) -> int:
    """Return the newest change number."""
    return int(value(conn, "SELECT CURRENT_SCN FROM V$DATABASE", "reading the current change number", _GRANTS))


def utc_offset_s(conn: Connection) -> int:
    """Return how many seconds the database's clock is ahead of UTC: times in its log and its views are by that."""
    statement = "SELECT TO_CHAR(SYSTIMESTAMP, 'TZH:TZM') FROM DUAL"
    return _offset_s(str(value(conn, statement, "reading the database's time zone")))


def _offset_s(text: str) -> int:
    hours, _, minutes = text.lstrip("+-").partition(":")
    seconds = int(hours) * 3600 + int(minutes) * 60
    return -seconds if text.startswith("-") else seconds


def micros_of(conn: Connection, scn: int) -> int:
    """Return when a number was the newest, in microseconds since the epoch, as exactly as the server knows it.

    Raises:
        SourceStateError: the server doesn't know it any more.
    """
    statement = (
        f"SELECT TO_CHAR(SCN_TO_TIMESTAMP({scn}), 'YYYY-MM-DD HH24:MI:SS'), TO_CHAR(SYSTIMESTAMP, 'TZH:TZM') FROM DUAL"
    )
    time, zone = run(conn, statement, "the time of a change number")[0]
    local = datetime.fromisoformat(time).replace(tzinfo=UTC)
    return (int(local.timestamp()) - _offset_s(zone)) * 1_000_000


@dataclass(frozen=True)
class RedoThread:
    """A redo thread, which belongs to an instance.

    Attributes:
        number: its number.
        status: ``OPEN`` or ``CLOSED``.
        enabled: ``PUBLIC``, ``PRIVATE`` or ``DISABLED``.
        enabled_scn: when it was enabled.
        disabled_scn: when it was disabled; 0: it wasn't.
        checkpoint_scn: up to where a closed thread's log goes.
        last_scn: the newest change in its log.
    """

    number: int
    status: str
    enabled: str
    enabled_scn: int
    disabled_scn: int
    checkpoint_scn: int
    last_scn: int

    @property
    def is_open(self) -> bool:
        """Whether its instance runs."""
        return self.status == "OPEN"


def read_threads(conn: Connection) -> list[RedoThread]:
    """Return the redo threads."""
    statement = (
        "SELECT THREAD#, STATUS, ENABLED, ENABLE_CHANGE#, DISABLE_CHANGE#, CHECKPOINT_CHANGE#, LAST_REDO_CHANGE# "
        "FROM V$THREAD ORDER BY THREAD#"
    )
    rows = run(conn, statement, "reading V$THREAD", "GRANT SELECT ON V_$THREAD TO the account.")
    return [RedoThread(int(row[0]), row[1], row[2], *(int(number or 0) for number in row[3:])) for row in rows]


def oldest_open_transaction(conn: Connection) -> int | None:
    """Return the number at which the oldest transaction began that is open on any instance; None: none is."""
    oldest = value(
        conn,
        "SELECT MIN(START_SCN) FROM GV$TRANSACTION WHERE START_SCN > 0",
        "reading GV$TRANSACTION",
        "GRANT SELECT ON GV_$TRANSACTION TO the account, or set log.mining.transaction.snapshot.boundary.mode=skip, "
        "which loses the changes that open transactions have made before the query begins.",
    )
    return None if oldest is None else int(oldest)


def undecided_transactions(conn: Connection) -> list[str]:
    """Return the distributed transactions that were prepared, and of which no view says where they began.

    That is so once the instance that prepared them was restarted, until they are decided.

    Args:
        conn: a connection to the database that has the tables.
    """
    statement = (
        "SELECT P.LOCAL_TRAN_ID FROM DBA_2PC_PENDING P WHERE P.STATE = 'prepared' AND NOT EXISTS (SELECT 1 FROM "
        "GV$TRANSACTION T WHERE T.XIDUSN || '.' || T.XIDSLOT || '.' || T.XIDSQN = P.LOCAL_TRAN_ID) ORDER BY 1"
    )
    grant = "GRANT SELECT_CATALOG_ROLE, or SELECT ON DBA_2PC_PENDING and GV_$TRANSACTION, TO the account."
    return [str(name) for (name,) in run(conn, statement, "looking for undecided transactions", grant)]
