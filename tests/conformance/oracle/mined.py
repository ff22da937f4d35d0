"""What a case's changes are to LogMiner, and in Floodmark's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.config import debezium
from floodmark.config.common import CommonOptions
from floodmark.connectors.oracle.ddl.changes import Kind, TableChange, TableName
from floodmark.connectors.oracle.ddl.statements import apply
from floodmark.connectors.oracle.decode.row_changes import CommittedRows
from floodmark.connectors.oracle.decode.rows_of_transactions import rows_of, unbuffered_rows
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.mining.contents_query import ContentsFilter, buffered_query, unbuffered_query
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.statement_pieces import StatementPieces
from floodmark.connectors.oracle.mining.transactions import Committed, MemoryStore, OpenTransactions
from floodmark.connectors.oracle.structures.table import Column, Table, column_of
from floodmark.connectors.oracle.types.settings import OracleSettings
from tests.conformance.oracle.cases.case import SCHEMA, Case
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.sql.session import Session

SESSION = (
    "ALTER SESSION SET NLS_DATE_FORMAT = 'YYYY-MM-DD HH24:MI:SS' NLS_TIMESTAMP_FORMAT = 'YYYY-MM-DD HH24:MI:SS.FF9' "
    "NLS_TIMESTAMP_TZ_FORMAT = 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM' TIME_ZONE = '00:00'"
)
AFTER_SETUP = 3_000_000
"""The change number behind which a case's steps begin."""
PDB = "ORCLPDB1"
_NUMBERS = {
    "SCN",
    "OPERATION_CODE",
    "CSF",
    "ROLLBACK",
    "STATUS",
    "SSN",
    "THREAD#",
    "START_SCN",
    "COMMIT_SCN",
    "SEQUENCE#",
}


class OracleCaseOptions(CommonOptions):
    """The options that every connector has."""

    accepted = debezium.ACCEPTED
    refused = debezium.REFUSED

    @property
    def owner(self) -> str:
        """The name of the source's directory, which nothing writes."""
        return "case"


def changed(case: Case) -> OracleDatabase:
    """Return a database on which all of a case has happened."""
    database = case.prepared()
    for step in case.changes:
        with database.step():
            step(database)
    return database


def settings_of(case: Case) -> OracleSettings:
    """Return what the case's options say of values."""
    given = case.options
    return OracleSettings(
        decimal_handling_mode=given.get("decimal.handling.mode", "precise"),
        time_precision_mode=given.get("time.precision.mode", "adaptive"),
        binary_handling_mode=given.get("binary.handling.mode", "bytes"),
        unavailable_value_placeholder="__debezium_unavailable_value",
        interval_handling_mode=given.get("interval.handling.mode", "numeric"),
    )


def columns_of(session: Session, name: str) -> tuple[Column, ...]:
    """Return a table's columns, by the dictionary."""
    query = (
        "SELECT COLUMN_NAME, DATA_TYPE, NULLABLE, CHAR_LENGTH, DATA_LENGTH, DATA_PRECISION, DATA_SCALE, DATA_DEFAULT "
        "FROM ALL_TAB_COLUMNS WHERE OWNER = :1 AND TABLE_NAME = :2 ORDER BY COLUMN_ID"
    )
    rows = in_the_database(session, query, name)
    return tuple(map(_column_of, rows))


def _column_of(row: Sequence[Any]) -> Column:
    name, data_type, nullable, *numbers, default = row
    length, size, precision, scale = (None if number is None else int(number) for number in numbers)
    return column_of(name, data_type, nullable, length or 0, size or 0, precision, scale, default)


def structures_of(case: Case, database: OracleDatabase) -> Mapping[str, TableStructure]:
    """Return the structures of a case's tables, by their names."""
    session, found = Session(database, database.account), {}
    query = "SELECT COLUMN_NAME FROM ALL_CONS_COLUMNS WHERE OWNER = :1 AND TABLE_NAME = :2 ORDER BY POSITION"
    for name in case.tables:
        key = tuple(row[0] for row in in_the_database(session, query, name))
        table = Table(PDB, SCHEMA, name, columns_of(session, name), key)
        found[f"{SCHEMA}.{name}"] = TableStructure(table, settings_of(case), comments_of(case))
    return found


