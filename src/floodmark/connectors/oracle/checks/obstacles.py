"""What keeps a database from logging what is needed."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.connectors.contract.findings import Finding, name_list
from floodmark.connectors.oracle.mining.available_logs import available_logs
from floodmark.connectors.oracle.mining.session import GRANT
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server.catalog import StoredTable
from floodmark.connectors.oracle.server.connection import Connection, at_primary, run, value
from floodmark.connectors.oracle.server.database import (
    NO_PRIMARY_CURE,
    PRIMARY,
    current_scn,
    read_database,
    undecided_transactions,
)
from floodmark.errors import FloodmarkError

_LOGGED = frozenset(("YES", "IMPLICIT"))
ARCHIVELOG = "ARCHIVELOG"
ROLE = "role"
_PHYSICAL = "PHYSICAL STANDBY"
_ALL_COLUMNS = "ALL COLUMN LOGGING"


def obstacles(conn: Connection) -> list[Finding]:
    """Return the errors; none if the log has everything.

    Args:
        conn: a connection to where the log is mined.
    """
    found = [log_mode(conn), supplemental_logging(conn)]
    return [one for one in found if one.status == "error"]


def standby(conn: Connection, options: OracleOptions) -> list[Finding]:
    """Check that the addresses lead to a primary, and to its standby if that is mined.

    Args:
        conn: a connection to where the log is mined.
        options: the source's options.
    """
    mined = read_database(conn)
    with at_primary(options, conn) as other:
        database = read_database(other)
    if database.is_standby:
        text = f"The database {database.name} is a standby ({database.role}): what changes is in its primary's log."
        return [Finding(ROLE, "error", text, NO_PRIMARY_CURE)]
    if mined.identity != database.identity:
        text = f"secondary.* leads to another database ({mined.name}, {mined.identity}) than database.* does "
        text += f"({database.name}, {database.identity})."
        return [Finding(ROLE, "error", text, "Correct the addresses, or wait until the standby follows its primary.")]
    if mined.role not in (PRIMARY, _PHYSICAL) and options.mines_standby:
        text = f"secondary.* leads to a {mined.role}, whose log isn't its primary's."
        return [Finding(ROLE, "error", text, "Name a physical standby, or set capture.mode=primary.")]
    return [Finding(ROLE, "ok", f"{database.role}, mined on {mined.role}" if options.mines_standby else database.role)]


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
