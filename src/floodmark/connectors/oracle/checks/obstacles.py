"""What keeps a database from logging what is needed."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.connectors.contract.findings import Finding, name_list
from floodmark.connectors.oracle.mining.available_logs import available_logs
from floodmark.connectors.oracle.mining.session import GRANT
from floodmark.connectors.oracle.server.catalog import StoredTable
from floodmark.connectors.oracle.server.connection import Connection, run, value
from floodmark.connectors.oracle.server.database import current_scn, read_database, undecided_transactions
from floodmark.errors import FloodmarkError

_LOGGED = frozenset(("YES", "IMPLICIT"))
ARCHIVELOG = "ARCHIVELOG"
_ALL_COLUMNS = "ALL COLUMN LOGGING"


def obstacles(conn: Connection) -> list[Finding]:
    """Return the errors; none if the log has everything.

    Args:
        conn: a connection to where the log is mined.
    """
    found = [log_mode(conn), supplemental_logging(conn)]
    return [one for one in found if one.status == "error"]


def log_mode(conn: Connection) -> Finding:
    """Check that logs are archived."""
    mode = read_database(conn).log_mode
    if mode == ARCHIVELOG:
        return Finding("log mode", "ok", mode)
    return Finding(
        "log mode",
        "error",
        f"The database runs in {mode} mode, in which logs are overwritten.",
        "SHUTDOWN IMMEDIATE; STARTUP MOUNT; ALTER DATABASE ARCHIVELOG; ALTER DATABASE OPEN; (RDS: set a backup "
        "retention period above 0).",
    )


def supplemental_logging(conn: Connection) -> Finding:
    """Check that the log has what LogMiner needs."""
    statement = "SELECT SUPPLEMENTAL_LOG_DATA_MIN, SUPPLEMENTAL_LOG_DATA_ALL FROM V$DATABASE"
    least, every = run(conn, statement, "reading V$DATABASE")[0]
    if every in _LOGGED or least in _LOGGED:
        return Finding("supplemental logging", "ok", "of all columns" if every in _LOGGED else "minimal")
    return Finding(
        "supplemental logging",
        "error",
        "The database has no supplemental logging, without which LogMiner doesn't show changes.",
        "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA; (in the root container). RDS: "
        "EXEC rdsadmin.rdsadmin_util.alter_supplemental_logging('ADD').",
    )


def mining_rights(conn: Connection, destinations: Sequence[str]) -> None:
    """Verify that the account may list the logs and use LogMiner.

    Args:
        conn: a connection to where the log is mined.
        destinations: names of the archive destinations.

    Raises:
        PrivilegeError: it may not.
    """
    available_logs(conn, current_scn(conn), 0, False, destinations)
    try:
        run(conn, "BEGIN SYS.DBMS_LOGMNR.END_LOGMNR(); END;", "asking LogMiner", GRANT)
    except FloodmarkError as exc:
        # That there is no session to end says that one might end it.
        if "ORA-01307" not in exc.what:
            raise


def unlogged_columns(conn: Connection, captured: Sequence[StoredTable]) -> list[Finding]:
    """Check that the log has all columns of changed rows; an update would else show unchanged ones as null.

    Args:
        conn: a connection to the database that has the tables.
        captured: the captured tables.
    """
    everything = value(conn, "SELECT SUPPLEMENTAL_LOG_DATA_ALL FROM V$DATABASE", "reading V$DATABASE")
    if everything in _LOGGED or not captured:
        return []
    query = f"SELECT OWNER, TABLE_NAME FROM ALL_LOG_GROUPS WHERE LOG_GROUP_TYPE = '{_ALL_COLUMNS}'"
    logged = {(row[0], row[1]) for row in run(conn, query, "reading ALL_LOG_GROUPS")}
    lacking = [one.full_name for one in captured if one.name not in logged]
    if not lacking:
        return []
    return [
        Finding(
            "supplemental logging",
            "error",
            f"The log lacks the unchanged columns of {name_list(lacking)}, so updates would show null there.",
            f"ALTER TABLE {lacking[0]} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS; (for each of them).",
        )
    ]


def undecided(conn: Connection) -> list[Finding]:
    """Check that the views show all transactions that are open when a new query begins.

    Args:
        conn: a connection to the database that has the tables.
    """
    names = undecided_transactions(conn)
    if not names:
        return []
    return [
        Finding(
            "open transactions",
            "error",
            f"The database has distributed transactions that were prepared and aren't decided: {name_list(names)}. "
            "Where they began isn't known, so their changes would be lost.",
            "Decide each (COMMIT FORCE 'id' or ROLLBACK FORCE 'id', see DBA_2PC_PENDING), and start again.",
        )
    ]
