"""Verifies that the binlog still continues from the stored position, whenever it is read from a position.

Three things are proven on the connection that then sends the binlog, before any of it is used:

- *the same source*: the file that the position lies in is the one that the position was taken from, by its mark
  (``reading.file_marks``); or else the server is another one that has executed all transactions before the position,
  by their GTIDs;
- *the same history*: the file reaches the position; another server has purged nothing that is still needed;
- *the same filter*: nothing keeps changes out of the log. ``obstacles`` in ``checks.server`` verifies that when
  connections are opened.

A server's identity (MySQL's ``server_uuid``, MariaDB's ``server_id``) proves nothing: a copied data directory has the
same identity, and so has a server that was reset or restored. With the same identity but another file, GTIDs prove
nothing either, since such servers assign the same GTIDs to different transactions.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from floodmark.capture.gaps import Gap
from floodmark.connectors.mysql.binlog.inflation import Scratch
from floodmark.connectors.mysql.continuity.holes import refuse_holes
from floodmark.connectors.mysql.gtid import (
    Gtids,
    MariadbGtids,
    MysqlGtids,
    Taken,
    lacking,
    parse_gtids,
    source_filter,
)
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import FILE_HEADER_BYTES, Position
from floodmark.connectors.mysql.reading.channel import MAX_DUMP_OFFSET, DumpChannel, DumpStart, TruncatedLogError
from floodmark.connectors.mysql.reading.file_marks import RESET, Mark, OtherLogError
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.connectors.mysql.server.binlogs import WAYS_OUT, binlogs, file_of
from floodmark.connectors.mysql.server.connection import Connection, close, run
from floodmark.connectors.mysql.server.identity import ServerIdentity, server_identity
from floodmark.errors import (
    CheckpointError,
    ConnectError,
    DecodeError,
    FloodmarkError,
    LogGoneError,
    SourceStateError,
    UnreadableLogError,
)
from floodmark.json_data import Json, stored_object
from floodmark.logger import get_logger

log = get_logger(__name__)

PROBE_ID = 0
"""Server id for reading a piece of the binlog: the server ends the stream at the log's end, and no reader conflicts."""
PROBE_BYTES = 256 << 10
PIECE_BYTES = 16 << 10
"""Bytes received at a time until the log is proven, so that little more than the proof needs is received."""
PROBE_WAIT_S = 60.0
PROBE_HEARTBEAT_S = 10.0
_POLL_S = 0.2
_REFUSES = "@@GLOBAL.GTID_MODE"


@dataclass(frozen=True)
class ResumePoint:
    """Identifies the server and the log that a position belongs to.

    Attributes:
        server: identity of the server whose files the position refers to (``ServerIdentity``).
        gtids: all transactions before the position; None if some of them have no GTID.
        host: that server's host; empty in older checkpoints.
        mark: fingerprint of the file and of the events before the position; None in older checkpoints.
    """

    server: str
    gtids: str | None
    host: str = ""
    mark: Mark | None = None

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON data, for the offset."""
        mark = None if self.mark is None else self.mark.to_json()
        return {"server": self.server, "gtids": self.gtids, "host": self.host, "mark": mark}

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the resume point from the data of ``to_json``, of this or an older version.

        Raises:
            CheckpointError: it is other data.
        """
        point = stored_object(data, "the resume point of the binlog")
        mark = point.value("mark")
        return cls(
            point.text("server"),
            point.optional_text("gtids"),
            point.optional_text("host") or "",
            None if mark is None else Mark.from_json(mark),
        )


@dataclass(frozen=True)
class Accepted:
    """What the options accept when the log is another one.

    Attributes:
        taken: selects the sources whose GTIDs count; None: all.
        ignore_gtids: whether to continue by file and offset in any case.
        option: the options that are set for this, with their values; empty if none is.
    """

    taken: Taken | None = None
    ignore_gtids: bool = False
    option: str = ""

    @classmethod
    def from_options(cls, options: BinlogOptions) -> Self:
        """Return what a source's options accept."""
        lists = {
            "gtid.source.includes": options.gtid_source_includes,
            "gtid.source.excludes": options.gtid_source_excludes,
        }
        said = [
            f"{name}={','.join(pattern.pattern for pattern in patterns)}"
            for name, patterns in lists.items()
            if patterns
        ]
        if options.gtid_ignore_on_recovery:
            said = ["gtid.ignore.on.recovery=true"]
        return cls(source_filter(options), options.gtid_ignore_on_recovery, "".join(said))


