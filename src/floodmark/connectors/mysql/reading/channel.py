"""Opens a connection over which the server sends its binlog.

PyMySQL does the login. Then the connection is registered as a replica's, and the stream is read directly from
the socket, in large pieces.

Source: MySQL's documentation, "Replication Protocol", and MariaDB's, "5-Slave Registration" and
"3-Binlog Network Stream".
"""

from __future__ import annotations

import select
import ssl
import struct
from dataclasses import dataclass

import pymysql

from floodmark.connectors.mysql.gtid import MysqlGtids
from floodmark.connectors.mysql.server.binlogs import WAYS_OUT
from floodmark.connectors.mysql.server.connection import Connection, close, run, statement_error
from floodmark.errors import ConnectError, FloodmarkError, LogGoneError, SourceStateError, UnreadableLogError

COM_BINLOG_DUMP, COM_REGISTER_SLAVE, COM_BINLOG_DUMP_GTID = 0x12, 0x15, 0x1E
SEND_ANNOTATE = 0x02
THROUGH_GTID = 0x04
NON_BLOCKING = 0x01
"""The server ends the stream at the end of its log."""
MAX_DUMP_OFFSET = 0xFFFFFFFF
"""The command has four bytes for an offset."""

MARIADB_CAPABILITY_GTID = 4
REPLICA_NAME = b"floodmark"

_FATAL_READ = 1236
_NO_PRIVILEGE = (1227, 1045, 1142)
_NOT_BINLOGGING = 1381


@dataclass(frozen=True)
class DumpStart:
    """Where the server starts to send.

    Attributes:
        file: name of the binlog file.
        offset: offset in the file; its first event is at 4.
        gtids: if given, start with the first transaction that is not in this set instead.
    """

    file: str = ""
    offset: int = 4
    gtids: str | None = None


class DumpChannel:
    """A connection in dump mode.

    Args:
        conn: an idle connection; the channel takes ownership.
        flavor: ``mysql`` or ``mariadb``.
        server_id: id to register with; no other replica may have it. 0: don't register as a replica, and end the
            stream at the end of the log.
        heartbeat_s: seconds without an event after which the server sends a heartbeat.
    """

    def __init__(self, conn: Connection, flavor: str, server_id: int, heartbeat_s: float) -> None:
        self._conn = conn
        self._flavor = flavor
        self._server_id = server_id
        self._heartbeat_s = heartbeat_s
        self._poll = select.poll()

    def start(self, start: DumpStart) -> None:
        """Register, and make the server start to send.

        Raises:
            ConnectError: the connection was lost.
            SourceStateError: the server refuses the registration.
        """
        try:
            self._prepare(start)
            if self._server_id:
                self._register()
            self._conn._execute_command(*self._command(start))  # type: ignore[attr-defined]
        except (pymysql.err.Error, OSError) as exc:
            raise _replica_error(exc, self._server_id) from None
        self._socket = self._conn._sock  # type: ignore[attr-defined]
        self._socket.settimeout(0)
        self._poll.register(self._socket, select.POLLIN)

    def read_into(self, view: memoryview, timeout: float) -> int:
        """Read the bytes that have arrived, waiting up to ``timeout`` seconds for the first one.

        Returns:
            How many bytes were written to ``view``: raw packets, the last of which may be incomplete.

        Raises:
            ConnectError: the connection was lost.
        """
        count = 0
        while count < len(view):
            try:
                got = self._socket.recv_into(view[count:])
            except (BlockingIOError, ssl.SSLWantReadError):
                if count or not self._poll.poll(timeout * 1000):
                    break
                continue
            except OSError as exc:
                raise ConnectError(f"Lost the connection to the server: {exc}.") from None
            if got == 0:
                if count:
                    break
                raise ConnectError("The server closed the connection.")
            count += got
        return count

    def close(self) -> None:
        """Close the connection."""
        close(self._conn)

    def _prepare(self, start: DumpStart) -> None:
        period = max(int(self._heartbeat_s * 1e9), 1_000_000)
        settings = {
            # The server omits checksums for replicas that don't announce that they know them.
            "@master_binlog_checksum": "@@global.binlog_checksum",
            "@master_heartbeat_period": str(period),
        }
        if self._flavor == "mariadb":
            settings["@mariadb_slave_capability"] = str(MARIADB_CAPABILITY_GTID)
            if start.gtids is not None:
                settings["@slave_connect_state"] = f"'{start.gtids}'"
                settings["@slave_gtid_strict_mode"] = "0"
                settings["@slave_gtid_ignore_duplicates"] = "0"
        else:
            settings["@source_binlog_checksum"] = "@@global.binlog_checksum"
            settings["@source_heartbeat_period"] = str(period)
        assignments = ", ".join(f"{name} = {value}" for name, value in settings.items())
        run(self._conn, f"SET {assignments}", "preparing the connection for the binlog")

    def _register(self) -> None:
        name = bytes([len(REPLICA_NAME)]) + REPLICA_NAME
        payload = struct.pack("<I", self._server_id) + name + b"\0\0" + struct.pack("<HII", 0, 0, 0)
        self._conn._execute_command(COM_REGISTER_SLAVE, payload)  # type: ignore[attr-defined]
        self._conn._read_packet()  # type: ignore[no-untyped-call]

    def _command(self, start: DumpStart) -> tuple[int, bytes]:
        file = start.file.encode()
        if start.gtids is not None and self._flavor == "mysql":
            gtids = MysqlGtids.parse(start.gtids).encode()
            head = struct.pack("<HII", THROUGH_GTID, self._server_id, 0)
            return COM_BINLOG_DUMP_GTID, head + struct.pack("<QI", 4, len(gtids)) + gtids
        flags = SEND_ANNOTATE if self._flavor == "mariadb" else 0
        if not self._server_id:
            flags |= NON_BLOCKING
        return COM_BINLOG_DUMP, struct.pack("<IHI", start.offset, flags, self._server_id) + file


