"""Lists the server's binlog files and finds the end of the log."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from floodmark.connectors.mysql.position import FILE_HEADER_BYTES, Position
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.errors import LogGoneError, SourceStateError
from floodmark.logger import get_logger

log = get_logger(__name__)

STATUS_VERSION = 80200
"""From this version on MySQL calls it SHOW BINARY LOG STATUS; the old name is gone in 8.4."""

WAYS_OUT = (
    "Ways out: restore the missing binlog files if they were moved away; set snapshot.mode=when_needed, which reads "
    "the tables again; or start with a new checkpoint. To keep it from happening again raise "
    "binlog_expire_logs_seconds (or expire_logs_days) on the server."
)
NO_BINLOG = "Switch the binlog on (log_bin, server_id, binlog_format=ROW) and restart the server."
CLIENT_PRIVILEGE = "GRANT REPLICATION CLIENT ON *.* to the account (MariaDB: BINLOG MONITOR)."
REST_S = 2.0
PAUSE_S = 0.0003
_NAME = re.compile(r"(.+)\.(\d+)")


@dataclass(frozen=True)
class BinlogFile:
    """A binlog file.

    Attributes:
        name: its name.
        size: its size in bytes.
    """

    name: str
    size: int


@dataclass(frozen=True)
class LogEnd:
    """The end of the binlog.

    Attributes:
        base: the files' name before the dot and the number.
        file: number of the last file.
        offset: its size.
        gtids: the GTIDs that have been executed, as text; empty without GTIDs.
        do: the databases that alone are logged (``binlog_do_db``), separated by commas; empty: all.
        ignore: the databases that are not logged (``binlog_ignore_db``), separated by commas.
    """

    base: str
    file: int
    offset: int
    gtids: str
    do: str = ""
    ignore: str = ""

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
    """Split a binlog file's name into its base and its number.

    Raises:
        SourceStateError: the name has no number.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise SourceStateError(f"The server names a binlog file '{name}', which has no number.")
    return found[1], int(found[2])


def log_end(conn: Connection, flavor: str, version: int) -> LogEnd:
    """Return the end of the binlog.

    Args:
        conn: an ordinary connection.
        flavor: ``mysql`` or ``mariadb``.
        version: of the server, such as 80036.

    Raises:
        SourceStateError: the account lacks the privilege, or there is no binlog.
    """
    new = flavor == "mysql" and version >= STATUS_VERSION
    rows = run(conn, f"SHOW {'BINARY LOG' if new else 'MASTER'} STATUS", "the end of the binlog", CLIENT_PRIVILEGE)
    if not rows:
        raise SourceStateError("The server writes no binlog.", NO_BINLOG)
    name, offset, do, ignore, *executed = rows[0]
    if flavor == "mariadb":
        gtids = str(run(conn, "SELECT @@GLOBAL.gtid_binlog_state", "the GTIDs in the binlog")[0][0] or "")
    else:
        gtids = str(executed[0]).replace("\n", "") if executed and executed[0] else ""
    base, number = split_name(name)
    return LogEnd(base, number, int(offset), gtids, str(do or ""), str(ignore or ""))


def end_with_gtids(conn: Connection, flavor: str, version: int) -> LogEnd:
    """Return an end of the binlog with the GTIDs of exactly the transactions before it.

    ``log_end`` reads them separately: MariaDB's may include transactions after the end, and MySQL's may lack those that
    are being committed. With such GTIDs, a query that goes on at another server would leave out a transaction or repeat
    it. A MySQL server that commits without a pause is made to begin a new file, which starts with the GTIDs before it.
    """
    if flavor == "mariadb":
        end = log_end(conn, flavor, version)
        return replace(end, gtids=gtids_before(conn, end))
    until = time.monotonic() + REST_S
    while True:
        before = log_end(conn, flavor, version)
        if not before.gtids:
            return before
        # A transaction owns its GTID from before it is written to the log until after it is committed.
        owned = run(conn, "SELECT @@GLOBAL.gtid_owned", "the running transactions")[0][0]
        after = log_end(conn, flavor, version) if not owned else None
        if after is not None and (after.file, after.offset) == (before.file, before.offset):
            return after
        if time.monotonic() > until:
            break
        time.sleep(PAUSE_S)
    try:
        return _begin_of_new_file(conn, flavor, version)
    except SourceStateError as exc:
        log.warning(
            "gtids_may_lack_a_transaction",
            reason=f"transactions end all the time, and no new binlog file could be begun: {exc}",
            effect="if the query goes on at another server, a transaction of now may come again there",
            cure="GRANT RELOAD ON *.* to the account and start with a new checkpoint",
        )
        return before