@dataclass(frozen=True)
class Start:
    """Where a stream begins.

    Attributes:
        dump: where the server starts to send.
        epoch: epoch of the stream's positions.
        continues: whether the position's own file is read, and not another server's.
        mark: mark that the file must match.
        tentative: whether the file may prove to be another one, and the stream then continues by GTIDs.
        gap: the changes that are left out, if an option accepts that.
        logged: transactions up to which the binlog must be checked for missing ones; None: no check is needed.
    """

    dump: DumpStart
    epoch: int
    continues: bool
    mark: Mark | None = None
    tentative: bool = False
    gap: Gap | None = None
    logged: MariadbGtids | None = None


@dataclass(frozen=True)
class Dump:
    """A connection that sends the binlog from a proven position on.

    Attributes:
        channel: the connection.
        receiver: holds what was received for the proof, and maybe more.
        start: where the stream began.
        server: identity of the server.
    """

    channel: DumpChannel
    receiver: Receiver
    start: Start
    server: ServerIdentity

    def close(self) -> None:
        """Close the connection."""
        self.receiver.close()
        self.channel.close()


def open_dump(
    connect: Callable[[], Connection],
    flavor: str,
    place: Position,
    known: ResumePoint | None,
    accepted: Accepted,
    server_id: int = PROBE_ID,
    heartbeat_s: float = PROBE_HEARTBEAT_S,
    buffer_bytes: int = PROBE_BYTES,
    silence_s: float = PROBE_WAIT_S,
    scratch: Scratch = tempfile.TemporaryFile,
) -> Dump:
    """Open a binlog stream from a position on, and prove that it is the same log.

    Args:
        connect: opens an ordinary connection to a server that logs all changes that are captured.
        flavor: ``mysql`` or ``mariadb``.
        place: position up to which everything is done.
        known: identifies the position's server and log; None: not known.
        accepted: what the options accept.
        server_id: id to register with.
        heartbeat_s: seconds without an event after which the server sends a heartbeat.
        buffer_bytes: size of the receive buffer.
        silence_s: seconds without any data after which the connection counts as lost.
        scratch: opens unnamed temporary files, for large compressed transactions.

    Raises:
        LogGoneError: the server no longer has the log, or it is another log.
        CheckpointError: it is another server that lacks transactions from before the position.
        SourceStateError: it is another server, and GTIDs don't help.
        ConnectError: the connection was lost.
    """
    other: LogGoneError | None = None
    while True:
        start = Start(DumpStart(), place.epoch, False)
        receiver: Receiver | None = None
        conn = connect()
        try:
            server = server_identity(conn, flavor)
            start = find_start(conn, flavor, server, place, known, accepted, other)
            if start.logged is not None:
                _refuse_holes(connect, server, start, scratch)
            file = place.file if start.continues else 0
            skips = start.continues and start.dump.offset < place.transaction
            skip_before = place.transaction if skips else None
            receiver = Receiver(buffer_bytes, start.epoch, file, start.dump.offset, skip_before, start.mark, scratch)
            channel = DumpChannel(conn, flavor, server_id, heartbeat_s)
            channel.start(start.dump)
            _prove(channel, receiver, silence_s)
            return Dump(channel, receiver, start, server)
        except OtherLogError as exc:
            close(conn)
            if other is not None:
                raise
            other = exc
        except (SourceStateError, DecodeError) as exc:
            close(conn)
            if known is not None and start.mark is not None and start.mark.digest and _REFUSES in str(exc):
                # MySQL refuses to send events logged under another gtid_mode, even if they are only compared: prove
                # the file without them.
                known = replace(known, mark=start.mark.of_file)
                continue
            if not start.tentative and not _contradicts(receiver, exc):
                raise
            # An offset of the position's file may be in the middle of an event of another file.
            what = f"The events before {place.transaction} in the binlog file number {place.file} are not those"
            other = OtherLogError(f"{what} that were delivered from there. {exc.what}", RESET)
        except BaseException:
            close(conn)
            raise


def _contradicts(receiver: Receiver | None, exc: FloodmarkError) -> bool:
    """Return whether an error shows that there are no readable events where a mark has some.

    They were read once, so the file is another one, begun by the same server within the same second, or damaged.
    """
    unproven = receiver is not None and receiver.proof.of_events and not receiver.proof.done
    return unproven and isinstance(exc, UnreadableLogError | TruncatedLogError | DecodeError)


def _refuse_holes(connect: Callable[[], Connection], server: ServerIdentity, start: Start, scratch: Scratch) -> None:
    """Refuse a MariaDB server whose binlog lacks transactions after the start of the stream."""
    conn = connect()
    try:
        other = server_identity(conn, "mariadb")
    except BaseException:
        close(conn)
        raise
    if other != server:
        close(conn)
        raise ConnectError(f"The address leads to another server by now: {other.host} ({other.server}).")
    assert start.logged is not None
    refuse_holes(conn, MariadbGtids.parse(start.dump.gtids or ""), start.logged, scratch)


