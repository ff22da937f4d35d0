"""The server's binlog files: which there are, where they end, and whether a position is among them."""

from __future__ import annotations

from dataclasses import dataclass

from floodmark.connectors.mysql.position import FILE_HEADER_BYTES, Position
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.errors import LogGoneError, SourceStateError

STATUS_VERSION = 80200
"""From this version on MySQL calls it SHOW BINARY LOG STATUS; the old name is gone in 8.4."""

WAYS_OUT = (
    "Ways out: restore the missing binlog files if they were moved away; set snapshot.mode=when_needed, which reads "
    "the tables again; or start with a new checkpoint. To keep it from happening again raise "
    "binlog_expire_logs_seconds (or expire_logs_days) on the server."
)
NO_BINLOG = "Switch the binlog on (log_bin, server_id, binlog_format=ROW) and restart the server."
CLIENT_PRIVILEGE = "GRANT REPLICATION CLIENT ON *.* to the account (MariaDB: BINLOG MONITOR)."


@dataclass(frozen=True)
class LogEnd:
    """The end of the binlog.

    Attributes:
        base: name of the files up to their number's dot.
        file: number of the last file.
        offset: its size.
        gtids: the GTIDs that have been executed, as text; empty without GTIDs.
    """

    base: str
    file: int
    offset: int
    gtids: str

    @property
    def name(self) -> str:
        """Name of the file."""
        return file_name(self.base, self.file)

    def position(self, epoch: int) -> Position:
        """Return the log position of the end."""
        return Position(epoch, self.file, self.offset)


def file_name(base: str, number: int) -> str:
    """Return the name of a binlog file."""
    return f"{base}.{number:06d}"


def split_name(name: str) -> tuple[str, int]:
    """Return what a binlog file's name begins with, and its number."""
    base, _, number = name.rpartition(".")
    return base, int(number)


def log_end(conn: Connection, flavor: str, version: int) -> LogEnd:
    """Return the end of the binlog.

    Args:
        conn: an ordinary connection.
        flavor: ``mysql`` or ``mariadb``.
        version: of the server, such as 80036.

    Raises:
        SourceStateError: the account may not ask, or there is no binlog.
    """
    new = flavor == "mysql" and version >= STATUS_VERSION
    rows = run(conn, f"SHOW {'BINARY LOG' if new else 'MASTER'} STATUS", "the end of the binlog", CLIENT_PRIVILEGE)
    if not rows:
        raise SourceStateError("The server writes no binlog.", NO_BINLOG)
    name, offset, _, _, *executed = rows[0]
    if flavor == "mariadb":
        gtids = str(run(conn, "SELECT @@GLOBAL.gtid_binlog_state", "the GTIDs in the binlog")[0][0] or "")
    else:
        gtids = str(executed[0]).replace("\n", "") if executed and executed[0] else ""
    base, number = split_name(name)
    return LogEnd(base, number, int(offset), gtids)


def binlogs(conn: Connection) -> dict[int, int]:
    """Return the sizes of the binlog files by their numbers.

    Raises:
        SourceStateError: the account may not ask, or there is no binlog.
    """
    rows = run(conn, "SHOW BINARY LOGS", "the list of binlog files", CLIENT_PRIVILEGE)
    return {split_name(row[0])[1]: int(row[1]) for row in rows}


def check_position(conn: Connection, position: Position) -> None:
    """Prove that the log from a position on is there.

    Raises:
        LogGoneError: it isn't.
    """
    files = binlogs(conn)
    if position.file not in files:
        oldest = min(files, default=0)
        what = "has been purged" if position.file < oldest else "does not exist on this server"
        raise LogGoneError(
            f"The binlog file number {position.file}, which the checkpoint needs from offset {position.transaction} "
            f"on, {what}; the oldest one is number {oldest}.",
            WAYS_OUT,
        )
    if max(position.transaction, position.event, FILE_HEADER_BYTES) > files[position.file]:
        raise LogGoneError(
            f"The binlog file number {position.file} ends at {files[position.file]}, before the checkpoint's offset "
            f"{position.transaction}: the server was reset, restored from a backup, or is another one.",
            WAYS_OUT,
        )


def lag_bytes(files: dict[int, int], position: Position) -> int:
    """Return how many bytes of binlog lie behind a position."""
    return sum(
        size if number > position.file else max(size - position.transaction, 0)
        for number, size in files.items()
        if number >= position.file
    )
