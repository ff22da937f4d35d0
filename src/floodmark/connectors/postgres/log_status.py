"""Reports the positions of the server's log and of the pipeline's slot. Only reads."""

from __future__ import annotations

from floodmark.connectors.contract.log_status import LogStatus
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import format_lsn, parse_position
from floodmark.connectors.postgres.server import slots
from floodmark.connectors.postgres.server.connection import connection
from floodmark.errors import FloodmarkError


def log_status(options: PostgresOptions, position: str) -> LogStatus:
    """Return the state of the server's log and of the slot.

    Args:
        options: the source's options.
        position: the pipeline's log position; empty for a new pipeline.
    """
    name = options.slot_name
    try:
        with connection(options) as conn:
            end = slots.end_of_log(conn)
            slot = slots.find_slot(conn, name)
    except FloodmarkError as exc:
        return LogStatus(name, problem=exc.what)
    lsn = parse_position(position)[0] if position else None
    lag = None if lsn is None else max(end - lsn, 0)
    problem = ""
    try:
        if slot is not None:
            slots.check_slot(slot, options)
        if lsn is not None:
            slots.check_position(slot, options, lsn)
    except FloodmarkError as exc:
        problem = exc.what
    if slot is None:
        return LogStatus(name, end=format_lsn(end), lag_bytes=lag, problem=problem)
    return LogStatus(name, slot.active_pid is not None, format_lsn(slot.confirmed), format_lsn(end), lag, problem)
