"""Where the server is to begin to send its binlog."""

from __future__ import annotations

import re
from dataclasses import dataclass

from floodmark.connectors.mysql.gtid import Gtids, MariadbGtids, MysqlGtids, Taken, parse_gtids
from floodmark.connectors.mysql.log.channel import MAX_DUMP_OFFSET, WAYS_OUT, DumpStart
from floodmark.connectors.mysql.position import FILE_HEADER_BYTES, Position
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.errors import LogGoneError, SourceStateError

_FILE = re.compile(r"(.+)\.(\d+)")


@dataclass(frozen=True)
class KnownPlace:
    """What is known of a position besides itself.

    Attributes:
        server: identity of the server whose files it counts (see ``server_identity``).
        gtids: all transactions before it.
    """

    server: str
    gtids: str


@dataclass(frozen=True)
class Start:
    """Where a stream begins.

    Attributes:
        dump: what the server is told.
        epoch: of the positions that come.
        continues: whether the position's own file is read, and not another server's.
    """

    dump: DumpStart
    epoch: int
    continues: bool


def file_number(name: str) -> tuple[str, int]:
    """Return base and number of a binlog file's name.

    Raises:
        SourceStateError: the name has no number.
    """
    found = _FILE.fullmatch(name)
    if found is None:
        raise SourceStateError(f"The server names a binlog file '{name}', which has no number.")
    return found[1], int(found[2])


def binlog_files(conn: Connection) -> dict[int, tuple[str, int]]:
    """Return name and size of the server's binlog files by their numbers.

    Raises:
        SourceStateError: the server writes no binlog, or the user may not see it.
    """
    rows = run(
        conn,
        "SHOW BINARY LOGS",
        "reading the list of binlog files",
        "Switch the binlog on (log_bin, binlog_format=ROW), and grant the user REPLICATION CLIENT.",
    )
    return {file_number(name)[1]: (name, int(size)) for name, size, *_ in rows}


def server_identity(conn: Connection, flavor: str) -> str:
    """Return what tells a server from others that replicate with it."""
    name = "server_id" if flavor == "mariadb" else "server_uuid"
    return str(run(conn, f"SELECT @@global.{name}", "asking for the server's identity")[0][0])


def find_start(
    conn: Connection, flavor: str, position: Position, known: KnownPlace | None, taken: Taken | None = None
) -> Start:
    """Return where the server is to begin.

    On the server that the position comes from that is the position's place in its files. On another one it is the
    first transaction that is not known, by the GTIDs.

    Args:
        conn: an ordinary connection.
        flavor: ``mysql`` or ``mariadb``.
        position: everything up to it is done.
        known: what else is known of it.
        taken: which sources' GTIDs count; those of others are taken as done as far as the server has them.

    Raises:
        LogGoneError: the server no longer has the log.
        SourceStateError: it isn't the server that the position comes from, and GTIDs don't help.
    """
    if known is not None and known.server != server_identity(conn, flavor):
        return _by_gtids(conn, flavor, position, known, taken)
    files = binlog_files(conn)
    held = f"The server has {_span(files)}." if files else "The server has no binlog files."
    if position.file not in files:
        if files and position.file > max(files):
            raise SourceStateError(
                f"The server has no binlog file number {position.file}, which the checkpoint needs. {held}",
                "It was reset, or this is another server. " + WAYS_OUT,
            )
        raise LogGoneError(
            f"The server no longer has the binlog file number {position.file}, which the checkpoint needs. {held}",
            WAYS_OUT,
        )
    name, size = files[position.file]
    if position.transaction > size:
        raise SourceStateError(
            f"The checkpoint needs {name} from offset {position.transaction} on, but the file ends at {size}.",
            "It was reset, or this is another server. " + WAYS_OUT,
        )
    # Only files with one transaction of more than 4 GiB at their end are that long: what lies before is skipped.
    reachable = position.transaction <= MAX_DUMP_OFFSET
    offset = max(position.transaction, FILE_HEADER_BYTES) if reachable else FILE_HEADER_BYTES
    return Start(DumpStart(name, offset), position.epoch, True)


def _by_gtids(conn: Connection, flavor: str, position: Position, known: KnownPlace, taken: Taken | None) -> Start:
    gtids = parse_gtids(flavor, known.gtids)
    if not gtids:
        raise SourceStateError(
            "This is another server than the one that the checkpoint comes from, and that has no GTIDs.",
            "Connect to the former one, or switch GTIDs on at both. " + WAYS_OUT,
        )
    if taken is not None:
        gtids = _with_untaken(conn, gtids.filtered(taken), flavor, taken)
    if isinstance(gtids, MariadbGtids):
        gtids = gtids.positions()
    else:
        purged = MysqlGtids.parse(_variable(conn, "gtid_purged"))
        if not purged <= gtids:
            raise LogGoneError(
                f"This server has purged transactions that the checkpoint still needs: {purged - gtids}.", WAYS_OUT
            )
    return Start(DumpStart(gtids=str(gtids)), position.epoch + 1, False)


def _with_untaken(conn: Connection, gtids: Gtids, flavor: str, taken: Taken) -> Gtids:
    text = _variable(conn, "gtid_binlog_state" if flavor == "mariadb" else "gtid_executed")
    untaken = parse_gtids(flavor, text).filtered(lambda source: not taken(source))
    return parse_gtids(flavor, f"{gtids},{untaken}")


def _variable(conn: Connection, name: str) -> str:
    return str(run(conn, f"SELECT @@global.{name}", f"asking for {name}")[0][0])


def _span(files: dict[int, tuple[str, int]]) -> str:
    first, last = files[min(files)][0], files[max(files)][0]
    return first if first == last else f"{first} to {last}"
