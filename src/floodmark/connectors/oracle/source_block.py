"""The ``source`` block of Oracle's events, with Debezium 3.6's fields and order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from floodmark._version import __version__
from floodmark.events.connect_schema import field_schema, source_struct
from floodmark.events.json_text import dumps
from floodmark.json_data import Json

_STRING, _INT32, _INT64 = {"type": "string"}, {"type": "int32"}, {"type": "int64"}
_CLASS = "io.debezium.connector.oracle.Source"


@lru_cache(maxsize=1)
def source_schema() -> dict[str, Json]:
    """Return the Connect schema of the source block."""
    return source_struct(
        [
            field_schema(_STRING, False, "schema"),
            field_schema(_STRING, False, "table"),
            field_schema(_STRING, True, "txId"),
            field_schema(_STRING, True, "scn"),
            field_schema(_STRING, True, "commit_scn"),
            field_schema(_STRING, True, "lcr_position"),
            field_schema(_STRING, True, "rs_id"),
            field_schema(_INT64, True, "ssn"),
            field_schema(_INT32, True, "redo_thread"),
            field_schema(_STRING, True, "user_name"),
            field_schema(_STRING, True, "redo_sql"),
            field_schema(_STRING, True, "row_id"),
            field_schema(_INT64, True, "commit_ts_ms"),
            field_schema(_STRING, True, "start_scn"),
            field_schema(_INT64, True, "start_ts_ms"),
            field_schema(_INT64, True, "txSeq"),
        ],
        _CLASS,
    )


def head(prefix: str) -> str:
    """Return the beginning of every source block, up to its time in milliseconds."""
    return f'{{"version":"{__version__}","connector":"oracle","name":{dumps(prefix)},"ts_ms":'


def table_pieces(database: str, owner: str, table: str) -> tuple[str, str]:
    """Return the parts of a source block that name the database and the table."""
    return (
        f'{dumps(database)},"sequence":null,"ts_us":',
        f'000000,"schema":{dumps(owner)},"table":{dumps(table)},"txId":"',
    )


def snapshot_block(prefix: str, database: str, owner: str, table: str, scn: int, micros: int, marker: str) -> str:
    """Return the source block of a snapshot's rows, the same for all rows of a chunk; see ``statement_block``."""
    return statement_block(
        prefix, database, owner, table, scn, micros, marker, '"rs_id":null,"ssn":0,"redo_thread":null', "null"
    )


def statement_block(
    prefix: str,
    database: str,
    owner: str,
    tables: str,
    scn: int,
    micros: int,
    marker: str,
    place: str,
    number: str,
    span: Sequence[int] = (),
    lcr: str = "",
) -> str:
    """Return the source block of what is no change of a row.

    Args:
        prefix: the option ``topic.prefix``.
        database: the database.
        owner: the table's schema.
        tables: its name, or the names of several.
        scn: the number of the statement, or that rows are read as of.
        micros: when that was, in microseconds since the epoch.
        marker: the field ``snapshot``.
        place: the fields ``rs_id``, ``ssn`` and ``redo_thread``.
        number: the field ``txSeq``.
        span: of its transaction, as far as that is known: the number at which it began, and when it began and was
            committed, in seconds since the epoch.
        lcr: the field ``lcr_position``; empty: there is none.
    """
    start_scn, start_ms, commit_ms = _span(*span) if span else ("null", "null", "null")
    return (
        f'{head(prefix)}{micros // 1000},"snapshot":"{marker}","db":{dumps(database)},"sequence":null,'
        f'"ts_us":{micros},"ts_ns":{micros}000,"schema":{dumps(owner)},"table":{dumps(tables)},"txId":null,'
        f'"scn":"{scn}","commit_scn":null,"lcr_position":{dumps(lcr) if lcr else "null"},{place},'
        f'"user_name":null,"redo_sql":null,"row_id":null,"commit_ts_ms":{commit_ms},"start_scn":{start_scn},'
        f'"start_ts_ms":{start_ms},"txSeq":{number}}}'
    )


def _span(start_scn: int, start_seconds: int, commit_seconds: int) -> tuple[str, str, str]:
    return f'"{start_scn}"', f"{start_seconds}000", f"{commit_seconds}000"