def probe(
    connect: Callable[[], Connection], flavor: str, place: Position, known: ResumePoint | None, accepted: Accepted
) -> Start:
    """Verify that a server's binlog is the one that a position belongs to; return where a stream would begin.

    Raises:
        FloodmarkError: as ``open_dump``.
    """
    dump = open_dump(connect, flavor, place, known, accepted)
    dump.close()
    return dump.start


def read_mark(connect: Callable[[], Connection], flavor: str, place: Position, name: str) -> Mark | None:
    """Return the mark of a position that was just read over another connection.

    Args:
        connect: opens an ordinary connection.
        flavor: ``mysql`` or ``mariadb``.
        place: the position, where a transaction ends.
        name: name of its file.
    """
    # The events before the position can only be read from the start of the file; far into the file, omit them.
    whole = place.transaction <= PROBE_BYTES
    begin = place.transaction if not whole and place.transaction <= MAX_DUMP_OFFSET else FILE_HEADER_BYTES
    receiver = Receiver(2 * PROBE_BYTES, 0, place.file, begin, None, None)
    channel = DumpChannel(connect(), flavor, PROBE_ID, PROBE_HEARTBEAT_S)
    try:
        channel.start(DumpStart(name, begin))
        _prove(channel, receiver, PROBE_WAIT_S)
        ended = not whole
        while True:
            count = receiver.all_records().before(place.file, place.transaction) if receiver.waiting.count else 0
            if count:
                receiver.remember(count)
                receiver.drop(count)
            if ended or (receiver.file, receiver.offset) >= (place.file, place.transaction):
                break
            try:
                receiver.receive(channel.read_into, _POLL_S)
            except ConnectError:
                # With server id 0 the server ends the stream at the log's end, maybe together with its last events.
                ended = True
        return receiver.tail.mark or receiver.mark
    finally:
        channel.close()


def _prove(channel: DumpChannel, receiver: Receiver, silence_s: float) -> None:
    """Receive until the file is proven to match the receiver's mark."""
    until = time.monotonic() + silence_s
    while not receiver.proof.done:
        count = 0
        try:
            count = receiver.receive(lambda view, timeout: channel.read_into(view[:PIECE_BYTES], timeout), _POLL_S)
        except ConnectError:
            # With server id 0 the server ends the stream at the log's end.
            if not receiver.proof.done:
                raise
        if count:
            until = time.monotonic() + silence_s
        elif time.monotonic() > until:
            raise ConnectError(f"Nothing came from the server for {silence_s:.0f} s.")


def find_start(
    conn: Connection,
    flavor: str,
    server: ServerIdentity,
    position: Position,
    known: ResumePoint | None,
    accepted: Accepted,
    other: LogGoneError | None = None,
) -> Start:
    """Return where the server must start to send.

    In the log that the position comes from, that is the position's file and offset. In another one it is the first
    transaction that isn't done, by the GTIDs.

    Args:
        conn: the connection over which the binlog will be sent.
        flavor: ``mysql`` or ``mariadb``.
        server: identity of the server.
        position: position up to which everything is done.
        known: identifies the position's server and log; None: not known.
        accepted: what the options accept.
        other: why the file with the position's number has proven not to be the position's; None: it hasn't.

    Raises:
        LogGoneError: the server no longer has the log, or it is another log.
        CheckpointError: it is another server that lacks transactions from before the position.
        SourceStateError: it is another server, and GTIDs don't help.
    """
    same = known is None or known.server in ("", server.server)
    mark = None if known is None else known.mark
    if other is None and (same or mark is not None):
        try:
            start = by_file(conn, position, mark, tentative=not same)
        except LogGoneError as gone:
            if accepted.ignore_gtids:
                raise
            other = gone
        else:
            if mark is None and known is not None and known.gtids:
                _refuse_lacking(conn, flavor, parse_gtids(flavor, known.gtids))
            return start
    if accepted.ignore_gtids:
        reason = "The log comes from another server, and nothing proves it." if other is None else other.what
        gap = Gap(str(position), str(position), reason, accepted.option)
        return replace(by_file(conn, position), gap=gap)
    if known is not None and not same:
        return by_gtids(conn, flavor, position, known, accepted)
    assert other is not None
    if known is not None:
        _refuse_a_replacement(flavor, server, known)
    raise other


