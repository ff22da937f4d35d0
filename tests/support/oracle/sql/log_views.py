"""The views of logs, threads and the instance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.support.oracle.model.database import xid_numbers
from tests.support.oracle.model.logs import RedoLog, RedoThread
from tests.support.oracle.sql.view import view

if TYPE_CHECKING:
    from tests.support.oracle.sql.session import Session

Rows = list[dict[str, Any]]
PLACE_IN_LOG = "PLACE_IN_LOG#"
"""A row's place in LogMiner's view, which has an order."""
BLOCK = 512


def _database(session: Session) -> Rows:
    database = session.database
    settings = database.settings
    return [
        {
            "DBID": settings.database_id,
            "NAME": settings.name,
            "DB_UNIQUE_NAME": settings.name,
            "LOG_MODE": settings.log_mode,
            "CURRENT_SCN": database.clock.scn,
            "RESETLOGS_CHANGE#": settings.resetlogs,
            "RESETLOGS_TIME": database.clock.time_of(1),
            "SUPPLEMENTAL_LOG_DATA_MIN": settings.supplemental_min,
            "SUPPLEMENTAL_LOG_DATA_ALL": settings.supplemental_all,
            "SUPPLEMENTAL_LOG_DATA_PK": "NO",
            "DATABASE_ROLE": settings.role,
            "OPEN_MODE": settings.open_mode,
            "FORCE_LOGGING": settings.force_logging,
            "CDB": "YES" if database.pluggable else "NO",
        }
    ]


def _threads(session: Session) -> Rows:
    clock = session.database.clock
    return [
        {
            "THREAD#": one.number,
            "STATUS": one.status,
            "ENABLED": one.enabled,
            "GROUPS": len(one.groups),
            "INSTANCE": f"inst{one.number}",
            "OPEN_TIME": clock.time_of(one.enabled_scn),
            "CURRENT_GROUP#": one.current.group,
            "SEQUENCE#": one.current.sequence,
            "CHECKPOINT_CHANGE#": one.checkpoint_scn,
            "CHECKPOINT_TIME": clock.time_of(one.checkpoint_scn),
            "ENABLE_CHANGE#": one.enabled_scn,
            "ENABLE_TIME": clock.time_of(one.enabled_scn),
            "DISABLE_CHANGE#": one.disabled_scn,
            "LAST_REDO_SEQUENCE#": one.current.sequence,
            "LAST_REDO_BLOCK": 10,
            "LAST_REDO_CHANGE#": one.last_redo_scn,
            "LAST_REDO_TIME": clock.time_of(one.last_redo_scn),
            "CON_ID": 0,
        }
        for one in session.database.threads.values()
    ]


def _online(session: Session) -> Iterator[tuple[RedoThread, RedoLog]]:
    for thread in session.database.threads.values():
        for group in sorted(thread.online):
            yield thread, thread.online[group]


def _logs(session: Session) -> Rows:
    clock = session.database.clock
    return [
        {
            "GROUP#": log.group,
            "THREAD#": log.thread,
            "SEQUENCE#": log.sequence,
            "BYTES": thread.log_bytes,
            "BLOCKSIZE": BLOCK,
            "MEMBERS": 1,
            "ARCHIVED": "YES" if log.archived else "NO",
            "STATUS": "CURRENT" if log.is_current else "INACTIVE",
            "FIRST_CHANGE#": log.first,
            "FIRST_TIME": clock.time_of(log.first),
            "NEXT_CHANGE#": log.next,
        }
        for thread, log in _online(session)
    ]


def _log_files(session: Session) -> Rows:
    return [
        {"GROUP#": group, "STATUS": None, "TYPE": "ONLINE", "MEMBER": thread.member(group)}
        for thread in session.database.threads.values()
        for group in thread.groups
    ]


def _archived(session: Session) -> Rows:
    database = session.database
    numbers = {one.name: one.number for one in database.destinations}
    return [
        {
            "NAME": None if name in log.deleted else path,
            "DEST_ID": numbers[name],
            "THREAD#": log.thread,
            "SEQUENCE#": log.sequence,
            "RESETLOGS_CHANGE#": log.resetlogs,
            "RESETLOGS_TIME": database.clock.time_of(1),
            "FIRST_CHANGE#": log.first,
            "FIRST_TIME": database.clock.time_of(log.first),
            "NEXT_CHANGE#": log.next,
            "NEXT_TIME": database.clock.time_of(log.next),
            "BLOCKS": thread.log_bytes // BLOCK,
            "BLOCK_SIZE": BLOCK,
            "ARCHIVED": "YES",
            "DELETED": "YES" if name in log.deleted else "NO",
            "STATUS": "D" if name in log.deleted else "A",
            "DICTIONARY_BEGIN": "YES" if log.begun else "NO",
            "DICTIONARY_END": "YES" if log.ended else "NO",
        }
        for thread in database.threads.values()
        for log in thread.logs
        for name, path in log.archived.items()
    ]


def _destinations(session: Session) -> Rows:
    return [
        {"DEST_ID": one.number, "DEST_NAME": one.name, "STATUS": one.status, "TYPE": one.type}
        for one in session.database.destinations
    ]


def _transactions(session: Session) -> Rows:
    return [
        {
            "XID": bytes.fromhex(one.xid),
            **dict(zip(("XIDUSN", "XIDSLOT", "XIDSQN"), xid_numbers(one.xid), strict=True)),
            "START_SCN": one.start_scn,
            "STATUS": "ACTIVE",
            "INST_ID": 1,
        }
        for one in session.database.transactions.values()
        if not one.in_doubt
    ]


def _sessions(session: Session) -> Rows:
    return [{"SID": number, "SERIAL#": 1, "PROGRAM": one.program} for number, one in session.database.sessions.items()]


def _pending(session: Session) -> Rows:
    return [
        {"LOCAL_TRAN_ID": ".".join(map(str, xid_numbers(one.xid))), "STATE": "prepared"}
        for one in session.database.transactions.values()
        if one.in_doubt
    ]


def _parameters(session: Session) -> Rows:
    settings = session.database.settings
    found = {"max_string_size": settings.max_string_size, "undo_retention": "900", "db_name": settings.name}
    return [{"NAME": name, "VALUE": value} for name, value in found.items()]


def _contents(session: Session) -> Rows:
    rows = session.logminer.contents(session.formats)
    for place, row in enumerate(rows):
        row["XID"] = bytes.fromhex(row["XID"])
        row[PLACE_IN_LOG] = place
    return rows


def _statistics(session: Session) -> Rows:
    names = ("session uga memory", "session uga memory max", "session pga memory", "session pga memory max")
    return [{"STATISTIC#": number, "NAME": name, "VALUE": 1_000_000} for number, name in enumerate(names)]


LOG_VIEWS = {
    "V$DATABASE": view(
        "DBID:N NAME DB_UNIQUE_NAME LOG_MODE CURRENT_SCN:N RESETLOGS_CHANGE#:N RESETLOGS_TIME:D "
        "SUPPLEMENTAL_LOG_DATA_MIN SUPPLEMENTAL_LOG_DATA_ALL SUPPLEMENTAL_LOG_DATA_PK DATABASE_ROLE OPEN_MODE "
        "FORCE_LOGGING CDB",
        _database,
    ),
    "V$THREAD": view(
        "THREAD#:N STATUS ENABLED GROUPS:N INSTANCE OPEN_TIME:D CURRENT_GROUP#:N SEQUENCE#:N CHECKPOINT_CHANGE#:N "
        "CHECKPOINT_TIME:D ENABLE_CHANGE#:N ENABLE_TIME:D DISABLE_CHANGE#:N DISABLE_TIME:D LAST_REDO_SEQUENCE#:N "
        "LAST_REDO_BLOCK:N LAST_REDO_CHANGE#:N LAST_REDO_TIME:D CON_ID:N",
        _threads,
    ),
    "V$LOG": view(
        "GROUP#:N THREAD#:N SEQUENCE#:N BYTES:N BLOCKSIZE:N MEMBERS:N ARCHIVED STATUS FIRST_CHANGE#:N FIRST_TIME:D "
        "NEXT_CHANGE#:N NEXT_TIME:D",
        _logs,
    ),
    "V$LOGFILE": view("GROUP#:N STATUS TYPE MEMBER", _log_files),
    "V$ARCHIVED_LOG": view(
        "NAME DEST_ID:N THREAD#:N SEQUENCE#:N RESETLOGS_CHANGE#:N RESETLOGS_TIME:D FIRST_CHANGE#:N FIRST_TIME:D "
        "NEXT_CHANGE#:N NEXT_TIME:D BLOCKS:N BLOCK_SIZE:N ARCHIVED DELETED STATUS DICTIONARY_BEGIN DICTIONARY_END",
        _archived,
    ),
    "V$ARCHIVE_DEST_STATUS": view("DEST_ID:N DEST_NAME STATUS TYPE", _destinations),
    "V$TRANSACTION": view("XID:R XIDUSN:N XIDSLOT:N XIDSQN:N START_SCN:N STATUS", _transactions),
    "GV$TRANSACTION": view("INST_ID:N XID:R XIDUSN:N XIDSLOT:N XIDSQN:N START_SCN:N STATUS", _transactions),
    "V$SESSION": view("SID:N SERIAL#:N PROGRAM", _sessions),
    "DBA_2PC_PENDING": view("LOCAL_TRAN_ID STATE", _pending),
    "V$PARAMETER": view("NAME VALUE", _parameters),
    "V$LOGMNR_LOGS": view("FILENAME", lambda session: [{"FILENAME": name} for name in session.logminer.files]),
    "V$LOGMNR_CONTENTS": view(
        "SCN:N SQL_REDO OPERATION_CODE:N TIMESTAMP:D XID:R CSF:N TABLE_NAME SEG_NAME SEG_OWNER OPERATION ROW_ID "
        "ROLLBACK:N STATUS:N INFO SSN:N THREAD#:N DATA_OBJ#:N DATA_OBJV#:N DATA_OBJD#:N START_SCN:N COMMIT_SCN:N "
        f"SEQUENCE#:N START_TIMESTAMP:D COMMIT_TIMESTAMP:D RS_ID USERNAME CLIENT_ID SRC_CON_NAME {PLACE_IN_LOG}:N",
        _contents,
    ),
    "V$STATNAME": view("STATISTIC#:N NAME", _statistics),
    "V$MYSTAT": view("STATISTIC#:N VALUE:N", _statistics),
}
