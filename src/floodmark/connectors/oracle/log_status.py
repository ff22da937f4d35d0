"""Reports the newest change of the database and the pipeline's distance from it. Only reads."""

from __future__ import annotations

from floodmark.connectors.contract.log_status import LogStatus
from floodmark.connectors.oracle.continuity.check import prove
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.server.connection import at_primary, connection
from floodmark.connectors.oracle.server.database import current_scn
from floodmark.errors import FloodmarkError

_UNKNOWN = "the server does not show whether it is read"


def log_status(options: OracleOptions, position: str) -> LogStatus:
    """Return the newest change number, the pipeline's distance from it, and any problem with its position.

    Args:
        options: the source's options.
        position: the pipeline's log position; empty for a new pipeline.
    """
    name = f"LogMiner as {options.user}"
    if options.replicates:
        name = f"OpenLogReplicator at {options.replicator_host}:{options.replicator_port}"
    if options.receives_lcrs:
        name = f"XStream's outbound server {options.outbound_server}"
    try:
        with connection(options, to_mine=True) as conn:
            with at_primary(options, conn) as root:
                now = current_scn(root)
                if not position:
                    return LogStatus(name, end=str(now), absent=_UNKNOWN)
                lag = max(now - (Position.parse(position).scn - 1), 0)
                problem = ""
                try:
                    prove(root, position, None)
                except FloodmarkError as exc:
                    problem = exc.what
            return LogStatus(name, end=str(now), lag_bytes=lag, absent=_UNKNOWN, problem=problem)
    except FloodmarkError as exc:
        return LogStatus(name, problem=exc.what)