def dump_error(packet: bytes) -> FloodmarkError:
    """Return the exception for an error packet (without its header) in the event stream."""
    code = int.from_bytes(packet[1:3], "little")
    text = packet[3:]
    if text[:1] == b"#":
        text = text[6:]
    return error_of(code, text.decode("utf-8", "replace"))


class TruncatedLogError(LogGoneError):
    """The server found a binlog file to end inside an event.

    The file is damaged, or it is another one, and what lies where reading was to begin is no event.
    """


def error_of(code: int, text: str) -> FloodmarkError:
    """Return the exception for a server error that ended or prevented the binlog stream.

    Args:
        code: the error's number.
        text: the error's message.
    """
    said = f"The server says: {' '.join(text.split()).rstrip('.')}."
    low = text.lower()
    if code in _NO_PRIVILEGE:
        return SourceStateError(said, "Grant the user REPLICATION SLAVE and REPLICATION CLIENT.")
    if code == _NOT_BINLOGGING or "binary log is not open" in low:
        return SourceStateError(said, "Switch the binlog on: log_bin, binlog_format=ROW.")
    if code != _FATAL_READ:
        return ConnectError(f"The server ended the binlog stream: {text} (error {code}).")
    if "same server_uuid" in low or "same server_id" in low:
        return ConnectError(
            said, "Another replica or query has the same server id: give each one its own database.server.id."
        )
    if any(words in low for words in _GONE):
        return LogGoneError(f"The binlog that the checkpoint needs is gone. {said}", WAYS_OUT)
    if "truncated in the middle of event" in low:
        return TruncatedLogError(f"The binlog that the checkpoint needs is cut off. {said}", WAYS_OUT)
    if any(words in low for words in _OTHER_LOG):
        return UnreadableLogError(
            f"The server's binlog is not the one that the checkpoint belongs to. {said}",
            "It was reset, or this is another server. " + WAYS_OUT,
        )
    if "max_allowed_packet" in low:
        return UnreadableLogError(
            said,
            "Raise max_allowed_packet on the server if it has so large an event. If not, the place where reading was "
            f"to go on is not in this log: it was reset, or the server is another one. {WAYS_OUT}",
        )
    if "shutdown" in low or "being shut down" in low:
        return ConnectError(said)
    return UnreadableLogError(
        said, "mysqlbinlog --verify-binlog-checksum shows whether the file is damaged. " + WAYS_OUT
    )


_GONE = (
    "could not find first log file",
    "purged required binary logs",
    "purged binary logs containing gtids",
    "has purged",
    "could not find gtid state requested by slave in any binlog",
    "binlog file where the slave starts has been purged",
)
_OTHER_LOG = (
    "client requested master to start replication from",
    "client requested source to start replication from",
    "requested slave state",
    "slave has more gtids",
    "replica has more gtids",
    "which is not in the master's binlog",
    "which is not in the source's binlog",
    "exceeds the size of the file",
    "impossible position",
    "bogus data in log event",
)


def _replica_error(exc: Exception, server_id: int) -> FloodmarkError:
    code = exc.args[0] if exc.args and isinstance(exc.args[0], int) else None
    if code in (*_NO_PRIVILEGE, _NOT_BINLOGGING):
        return error_of(code, str(exc.args[1]))
    return statement_error(exc, f"registering as replica {server_id}")
