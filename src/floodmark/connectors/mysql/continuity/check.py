"""Is this still the log that a position belongs to? Asked whenever the binlog is to be read from a position.

Three things are proven on the connection that then sends the binlog, before anything of it is used:

- *the same source*: the file that the position lies in is the one that the position was taken from, by its mark
  (``marks``); or else the server is another one that has executed all transactions before the position, by their GTIDs;
- *the same history*: the file reaches the position; of another server, nothing that is still needed has been purged;
- *the same filter*: ``obstacles`` finds nothing that keeps changes out of the log; who opens connections asks for it.

A server's identity (MySQL's ``server_uuid``, MariaDB's ``server_id``) proves nothing: a copied data directory has the
same, and a server that was reset or restored too. With the same identity and another file GTIDs prove nothing either,
since such servers give the same GTIDs to different transactions.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

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
from floodmark.connectors.mysql.reading.channel import MAX_DUMP_OFFSET, DumpChannel, DumpStart
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
from floodmark.logger import get_logger

log = get_logger(__name__)

PROBE_ID = 0
"""Server id of who reads a piece of the binlog: the server then ends at the log's end, and disturbs no other reader."""
PROBE_BYTES = 256 << 10
PIECE_BYTES = 16 << 10
"""How much is received at a time until the log is proven, so that hardly more than that is."""
PROBE_WAIT_S = 60.0
PROBE_HEARTBEAT_S = 10.0
_POLL_S = 0.2
_REFUSES = "@@GLOBAL.GTID_MODE"


@dataclass(frozen=True)
class KnownPlace:
    """What is known of a position besides itself.

    Attributes:
        server: of the server whose files it counts (``ServerIdentity``).
        gtids: all transactions before it; None if some of them have no GTID.
        host: of that server; empty in older checkpoints.
        mark: what proves the file and what lies before the position; None in older checkpoints.
    """

    server: str
    gtids: str | None
    host: str = ""
    mark: Mark | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data, for the offset."""
        mark = None if self.mark is None else self.mark.to_json()
        return {"server": self.server, "gtids": self.gtids, "host": self.host, "mark": mark}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return what ``to_json`` described, or an older version did."""
        mark = data.get("mark")
        return cls(data["server"], data["gtids"], data.get("host", ""), Mark.from_json(mark) if mark else None)


@dataclass(frozen=True)
class Accepted:
    """What the options accept when the log is another one.

    Attributes:
        taken: which sources' GTIDs count; None: all.
        ignore_gtids: whether to go on by file and offset in any case.
        option: the option and value that say so; empty if nothing is accepted.
    """

    taken: Taken | None = None
    ignore_gtids: bool = False
    option: str = ""

    @classmethod
    def from_options(cls, options: BinlogOptions) -> Self:
        """Return what the options of a source accept."""
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
        dump: what the server is told.
        epoch: of the positions that come.
        continues: whether the position's own file is read, and not another server's.
        mark: what is to be proven of that file.
        tentative: whether it may turn out that the file is another one, and GTIDs say where to go on.
        gap: what is left out, if an option accepts that.
        logged: up to where it is to be proven that the binlog lacks no transaction; None: there is nothing to prove.
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
    """A connection that sends the binlog from a proven place on.

    Attributes:
        channel: the connection.
        receiver: has taken what the proof needed, and maybe more.
        start: where it began.
        server: which server it is.
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
    known: KnownPlace | None,
    accepted: Accepted,
    server_id: int = PROBE_ID,
    heartbeat_s: float = PROBE_HEARTBEAT_S,
    buffer_bytes: int = PROBE_BYTES,
    silence_s: float = PROBE_WAIT_S,
    scratch: Scratch = tempfile.TemporaryFile,
) -> Dump:
    """Let the server send its binlog from a position on, once it has proven that it is the same log.

    Args:
        connect: opens an ordinary connection to a server that logs all that is wanted.
        flavor: ``mysql`` or ``mariadb``.
        place: everything up to it is done.
        known: what else is known of it.
        accepted: what the options accept.
        server_id: under which it registers.
        heartbeat_s: after so long without an event the server says that it is there.
        buffer_bytes: how much is received at a time.
        silence_s: after so long without anything the connection counts as lost.
        scratch: opens files without a name, for large compressed transactions.

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
                # MySQL sends nothing that was logged under another gtid_mode, also what is only to be compared.
                known = replace(known, mark=start.mark.of_file)
                continue
            if not start.tentative and not _contradicts(receiver, exc):
                raise
            # Bytes in the middle of another file mean nothing.
            what = f"The events before {place.transaction} in the binlog file number {place.file} are not those"
            other = OtherLogError(f"{what} that were delivered from there. {exc.what}", RESET)
        except BaseException:
            close(conn)
            raise


