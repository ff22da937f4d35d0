"""The query of ``V$LOGMNR_CONTENTS``.

Its texts are Debezium's (``AbstractLogMinerQueryBuilder`` and the classes that extend it), except that quotes in names
are doubled. Some of its conditions exclude less than the options say (they are joined by OR), so what it returns must
be filtered again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from floodmark.connectors.oracle.mining.operations import LARGE_OBJECTS, ROW_CHANGES, Operation
from floodmark.connectors.oracle.sql import constant, is_none_of, is_one_of

BUILT_IN = (
    *("APPQOSSYS", "AUDSYS", "CTXSYS", "DVSYS", "DBSFWUSER", "DBSNMP", "GGSHAREDCAP", "GSMADMIN_INTERNAL", "LBACSYS"),
    *("MDSYS", "OJVMSYS", "OLAPSYS", "ORDDATA", "ORDSYS", "OUTLN", "SYS", "SYSTEM", "VECSYS", "WMSYS", "XDB"),
)
"""Schemas of Oracle's own."""
COLUMNS = (
    *("SCN", "SQL_REDO", "OPERATION_CODE", "TIMESTAMP", "XID", "CSF", "TABLE_NAME", "SEG_OWNER", "OPERATION", "ROW_ID"),
    *("ROLLBACK", "STATUS", "INFO", "SSN", "THREAD#", "DATA_OBJ#", "DATA_OBJV#", "DATA_OBJD#", "START_SCN"),
    *("COMMIT_SCN", "SEQUENCE#"),
)
"""The columns that are always read, in this order."""
TRACKED = ("START_TIMESTAMP", "COMMIT_TIMESTAMP", "RS_ID", "USERNAME", "CLIENT_ID")
"""The columns that options can leave out."""
_STARTS_AND_ENDS = (Operation.START, Operation.COMMIT, Operation.ROLLBACK)
_OTHERS = (Operation.REPLICATION_MARKER, Operation.MISSING_SCN, Operation.UNSUPPORTED)
_NO_INTERNAL_DDL = "OPERATION_CODE = 5 AND INFO NOT LIKE 'INTERNAL DDL%'"
_NO_LOGS_OF_VIEWS = "TABLE_NAME NOT LIKE 'MLOG$%'"
"""Materialized views have logs of their own."""
_NAME = "SEG_OWNER || '.' || TABLE_NAME"
_MARKERS = f"OPERATION_CODE IN ({','.join(map(str, _STARTS_AND_ENDS))})"
_UNKNOWN = "UNKNOWN"
_DDL_INFO = "INFO IN (' DDL', 'USER DDL (PlSql=0 RecDep=0)')"


