"""Reports the end of the server's binlog and the pipeline's lag behind it. Only reads."""

from __future__ import annotations

from floodmark.connectors.contract.log_status import LogStatus
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.schema.catalog import read_server
from floodmark.connectors.mysql.server.binlogs import binlogs, file_of, lag_bytes, log_end
from floodmark.connectors.mysql.server.connection import connection
from floodmark.errors import FloodmarkError

_UNKNOWN = "the server does not show whether it is read"


def log_status(options: BinlogOptions, position: str) -> LogStatus:
    """Return the end of the binlog, the pipeline's lag, and any problem with its position.

    Args:
        options: the source's options.
        position: the pipeline's log position; empty for a new pipeline.
    """
    name = f"server id {options.replica_id}"
    try:
        with connection(options) as conn:
            server = read_server(conn)
            end = log_end(conn, server.flavor, server.version)
            shown = f"{end.name}:{end.offset}"
            if not position:
                return LogStatus(name, end=shown, absent=_UNKNOWN)
            place = Position.parse(position)
            files = binlogs(conn)
            lag = lag_bytes(files, place)
            problem = ""
            try:
                file_of(files, place)
            except FloodmarkError as exc:
                problem = exc.what
            return LogStatus(name, end=shown, lag_bytes=lag, absent=_UNKNOWN, problem=problem)
    except FloodmarkError as exc:
        return LogStatus(name, problem=exc.what)