def _contradicts(receiver: Receiver | None, exc: FloodmarkError) -> bool:
    """Return whether an error says that the file holds nothing to be read where a mark says that events lie.

    Those were read once. So the file is another one, begun by the same server within the same second, or damaged.
    """
    unproven = receiver is not None and receiver.proof.of_events and not receiver.proof.done
    return unproven and isinstance(exc, UnreadableLogError | DecodeError)


def _refuse_holes(connect: Callable[[], Connection], server: ServerIdentity, start: Start, scratch: Scratch) -> None:
    """Refuse a MariaDB server whose binlog lacks transactions behind the place where it is to begin."""
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
    connect: Callable[[], Connection], flavor: str, place: Position, known: KnownPlace | None, accepted: Accepted
) -> Start:
    """Prove that a server's binlog is the one that a position belongs to; return where a stream would begin.

    Raises:
        FloodmarkError: as ``open_dump``.
    """
    dump = open_dump(connect, flavor, place, known, accepted)
    dump.close()
    return dump.start


def read_mark(connect: Callable[[], Connection], flavor: str, place: Position, name: str) -> Mark | None:
    """Return what proves a place that another connection has just told.

    Args:
        connect: opens an ordinary connection.
        flavor: ``mysql`` or ``mariadb``.
        place: the place, where a transaction ends.
        name: of its file.
    """
    # What lies before it can only be read from the file's begin on.
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
                # Who reads only a piece is told where the log ends, maybe together with its last events.
                ended = True
        return receiver.tail.mark or receiver.mark
    finally:
        channel.close()


def _prove(channel: DumpChannel, receiver: Receiver, silence_s: float) -> None:
    """Receive until the server has proven that its file is the one that is wanted."""
    until = time.monotonic() + silence_s
    while not receiver.proof.done:
        count = 0
        try:
            count = receiver.receive(lambda view, timeout: channel.read_into(view[:PIECE_BYTES], timeout), _POLL_S)
        except ConnectError:
            # Who reads only a piece is told where the log ends.
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
    known: KnownPlace | None,
    accepted: Accepted,
    other: LogGoneError | None = None,
) -> Start:
    """Return where the server is to begin.

    In the log that the position comes from that is the position's place in its files. In another one it is the first
    transaction that is not known, by the GTIDs.

    Args:
        conn: the connection that the binlog will be sent over.
        flavor: ``mysql`` or ``mariadb``.
        server: which server it is.
        position: everything up to it is done.
        known: what else is known of it.
        accepted: what the options accept.
        other: why the file that has the position's number is not the position's, if that has turned out.

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
    """Return where a server begins that counts a position's files.

    Args:
        conn: an ordinary connection.
        position: everything up to it is done.
        mark: what is to be proven of the file.
        tentative: whether it may turn out that the file is another one.

    Raises:
        LogGoneError: the server no longer has the file.
    """
    if mark is not None and mark.file != position.file:
        mark = None
    file = file_of(binlogs(conn), position, 0 if mark is None else mark.end)
    begin = position.transaction
    if mark is not None and mark.digest:
        begin = min(begin, mark.begin)
    # Only files with one transaction of more than 4 GiB at their end are that long: what lies before is skipped.
    offset = max(begin, FILE_HEADER_BYTES) if begin <= MAX_DUMP_OFFSET else FILE_HEADER_BYTES
    return Start(DumpStart(file.name, offset), position.epoch, True, mark, tentative)


def _refuse_a_replacement(flavor: str, server: ServerIdentity, known: KnownPlace) -> None:
    """Refuse a MariaDB server elsewhere that has the same number, which says nothing: it may be any server.

    Raises:
        CheckpointError: it is one.
    """
    if flavor == "mariadb" and known.host and known.host != server.host:
        raise CheckpointError(
            f"This is another server: its binlog is not the one that the checkpoint comes from, though it has the same "
            f"server_id {server.server}. The checkpoint's is {known.host}, this is {server.host}.",
            "Connect to the server that the checkpoint comes from, or start with a new checkpoint and write to a new "
            "target. Give each server its own server_id: then a replica can take over by GTIDs.",
        )


def by_gtids(conn: Connection, flavor: str, position: Position, known: KnownPlace, accepted: Accepted) -> Start:
    """Return where a server begins that has executed the transactions before a position, and counts otherwise.

    Args:
        conn: an ordinary connection.
        flavor: ``mysql`` or ``mariadb``.
        position: everything up to it is done.
        known: which transactions those are.
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
    """Refuse a server that lacks transactions; return those that it has executed.

    Raises:
        CheckpointError: it lacks some.
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