@dataclass(frozen=True)
class Names:
    """An option's list of what is included, or of what is excluded."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ContentsFilter:
    """What is read of the logs.

    Attributes:
        pluggable: only changes in this pluggable database; empty: there are none.
        large_objects: whether LOB, XML and 32K changes are read (``lob.enabled``).
        by_object: whether names may be replaced by objects' numbers (``log.mining.strategy=hybrid``).
        captured_ddl: whether the filters apply to DDL, too.
        mode: ``log.mining.query.filter.mode``.
        schemas: expressions of schemas.
        tables: expressions of tables, as ``schema.table``.
        users: names of users.
        clients: identifiers of clients.
        signals: the signal tables, as ``schema.table``.
        tracked: those of ``TRACKED`` that are read.
        relevant: whether transactions without changes that are read are left out
            (``internal.log.mining.use.cte.query``).
    """

    pluggable: str = ""
    large_objects: bool = False
    by_object: bool = False
    captured_ddl: bool = False
    mode: Literal["none", "in", "regex"] = "none"
    schemas: Names = Names()
    tables: Names = Names()
    users: Names = Names()
    clients: Names = Names()
    signals: tuple[str, ...] = ()
    tracked: tuple[str, ...] = TRACKED
    relevant: bool = False


RANGE = "SCN > ? AND SCN <= ?"
"""What the query of all changes begins its condition with."""

COMMITTED_RANGE = f"(COMMIT_SCN >= ? AND COMMIT_SCN < ? OR (COMMIT_SCN IS NULL AND {_DDL_INFO}))"
"""What the query of committed changes begins its condition with."""

_STATEMENTS_AND_LACKS = f"OPERATION_CODE IN ({Operation.DDL},{Operation.MISSING_SCN})"
_OF_ALL_SESSIONS = f"({_MARKERS} OR {_STATEMENTS_AND_LACKS})"

_Condition = Callable[[ContentsFilter, Sequence[int]], str]


def buffered_query(chosen: ContentsFilter) -> str:
    """Return the query of all changes; its binds are the numbers that they lie behind, and up to which they go."""
    return _query(chosen, _buffered)


def unbuffered_query(chosen: ContentsFilter) -> str:
    """Return the query of committed changes; its binds are the numbers of the first commit and of the one behind."""
    return _query(chosen, _unbuffered)


def all_changes(chosen: ContentsFilter) -> str:
    """Return ``buffered_query`` with binds as Oracle writes them."""
    return buffered_query(chosen).replace(RANGE, "SCN > :1 AND SCN <= :2", 1)


def committed_changes(chosen: ContentsFilter) -> str:
    """Return ``unbuffered_query`` with binds as Oracle writes them, and without what would lose something.

    Debezium asks for two kinds of DDL only, not for that of PL/SQL, nor for redo that is missing; and its conditions
    about accounts and clients leave statements and the ends of transactions out.
    """
    text = unbuffered_query(replace(chosen, users=Names(), clients=Names()))
    wanted = f"(COMMIT_SCN >= :1 AND COMMIT_SCN < :2 OR (COMMIT_SCN IS NULL AND {_STATEMENTS_AND_LACKS}))"
    sessions = [f"({_OF_ALL_SESSIONS} OR {one})" for one in (*_users(chosen), *_clients(chosen))]
    return " AND ".join([text.replace(COMMITTED_RANGE, wanted, 1), *sessions])


def _query(chosen: ContentsFilter, condition: _Condition) -> str:
    columns = ", ".join([*COLUMNS, *(name for name in TRACKED if name in chosen.tracked)])
    where = condition(chosen, _operations(chosen, markers=True))
    if not chosen.relevant:
        return f"SELECT {columns} FROM V$LOGMNR_CONTENTS WHERE {where}"
    relevant = condition(chosen, _operations(chosen, markers=False))
    return (
        f"WITH relevant_xids AS (SELECT DISTINCT XID as RXID FROM V$LOGMNR_CONTENTS WHERE {relevant}) "
        f"SELECT /*+ ORDERED USE_NL(R) */ {columns} FROM V$LOGMNR_CONTENTS V JOIN relevant_xids R ON R.RXID = V.XID "
        f"WHERE {where}"
    )


def _operations(chosen: ContentsFilter, markers: bool) -> list[int]:
    large = LARGE_OBJECTS if chosen.large_objects else ()
    return sorted([*ROW_CHANGES, *(_STARTS_AND_ENDS if markers else ()), *_OTHERS, *large])


def _buffered(chosen: ContentsFilter, operations: Sequence[int]) -> str:
    users = [_unless_marker(one) for one in (*_users(chosen), *_clients(chosen))]
    filters = [*users, *_schemas(chosen), *_tables(chosen)]
    codes = f"OPERATION_CODE IN ({','.join(map(str, operations))})"
    if chosen.captured_ddl:
        wanted = " AND ".join([f"({codes} OR ({_NO_INTERNAL_DDL}))", *filters])
    else:
        wanted = f"(({' AND '.join([f'({codes})', *filters])}) OR ({_NO_INTERNAL_DDL}))"
    return " AND ".join([RANGE, *_container(chosen), wanted])


def _unbuffered(chosen: ContentsFilter, operations: Sequence[int]) -> str:
    codes = ",".join(map(str, sorted([*operations, Operation.DDL])))
    return " AND ".join(
        [
            COMMITTED_RANGE,
            *_container(chosen),
            f"OPERATION_CODE IN ({codes})",
            *_users(chosen),
            *_clients(chosen),
            *_tables(chosen),
            *_schemas(chosen),
        ]
    )


def _container(chosen: ContentsFilter) -> list[str]:
    return [f"SRC_CON_NAME = {constant(chosen.pluggable)}"] if chosen.pluggable else []


def _unless_marker(condition: str) -> str:
    """Return a condition that the beginnings and ends of transactions don't have to meet."""
    return f"(CASE WHEN {_MARKERS} THEN 1 ELSE CASE WHEN {condition} THEN 1 ELSE 0 END END = 1)"


