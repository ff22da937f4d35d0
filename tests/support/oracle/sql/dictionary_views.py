"""The views of tables, columns and keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.support.oracle.model.database import ROOT
from tests.support.oracle.model.tables import Column, Table
from tests.support.oracle.model.types import UNSET_SCALE
from tests.support.oracle.sql.view import view

if TYPE_CHECKING:
    from tests.support.oracle.sql.session import Session

Rows = list[dict[str, Any]]


def _tables(session: Session) -> Iterable[Table]:
    return session.database.visible_tables(session.container)


def _all_tables(session: Session) -> Rows:
    return [
        {
            "OWNER": one.owner,
            "TABLE_NAME": one.name,
            "TABLESPACE_NAME": "USERS",
            "IOT_NAME": None,
            "IOT_TYPE": None,
            "TABLE_TYPE": None,
            "NESTED": "NO",
            "TEMPORARY": "Y" if one.temporary else "N",
            "BLOCKS": one.blocks,
            "NUM_ROWS": len(list(one.rows_at(session.database.clock.scn))),
            "PARTITIONED": "NO",
        }
        for one in _tables(session)
    ]


def _user_tables(session: Session) -> Rows:
    return [row for row in _all_tables(session) if row["OWNER"] == session.user]


def _objects(session: Session) -> Rows:
    clock = session.database.clock
    return [
        {
            "OWNER": one.owner,
            "OBJECT_NAME": one.name,
            "OBJECT_ID": one.object_id,
            "DATA_OBJECT_ID": one.data_object_id,
            "OBJECT_TYPE": "TABLE",
            "LAST_DDL_TIME": clock.time_of(max(one.changed_scn, 1)),
            "STATUS": "VALID",
        }
        for one in _tables(session)
    ]


def _columns(session: Session) -> Rows:
    return [
        {
            "OWNER": table.owner,
            "TABLE_NAME": table.name,
            "COLUMN_NAME": one.name,
            "COLUMN_ID": number,
            "INTERNAL_COLUMN_ID": number,
            "HIDDEN_COLUMN": "NO",
            "VIRTUAL_COLUMN": "NO",
            "NULLABLE": "Y" if one.nullable else "N",
            "DATA_DEFAULT": one.default or None,
            "IDENTITY_COLUMN": "NO",
            **_type(one),
        }
        for table in _tables(session)
        for number, one in enumerate(table.structure.columns, 1)
    ]


def _type(column: Column) -> dict[str, Any]:
    type_ = column.type
    is_text = type_.base in {"CHAR", "VARCHAR2", "NCHAR", "NVARCHAR2"}
    return {
        "DATA_TYPE": type_.name,
        "DATA_TYPE_OWNER": "SYS" if type_.base == "XMLTYPE" else None,
        "DATA_LENGTH": type_.length or 22,
        "CHAR_LENGTH": type_.length if is_text else 0,
        "CHAR_USED": "B" if is_text else None,
        "DATA_PRECISION": None if type_.base == "NUMBER" and "*" in type_.text else type_.precision,
        "DATA_SCALE": None if type_.scale == UNSET_SCALE else type_.scale,
    }


def _constraints(session: Session) -> Rows:
    return [
        {
            "OWNER": one.owner,
            "TABLE_NAME": one.name,
            "CONSTRAINT_NAME": f"SYS_C{one.object_id}",
            "CONSTRAINT_TYPE": "P",
            "STATUS": "ENABLED",
            "INDEX_NAME": f"SYS_C{one.object_id}",
        }
        for one in _tables(session)
        if one.structure.key
    ]


def _constraint_columns(session: Session) -> Rows:
    return [
        {
            "OWNER": one.owner,
            "TABLE_NAME": one.name,
            "CONSTRAINT_NAME": f"SYS_C{one.object_id}",
            "COLUMN_NAME": name,
            "POSITION": number,
        }
        for one in _tables(session)
        for number, name in enumerate(one.structure.key, 1)
    ]


def _procedures(session: Session) -> Rows:
    account = session.database.accounts.get(session.user)
    names = ("DBMS_LOGMNR", "DBMS_LOGMNR_D")
    return [{"OWNER": "SYS", "OBJECT_NAME": name} for name in names if account is None or name not in account.denied]


def _log_groups(session: Session) -> Rows:
    return [
        {
            "OWNER": one.owner,
            "TABLE_NAME": one.name,
            "LOG_GROUP_NAME": f"SYS_C{one.object_id}",
            "LOG_GROUP_TYPE": "ALL COLUMN LOGGING",
            "ALWAYS": "ALWAYS",
            "GENERATED": "GENERATED NAME",
        }
        for one in _tables(session)
        if one.structure.supplemental
    ]


def _database_parameters(session: Session) -> Rows:
    settings = session.database.settings
    found = {
        "NLS_CHARACTERSET": settings.charset,
        "NLS_NCHAR_CHARACTERSET": settings.national_charset,
        "NLS_RDBMS_VERSION": settings.version,
    }
    return [{"PARAMETER": name, "VALUE": value} for name, value in found.items()]


def _containers(session: Session) -> Rows:
    database = session.database
    names = [ROOT, "PDB$SEED", database.pluggable] if database.pluggable else []
    return [{"CON_ID": number, "NAME": name, "OPEN_MODE": "READ WRITE"} for number, name in enumerate(names, 1)]


def _outbound(session: Session) -> Rows:
    return [
        {
            "SERVER_NAME": name,
            "CONNECT_USER": one.user,
            "STATUS": one.status,
            "COMMITTED_DATA_ONLY": "YES" if one.committed_only else "NO",
            "SOURCE_DATABASE": session.database.home,
            "PROCESSED_LOW_POSITION": one.low or None,
            "PROCESSED_LOW_SCN": one.low_scn,
        }
        for name, one in session.database.outbound_servers.items()
        if one.user in ("", session.user) and session.container == ROOT
    ]


def _version(session: Session) -> Rows:
    version = session.database.settings.version
    return [
        {
            "PRODUCT": "Oracle Database 19c Enterprise Edition",
            "VERSION": version,
            "VERSION_FULL": version,
            "STATUS": "Production",
        }
    ]


_TABLE = (
    "OWNER TABLE_NAME TABLESPACE_NAME IOT_NAME IOT_TYPE TABLE_TYPE NESTED TEMPORARY NUM_ROWS:N BLOCKS:N PARTITIONED"
)
_COLUMN = (
    "OWNER TABLE_NAME COLUMN_NAME COLUMN_ID:N INTERNAL_COLUMN_ID:N HIDDEN_COLUMN VIRTUAL_COLUMN NULLABLE DATA_DEFAULT "
    "IDENTITY_COLUMN "
    "DATA_TYPE DATA_TYPE_OWNER DATA_LENGTH:N CHAR_LENGTH:N CHAR_USED DATA_PRECISION:N DATA_SCALE:N"
)
DICTIONARY_VIEWS = {
    "DUAL": view("DUMMY", lambda _: [{"DUMMY": "X"}]),
    "ALL_TABLES": view(_TABLE, _all_tables),
    "ALL_ALL_TABLES": view(_TABLE, _all_tables),
    "USER_TABLES": view(_TABLE, _user_tables),
    "ALL_NESTED_TABLES": view("OWNER TABLE_NAME PARENT_TABLE_NAME", lambda _: []),
    "ALL_OBJECTS": view("OWNER OBJECT_NAME OBJECT_ID:N DATA_OBJECT_ID:N OBJECT_TYPE LAST_DDL_TIME:D STATUS", _objects),
    "ALL_TAB_COLS": view(_COLUMN, _columns),
    "ALL_TAB_COLUMNS": view(_COLUMN, _columns),
    "ALL_CONSTRAINTS": view("OWNER TABLE_NAME CONSTRAINT_NAME CONSTRAINT_TYPE STATUS INDEX_NAME", _constraints),
    "ALL_CONS_COLUMNS": view("OWNER TABLE_NAME CONSTRAINT_NAME COLUMN_NAME POSITION:N", _constraint_columns),
    "ALL_LOG_GROUPS": view("OWNER TABLE_NAME LOG_GROUP_NAME LOG_GROUP_TYPE ALWAYS GENERATED", _log_groups),
    "ALL_XSTREAM_OUTBOUND": view("SERVER_NAME CONNECT_USER STATUS COMMITTED_DATA_ONLY SOURCE_DATABASE", _outbound),
    "ALL_XSTREAM_OUTBOUND_PROGRESS": view(
        "SERVER_NAME SOURCE_DATABASE PROCESSED_LOW_POSITION:R PROCESSED_LOW_SCN:N", _outbound
    ),
    "ALL_PROCEDURES": view("OWNER OBJECT_NAME", _procedures),
    "DBA_RECYCLEBIN": view("OWNER OBJECT_NAME ORIGINAL_NAME TYPE", lambda _: []),
    "NLS_DATABASE_PARAMETERS": view("PARAMETER VALUE", _database_parameters),
    "V$PDBS": view("CON_ID:N NAME OPEN_MODE", _containers),
    "V$CONTAINERS": view("CON_ID:N NAME OPEN_MODE", _containers),
    "PRODUCT_COMPONENT_VERSION": view("PRODUCT VERSION VERSION_FULL STATUS", _version),
}