def comments_of(case: Case) -> bool:
    """Return whether a case includes comments."""
    return case.options.get("include.schema.comments") == "true"


def followed(case: Case, names: Sequence[str]) -> Iterator[tuple[str, TableChange, Mapping[TableName, Table]]]:
    """Yield the changes of structures that LogMiner shows: their statement, and all tables after it.

    Args:
        case: the case.
        names: of the tables that are there when it begins.
    """
    before = structures_of(replace(case, tables=names), case.prepared())
    tables = {(SCHEMA, one.table): one.definition for one in before.values()}
    rows = mined(changed(case))
    for row in rows.filter(pc.equal(rows["OPERATION_CODE"], int(Operation.DDL))).to_pylist():
        for change in apply(row["SQL_REDO"], tables, row["SEG_OWNER"], PDB):
            if change.previous is not None:
                del tables[change.previous]
            if change.kind is Kind.DROP:
                del tables[change.name]
            elif change.table is not None:
                tables[change.name] = change.table
            yield row["SQL_REDO"], change, dict(tables)


def in_the_database(session: Session, query: str, name: str) -> list[Any]:
    """Return the rows of a query of the pluggable database about a table."""
    session.execute(f"alter session set container={PDB}")
    rows = list(session.execute(query, [SCHEMA, name]).rows)
    session.execute("alter session set container=CDB$ROOT")
    return rows


def mined(database: OracleDatabase, adapter: str = "logminer", large_objects: bool = False) -> pa.Table:
    """Return the rows of the view after the setup, as a connector asks for them."""
    buffered = adapter == "logminer"
    session = Session(database, database.account)
    session.execute(SESSION)
    session.execute("BEGIN DBMS_LOGMNR.ADD_LOGFILE(LOGFILENAME => '/redo/redo01.log'); END;")
    upto = str(database.clock.scn)
    session.execute(
        f"BEGIN DBMS_LOGMNR.START_LOGMNR(startScn => '{AFTER_SETUP}', endScn => '{upto}', "
        f"options => DBMS_LOGMNR.DICT_FROM_ONLINE_CATALOG {'' if buffered else '+ DBMS_LOGMNR.COMMITTED_DATA_ONLY '}"
        "+ DBMS_LOGMNR.NO_ROWID_IN_STMT); END;"
    )
    query = (buffered_query if buffered else unbuffered_query)(
        ContentsFilter(pluggable=PDB, large_objects=large_objects)
    )
    result = session.execute(query, [str(AFTER_SETUP), upto])
    names = [one.name for one in result.columns or ()]
    return pa.table({name: _column(name, [row[at] for row in result.rows]) for at, name in enumerate(names)})


def changes_of(case: Case, database: OracleDatabase, piece: int = 7) -> tuple[pa.Table, CommittedRows]:
    """Return what LogMiner shows of a case's committed changes.

    Args:
        case: the case.
        database: on which it has happened.
        piece: how many rows come at once.
    """
    rows = mined(database, case.adapter, case.options.get("lob.enabled") == "true")
    return (
        rows_of(list(committed(rows, piece)))
        if case.adapter == "logminer"
        else unbuffered_rows(StatementPieces().whole(rows))
    )


def committed(rows: pa.Table, piece: int) -> Iterator[Committed]:
    """Yield the transactions that rows decide, which come piece by piece."""
    pieces, transactions = StatementPieces(), OpenTransactions(MemoryStore())
    for begin in range(0, len(rows), piece):
        for one in transactions.add(pieces.whole(rows.slice(begin, piece))):
            if isinstance(one, Committed):
                yield one


def _column(name: str, values: list[Any]) -> pa.Array:
    if name in _NUMBERS:
        return pa.array([None if one is None else int(one) for one in values], pa.int64())
    if name == "XID":
        return pa.array([one.hex() for one in values], pa.string())
    if any(isinstance(one, datetime) for one in values):
        return pa.array(values, pa.timestamp("s"))
    return pa.array([None if one is None else str(one) for one in values], pa.string())
