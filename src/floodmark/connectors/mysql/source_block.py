"""The ``source`` block of MySQL's and MariaDB's events, with Debezium 3.6's fields and order."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from floodmark._version import __version__
from floodmark.events.connect_schema import field_schema, source_struct
from floodmark.events.json_text import dumps
from floodmark.json_data import Json

_STRING = {"type": "string"}
_INT64 = {"type": "int64"}
_CLASSES = {"mysql": "io.debezium.connector.mysql.Source", "mariadb": "io.debezium.connector.mariadb.Source"}


@lru_cache(maxsize=2)
def source_schema(flavor: Literal["mysql", "mariadb"]) -> dict[str, Json]:
    """Return the Connect schema of the source block."""
    return source_struct(
        [
            field_schema(_STRING, True, "table"),
            field_schema(_INT64, False, "server_id"),
            field_schema(_STRING, True, "gtid"),
            field_schema(_STRING, False, "file"),
            field_schema(_INT64, False, "pos"),
            field_schema({"type": "int32"}, False, "row"),
            field_schema(_INT64, True, "thread"),
            field_schema(_STRING, True, "query"),
        ],
        _CLASSES[flavor],
    )


def head(flavor: str, prefix: str) -> str:
    """Return the beginning of every source block, up to its time in milliseconds."""
    return f'{{"version":"{__version__}","connector":"{flavor}","name":{dumps(prefix)},"ts_ms":'


def table_pieces(database: str, table: str) -> tuple[str, str]:
    """Return the parts of a source block that name database and table."""
    return f'{dumps(database)},"sequence":null,"ts_us":', f'{dumps(table)},"server_id":'


def snapshot_block(
    flavor: str,
    prefix: str,
    names: tuple[str, str],
    micros: int,
    marker: str,
    gtid: str | None,
    file: str,
    offset: int,
) -> str:
    """Return the source block of a snapshot's rows, the same for all rows of a chunk.

    Args:
        flavor: ``mysql`` or ``mariadb``.
        prefix: the option ``topic.prefix``.
        names: ``table_pieces`` of the table.
        micros: when the rows were read, microseconds since the epoch.
        marker: value of the field ``snapshot``.
        gtid: the GTIDs that had been executed; None without GTIDs.
        file: name of the binlog file of the read point.
        offset: the read point's offset in the file.
    """
    database, table = names
    shown = "null" if gtid is None else dumps(gtid)
    return (
        f'{head(flavor, prefix)}{micros // 1000},"snapshot":"{marker}","db":{database}{micros},"ts_ns":{micros}000,'
        f'"table":{table}0,"gtid":{shown},"file":{dumps(file)},"pos":{offset},"row":0,"thread":null,"query":null}}'
    )


def statement_block(
    flavor: str,
    prefix: str,
    database: str,
    tables: str | None,
    micros: int,
    server: int,
    gtid: str | None,
    file: str,
    offset: int,
    thread: int,
) -> str:
    """Return the source block of a statement about tables.

    Args:
        flavor: ``mysql`` or ``mariadb``.
        prefix: the option ``topic.prefix``.
        database: the database that it concerns; empty for the whole server.
        tables: names of the tables that it changes; None for null.
        micros: when it was committed, microseconds since the epoch.
        server: id of the server that ran it.
        gtid: its GTID; None without.
        file: name of its binlog file.
        offset: its offset in the file.
        thread: id of the session's thread; negative for null.
    """
    named, shown = ("null" if text is None else dumps(text) for text in (tables, gtid))
    return (
        f'{head(flavor, prefix)}{micros // 1000},"snapshot":"false","db":{dumps(database)},"sequence":null,'
        f'"ts_us":{micros},"ts_ns":{micros}000,"table":{named},"server_id":{server},"gtid":{shown},'
        f'"file":{dumps(file)},"pos":{offset},"row":0,"thread":{"null" if thread < 0 else thread},"query":null}}'
    )


def read_statement_block(
    flavor: str, prefix: str, database: str, tables: str | None, micros: int, file: str, offset: int
) -> str:
    """Return the source block of a statement that describes what a snapshot has read.

    Args:
        flavor: ``mysql`` or ``mariadb``.
        prefix: the option ``topic.prefix``.
        database: the database that it concerns; empty for the whole server.
        tables: the table's name; None for null.
        micros: when it was read, microseconds since the epoch.
        file: name of the binlog file of the read point.
        offset: the read point's offset in the file.
    """
    named = "null" if tables is None else dumps(tables)
    return (
        f'{head(flavor, prefix)}{micros // 1000},"snapshot":"true","db":{dumps(database)},"sequence":null,'
        f'"ts_us":{micros},"ts_ns":{micros}000,"table":{named},"server_id":0,"gtid":null,"file":{dumps(file)},'
        f'"pos":{offset},"row":0,"thread":null,"query":null}}'
    )