def _begin_of_new_file(conn: Connection, flavor: str, version: int) -> LogEnd:
    """Make MySQL begin a new binlog file; return the position after its Previous_gtids event."""
    run(conn, "FLUSH NO_WRITE_TO_BINLOG BINARY LOGS", "beginning a new binlog file")
    end = log_end(conn, flavor, version)
    doing = "the begin of the binlog file"
    for _, _, kind, _, offset, info in run(conn, f"SHOW BINLOG EVENTS IN '{end.name}' LIMIT 2", doing):
        if kind == "Previous_gtids":
            return replace(end, offset=int(offset), gtids=str(info).replace("\n", ""))
    raise SourceStateError(f"The binlog file {end.name} does not begin with the GTIDs before it.")


def gtids_before(conn: Connection, place: LogEnd) -> str:
    """Return the GTIDs before a position in MariaDB's binlog."""
    shown = run(conn, f"SELECT BINLOG_GTID_POS('{place.name}', {place.offset})", "the GTIDs of a place in the binlog")
    return str(shown[0][0] or "")


def binlogs(conn: Connection) -> dict[int, BinlogFile]:
    """Return the binlog files by their numbers.

    Raises:
        SourceStateError: the account lacks the privilege, or there is no binlog.
    """
    rows = run(conn, "SHOW BINARY LOGS", "the list of binlog files", CLIENT_PRIVILEGE)
    return {split_name(row[0])[1]: BinlogFile(row[0], int(row[1])) for row in rows}


def file_of(files: Mapping[int, BinlogFile], position: Position, end: int = 0) -> BinlogFile:
    """Return the binlog file that a position lies in.

    Args:
        files: the server's binlog files.
        position: a log position.
        end: offset up to which the file is known to have been read; 0: not known.

    Raises:
        LogGoneError: the server doesn't have the file, or the file ends before what was read of it.
    """
    held = f"The server has {_span(files)}." if files else "The server has no binlog files."
    if position.file not in files:
        if files and position.file > max(files):
            raise LogGoneError(
                f"The server has no binlog file number {position.file}, which the checkpoint needs. {held}",
                "It was reset, or this is another server. " + WAYS_OUT,
            )
        raise LogGoneError(
            f"The server no longer has the binlog file number {position.file}, which the checkpoint needs: it was "
            f"purged or removed. {held}",
            WAYS_OUT,
        )
    found = files[position.file]
    # The event of a position inside of a transaction may lie elsewhere (XA), and is looked for when it comes.
    needed = max(position.transaction, end, FILE_HEADER_BYTES)
    if not found.size:
        raise LogGoneError(f"The server's binlog file {found.name}, which the checkpoint needs, is missing.", WAYS_OUT)
    if needed > found.size:
        raise LogGoneError(
            f"The checkpoint needs {found.name} from offset {needed} on, but the file ends at {found.size}.",
            "It was reset, restored from a backup, lost its end in a crash, or this is another server. " + WAYS_OUT,
        )
    return found


def lag_bytes(files: Mapping[int, BinlogFile], position: Position) -> int:
    """Return how many bytes of binlog follow a position."""
    return sum(
        file.size if number > position.file else max(file.size - position.transaction, 0)
        for number, file in files.items()
        if number >= position.file
    )


def _span(files: Mapping[int, BinlogFile]) -> str:
    first, last = files[min(files)].name, files[max(files)].name
    return first if first == last else f"{first} to {last}"