def by_file(conn: Connection, position: Position, mark: Mark | None = None, tentative: bool = False) -> Start:
    """Return where the server that has a position's files must start to send.

    Args:
        conn: an ordinary connection.
        position: position up to which everything is done.
        mark: mark that the file must match.
        tentative: whether the file may prove to be another one.

    Raises:
        LogGoneError: the server no longer has the file.
    """
    if mark is not None and mark.file != position.file:
        mark = None
    file = file_of(binlogs(conn), position, 0 if mark is None else mark.end)
    begin = position.transaction
    if mark is not None and mark.digest:
        begin = min(begin, mark.begin)
    # The command can't hold offsets of 4 GiB and more, which only files that end with a huge transaction have: such a
    # file is read from its start, and the events before the position are skipped.
    offset = max(begin, FILE_HEADER_BYTES) if begin <= MAX_DUMP_OFFSET else FILE_HEADER_BYTES
    return Start(DumpStart(file.name, offset), position.epoch, True, mark, tentative)


def _refuse_a_replacement(flavor: str, server: ServerIdentity, known: ResumePoint) -> None:
    """Refuse a MariaDB server on another host with the same ``server_id``, which may be any server.

    Raises:
        CheckpointError: the host is another one.
    """
    if flavor == "mariadb" and known.host and known.host != server.host:
        raise CheckpointError(
            f"This is another server: its binlog is not the one that the checkpoint comes from, though it has the same "
            f"server_id {server.server}. The checkpoint's is {known.host}, this is {server.host}.",
            "Connect to the server that the checkpoint comes from, or start with a new checkpoint and write to a new "
            "target. Give each server its own server_id: then a replica can take over by GTIDs.",
        )


def by_gtids(conn: Connection, flavor: str, position: Position, known: ResumePoint, accepted: Accepted) -> Start:
    """Return where another server, which has executed the transactions before a position, must start to send.

    Args:
        conn: an ordinary connection.
        flavor: ``mysql`` or ``mariadb``.
        position: position up to which everything is done.
        known: holds the GTIDs of those transactions.
        accepted: what the options accept.

    Raises:
        LogGoneError: the server has purged transactions that come after the position.
        CheckpointError: the server lacks transactions from before the position.
        SourceStateError: GTIDs are not known.
    """
    if not known.gtids:
        raise SourceStateError(
            "This is another server than the one that the checkpoint comes from, and that has no GTIDs.",
            "Connect to the former one, or switch GTIDs on at both. " + WAYS_OUT,
        )
    gtids = parse_gtids(flavor, known.gtids)
    counting = gtids if accepted.taken is None else gtids.filtered(accepted.taken)
    executed = _refuse_lacking(conn, flavor, counting)
    gap = logged = None
    if accepted.taken is not None:
        taken = accepted.taken
        untaken = executed.filtered(lambda source: not taken(source))
        skipped = lacking(untaken, gtids)
        gtids = parse_gtids(flavor, f"{counting},{untaken}")
        if skipped:
            reason = f"The log goes on at another server; of sources that don't count, {skipped} is passed over."
            gap = Gap(str(position), str(Position(position.epoch + 1, 0, 0)), reason, accepted.option)
    if isinstance(gtids, MariadbGtids):
        gtids = gtids.positions()
        if accepted.taken is None and isinstance(executed, MariadbGtids):
            logged = executed
    else:
        purged = MysqlGtids.parse(_variable(conn, "gtid_purged"))
        if not purged <= gtids:
            raise LogGoneError(
                f"This server has purged transactions that the checkpoint still needs: {purged - gtids}.", WAYS_OUT
            )
    return Start(DumpStart(gtids=str(gtids)), position.epoch + 1, False, gap=gap, logged=logged)


def _refuse_lacking(conn: Connection, flavor: str, gtids: Gtids) -> Gtids:
    """Refuse a server that lacks some of the transactions; return all that it has executed.

    Raises:
        CheckpointError: the server lacks some.
    """
    executed = parse_gtids(flavor, _variable(conn, _EXECUTED[flavor]))
    missing = lacking(gtids, executed)
    if missing:
        raise CheckpointError(
            f"This server lacks transactions that the query has delivered ({missing}): it is another source, or a "
            "replica that was promoted before it had received everything.",
            "Connect to a server that has them, or start with a new checkpoint and write to a new target.",
        )
    return executed


_EXECUTED = {"mysql": "gtid_executed", "mariadb": "gtid_binlog_state"}


def _variable(conn: Connection, name: str) -> str:
    return str(run(conn, f"SELECT @@global.{name}", f"asking for {name}")[0][0] or "").replace("\n", "")