def _users(chosen: ContentsFilter) -> list[str]:
    return _sessions(chosen, "USERNAME", chosen.users, [_UNKNOWN])


def _clients(chosen: ContentsFilter) -> list[str]:
    return _sessions(chosen, "CLIENT_ID", chosen.clients, [])


def _sessions(chosen: ContentsFilter, column: str, names: Names, always: list[str]) -> list[str]:
    if chosen.mode == "none":
        return []
    if names.include:
        return [is_one_of(f"UPPER({column})", [*always, *map(str.upper, names.include)])]
    if names.exclude:
        return [f"({is_none_of(f'UPPER({column})', list(map(str.upper, names.exclude)))} OR {column} IS NULL)"]
    return []


def _schemas(chosen: ContentsFilter) -> list[str]:
    include, exclude = chosen.schemas.include, chosen.schemas.exclude
    if chosen.mode == "in" and include:
        wanted = [is_one_of("UPPER(SEG_OWNER)", [_UNKNOWN, *map(_plain, include)])]
    elif chosen.mode == "in" and exclude:
        wanted = [is_none_of("UPPER(SEG_OWNER)", [*BUILT_IN, *map(_plain, exclude)])]
    elif chosen.mode == "regex" and include:
        wanted = [f"SEG_OWNER = {constant(_UNKNOWN)}", _like_one_of("SEG_OWNER", include)]
    elif chosen.mode == "regex" and exclude:
        wanted = [is_none_of("SEG_OWNER", BUILT_IN), _like_none_of("SEG_OWNER", exclude)]
    else:
        wanted = [is_none_of("SEG_OWNER", BUILT_IN)]
    return [f"({' OR '.join(['SEG_OWNER IS NULL', *wanted])})"]


def _tables(chosen: ContentsFilter) -> list[str]:
    include, exclude = chosen.tables.include, chosen.tables.exclude
    if chosen.mode == "none" or not (include or exclude):
        return [f"(TABLE_NAME IS NULL OR {_NO_LOGS_OF_VIEWS})"]
    wanted = ["TABLE_NAME IS NULL"]
    if chosen.by_object:
        wanted.append("TABLE_NAME LIKE 'OBJ#%'")
    if not include:
        wanted.append(_NO_LOGS_OF_VIEWS)
    wanted += [f"UPPER({_NAME}) = {constant(name.upper())}" for name in chosen.signals]
    if chosen.mode == "in":
        name = f"UPPER({_NAME})"
        wanted.append(
            is_one_of(name, [*map(_plain, include)]) if include else is_none_of(name, [*map(_plain, exclude)])
        )
    else:
        wanted.append(_like_one_of(_NAME, include) if include else _like_none_of(_NAME, exclude))
    return [f"({' OR '.join(wanted)})"]


def _plain(expression: str) -> str:
    """Return the name that an expression without operators stands for."""
    return expression.replace("\\", "").upper()


def _like_one_of(column: str, expressions: Sequence[str]) -> str:
    return f"({' OR '.join(_like(column, one) for one in expressions)})"


def _like_none_of(column: str, expressions: Sequence[str]) -> str:
    return f"({' AND '.join(f'NOT {_like(column, one)}' for one in expressions)})"


def _like(column: str, expression: str) -> str:
    return f"REGEXP_LIKE({column},{constant(f'^{expression}$')},'i')"
