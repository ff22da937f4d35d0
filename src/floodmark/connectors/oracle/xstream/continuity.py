"""Whether an outbound server is there, and still has all that follows a position."""

from __future__ import annotations

from floodmark.connectors.oracle.continuity.check import NEW_SNAPSHOT
from floodmark.connectors.oracle.continuity.resume_point import ResumePoint
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.server.connection import Connection, run
from floodmark.connectors.oracle.xstream.lcrs import place_of
from floodmark.errors import LogGoneError, SourceStateError

_ABORTED = "ABORTED"


def require_outbound(conn: Connection, options: OracleOptions) -> str:
    """Verify that the outbound server is there, and sends what is needed; return its status.

    Args:
        conn: a connection to where it is, the root of the containers.
        options: the source's options.

    Raises:
        SourceStateError: it isn't, or the account may not see it.
    """
    name = options.outbound_server
    assert name is not None
    statement = "SELECT STATUS, COMMITTED_DATA_ONLY FROM ALL_XSTREAM_OUTBOUND WHERE SERVER_NAME = :1"
    rows = run(conn, statement, "reading ALL_XSTREAM_OUTBOUND", binds=[name.upper()])
    if not rows:
        raise SourceStateError(
            f"The database has no outbound server {name.upper()}, or {options.user} isn't its account.",
            "Check xstream.out.server.name; DBMS_XSTREAM_ADM.CREATE_OUTBOUND makes one, and ALTER_OUTBOUND with "
            "connect_user lets the account use it.",
        )
    status, committed_only = rows[0]
    if committed_only == "NO":
        raise SourceStateError(
            f"The outbound server {name.upper()} sends transactions before they are committed.",
            "Create it with committed_data_only => TRUE.",
        )
    if status == _ABORTED:
        raise SourceStateError(
            f"The outbound server {name.upper()} was aborted by an error.",
            "DBA_APPLY and DBA_CAPTURE say which (ERROR_MESSAGE); DBMS_XSTREAM_ADM.START_OUTBOUND starts it again.",
        )
    return str(status)


def prove_outbound(conn: Connection, options: OracleOptions, position: str, known: ResumePoint | None) -> None:
    """Verify that the outbound server has what follows a position.

    Args:
        conn: a connection to where it is.
        options: the source's options.
        position: what follows it is wanted.
        known: what the offset says of it; None: nothing.

    Raises:
        LogGoneError: it was told to forget some of it.
        SourceStateError: it isn't there.
    """
    require_outbound(conn, options)
    name = str(options.outbound_server).upper()
    statement = (
        "SELECT PROCESSED_LOW_POSITION, PROCESSED_LOW_SCN FROM ALL_XSTREAM_OUTBOUND_PROGRESS WHERE SERVER_NAME = :1"
    )
    rows = run(conn, statement, "reading ALL_XSTREAM_OUTBOUND_PROGRESS", binds=[name])
    if not rows or rows[0][0] is None:
        return  # it was never told to forget anything
    low, low_scn = bytes(rows[0][0]), int(rows[0][1] or 0)
    reached = None if known is None else known.lcr
    if reached is None:
        is_gone, came = low_scn >= Position.parse(position).scn, f"the change number {Position.parse(position).scn - 1}"
    else:
        is_gone, came = (len(low), low) > place_of(reached), f"the record {reached}"
    if is_gone:
        raise LogGoneError(
            f"The outbound server {name} was told to forget its records up to {low.hex()} (change number {low_scn}), "
            f"and this query has come to {came}: another client has used the server, or the checkpoint is an earlier "
            "one.",
            f"Ways out: {NEW_SNAPSHOT}. Give each query an outbound server of its own.",
        )
