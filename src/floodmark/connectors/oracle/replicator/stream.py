"""The ``LogStream`` of OpenLogReplicator: receives committed transactions, in the order of their commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from floodmark.capture.log_stream import Cut
from floodmark.connectors.oracle.capture.cutting import Cutter
from floodmark.connectors.oracle.capture.sent_changes import Taker, last_number
from floodmark.connectors.oracle.capture.stream import CaptureState
from floodmark.connectors.oracle.continuity.check import prove
from floodmark.connectors.oracle.continuity.resume_point import ResumePoint
from floodmark.connectors.oracle.decode.signal_rows import signals_in
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import Position, behind
from floodmark.connectors.oracle.replicator.client import ReplicatorClient
from floodmark.connectors.oracle.replicator.confirmation import Confirmations
from floodmark.connectors.oracle.replicator.continuity import prove_replicated, replicator
from floodmark.connectors.oracle.replicator.documents import Documents, read_documents
from floodmark.connectors.oracle.replicator.first_message import FirstMessage
from floodmark.connectors.oracle.replicator.open_transactions import Samples
from floodmark.connectors.oracle.replicator.protocol import ResponseCode
from floodmark.connectors.oracle.replicator.transactions import Changes, Checkpoint, Key, Transactions
from floodmark.connectors.oracle.server.connection import Connection, close
from floodmark.errors import ConnectError, SourceStateError, UnreadableLogError

STALL_S = 1.0
"""How long the server may send nothing inside a transaction before what has come of it is delivered: it may wait until
that is confirmed."""
SILENCE_S = 120.0
"""How long the server may send nothing: it sends a checkpoint every few seconds."""
_ALL_UNCONFIRMED = (1, 0)
"""Where to go on from, so that the server sends all that wasn't confirmed: what it was told to begin behind, it leaves
out by the numbers where transactions began, so it would leave out long ones."""
_WITHOUT_CHECKPOINT_S = 60
"""No two commits this far apart are sent without a checkpoint between them."""
_NUMBER = "SEQUENCE#"


class ReplicatorStream:
    """A ``LogStream``.

    Args:
        options: the source's options.
        connect: opens a connection to the database.
        state: what the source keeps.
        filters: what the numbers of changes in a transaction depend on.
        first: the first message that a new query was sent.
    """

    def __init__(
        self,
        options: OracleOptions,
        connect: Callable[[], Connection],
        state: CaptureState,
        filters: str,
        first: FirstMessage,
    ) -> None:
        self._options = options
        self._connect = connect
        self._state = state
        self._filters = filters
        self._first = first
        self._conn: Connection | None = None
        self._client: ReplicatorClient | None = None
        self._work: Iterator[int] | None = None

    def open(self, position: str) -> None:
        """Connect, prove that the server has what follows a position, and let it send that."""
        options = self._options
        known = self._state.points.at(position)
        self._conn = self._connect()
        database = prove(self._conn, position, known)
        begin = Position.parse(position).scn - 1 if known is None else known.begin
        self._identity = database.identity
        # Without containers, the address may name a service, and the server the database.
        self._names = {options.database, *([] if options.pluggable else [database.name.upper()])}
        self._samples = Samples(options, self._conn, begin)
        self._is_started = self._is_proven = False
        self._sent_first: Key | None = None
        self._client = self._started(position, known, begin, database.scn)
        self._confirmations = Confirmations(None if known is None else known.replicated)
        self._transactions = Transactions(options.segment_bytes)
        self._delivered = Position.parse(position)
        self._upto = position
        self._last = Position(0)
        self._cutter = Cutter(
            position, options.segment_bytes, lambda data: signals_in(data, options), options.whole_transactions
        )
        self._taker = Taker(options, self._state, self._cutter, self._delivered)
        self._state.schema.rewind(position)
        self._idle = position
        self._stalls = False
        self._work = None
        self._heard = time.monotonic()
        self._since_checkpoint: int | None = None

    def _started(self, position: str, known: ResumePoint | None, begin: int, now: int) -> ReplicatorClient:
        client = replicator(self._options)
        try:
            found = client.info()
            if found.code == ResponseCode.READY:
                prove_replicated(client.start(begin), position, known)
                self._is_started = True
            else:
                if found.scn > now:
                    raise SourceStateError(
                        f"OpenLogReplicator is at the change number {found.scn}, and the database at {now}: it reads "
                        "another database.",
                        "openlogreplicator.host, port and source must lead to the log of database.hostname.",
                    )
                prove_replicated(found, position, known)
                client.resume(_ALL_UNCONFIRMED)
        except BaseException:
            client.close()
            raise
        return client

    def read(self, timeout: float) -> int:
        """Take over some of what has arrived; return how many bytes of changes came, or at least 1 if it goes on."""
        if self.full:
            return 0
        if self._work is None:
            assert self._client is not None
            messages = self._client.receive(timeout)
            if not messages:
                return self._bear_silence()
            self._heard, self._stalls = time.monotonic(), False
            documents = read_documents(messages, self._captures)
            if self._sent_first is None:
                self._sent_first = int(documents.scn[0]), int(documents.index[0])
            self._refuse_another(documents)
            self._work = self._take(documents)
        try:
            return next(self._work)
        except StopIteration:
            self._work = None
            return 1

    def _captures(self, owner: str, table: str) -> bool:
        return self._options.captures(owner, table)

    def _refuse_another(self, documents: Documents) -> None:
        name = documents.database
        if name is not None and name.upper() not in self._names:
            raise SourceStateError(
                f"OpenLogReplicator sends changes of the database '{name}', and the query is of "
                f"'{self._options.database}'.",
                "openlogreplicator.host, port and source must lead to the log of that database.",
            )

    def _bear_silence(self) -> int:
        """Wait on; return how many bytes of changes can be delivered so that the server goes on."""
        silent = time.monotonic() - self._heard
        if silent >= STALL_S and not self._stalls and not self._options.whole_transactions:
            self._stalls = True
            found = list(self._transactions.part())
            for one in found:
                self._commit(one)
            return len(found)
        if silent < SILENCE_S:
            return 0
        if self._transactions.is_inside:
            raise SourceStateError(
                f"OpenLogReplicator has sent nothing for {silent:.0f} s, and has stopped inside a transaction: it "
                "waits until its messages are confirmed, which they can't be before the transaction ends.",
                "Raise writer.queue-size of the server above the number of changes in a transaction, or let a "
                "transaction be one message (format.message with the bit 1, and format.scn-type with the bit 8).",
            )
        raise ConnectError(
            f"OpenLogReplicator has sent nothing for {silent:.0f} s; it should send a checkpoint every few seconds "
            "(flags of the source with 4096), so it hangs, or reads no log any more."
        )

    def _take(self, documents: Documents) -> Iterator[int]:
        """Take documents over; yield after each step, so that a segment can be cut."""
        for found in self._transactions.add(documents):
            self._prove_continuous(found)
            if isinstance(found, Checkpoint):
                self._reached(found)
            else:
                self._commit(found)
            if self._cutter.full:
                yield 1
        self._remember_idle()

    def _prove_continuous(self, found: Changes | Checkpoint) -> None:
        """Verify that the first message of a connection belongs to what was delivered.

        What was delivered last was never confirmed, so the server has it and sends it again. But release 1.9.0 only
        sends again what is in the newest of its buffers, of 1 MB each.
        """
        if self._is_proven:
            return
        self._is_proven = True
        expected, first = self._delivered, self._sent_first
        assert first is not None
        if self._first.is_first(str(expected), first) or self._is_started:
            return
        if isinstance(found, Checkpoint):
            place, is_known = behind(found.scn), Position(found.scn + 1) <= expected
        else:
            place, is_known = str(found.commit), found.commit.commit <= expected.commit
            if found.commit.commit == expected.commit and len(found.rows):
                is_known = found.rows[_NUMBER][0].as_py() <= expected.number
        if not is_known:
            raise SourceStateError(
                f"OpenLogReplicator goes on at {place}, and the query has come to {expected}: it hasn't sent again "
                "what the last connection was sent and didn't confirm, so changes would be lost.",
                "Restart the server: it then sends all that wasn't confirmed. If the error comes again, stop it, "
                "remove its checkpoint files, and start it: the query then lets it begin where it needs.",
            )

    def _reached(self, found: Checkpoint) -> None:
        self._since_checkpoint = None
        position = behind(found.scn)
        self._last = max(self._last, Position.parse(position))
        self._upto = max(self._upto, position)
        self._confirmations.reached(self._upto, found.key, found.scn)
        idle = self._cutter.idle_position
        if idle is not None and idle < position:
            # Before the planner sees the position, which may follow a statement that has left no changes.
            self._samples.take()
            self._remember(position)
        self._cutter.reached(position)

    def _remember_idle(self) -> None:
        idle = self._cutter.idle_position
        if idle is not None and idle != self._idle:
            self._idle = idle
            self._samples.take()
            self._remember(idle)

    def _commit(self, found: Changes) -> None:
        """Take over changes of a transaction, unless they were delivered and are sent again."""
        place = found.commit
        if place.commit < self._last.commit:
            raise UnreadableLogError(
                f"OpenLogReplicator has sent the commit {place} behind {self._last}: they aren't in order.",
                "Release 1.9.0 gives commits the numbers of earlier changes, so transactions that overlap can't be "
                "ordered: build the server from later sources. If it is such a one, restart it; if that happens again, "
                "read the tables again (execute-snapshot).",
            )
        self._last = place
        self._require_checkpoints(found.seconds)
        rows = self._taker.undelivered(found)
        if not len(rows):
            self._confirmations.reached(self._upto, found.key)
            return
        if found.is_statement:
            self._taker.follow(found, rows, rows)
        else:
            self._taker.add(found, rows)
        self._upto = str(place.end() if found.ends else place.at(last_number(rows)))
        self._confirmations.reached(self._upto, found.key)

    def _require_checkpoints(self, seconds: int) -> None:
        since = self._since_checkpoint
        if since is None:
            self._since_checkpoint = seconds
        elif seconds - since > _WITHOUT_CHECKPOINT_S:
            raise SourceStateError(
                f"OpenLogReplicator has sent commits that are {seconds - since} s apart, and no checkpoint between "
                "them. Without checkpoints nobody can tell whether it still has all that wasn't delivered.",
                "Set flags of the source, with the bits 4096 (checkpoints) and 32 (statements about tables): 4128.",
            )

    def _remember(self, position: str) -> None:
        """Record what belongs to a position, once: an offset may have it."""
        newest = self._state.points.newest()
        if newest is not None and newest[0] == position:
            return
        inside = Position.parse(position).is_inside
        point = ResumePoint(
            self._identity,
            self._samples.begin(Position.parse(position).scn - 1),
            self._state.schema.version_at(position),
            self._filters if inside else "",
            adapter=self._options.adapter,
            replicated=self._confirmations.highest,
        )
        self._state.points.add(position, point)

    def tend(self) -> None:
        """Do nothing: the server waits, and what it has sent waits in the connection."""
        self._heard = time.monotonic()

    @property
    def full(self) -> bool:
        """Whether a segment's worth of changes has been received, or the server may wait for their confirmation."""
        return self._cutter.full or (self._stalls and self._cutter.idle_position is None)

    def cut(self, force: bool) -> Cut | None:
        """Cut a segment."""
        cut = self._cutter.cut(force)
        if cut is not None:
            self._samples.take()
            self._remember(cut.upto)
        return cut

    @property
    def spooled_bytes(self) -> int:
        """How many bytes of state undecided transactions take: there are none."""
        return 0

    @property
    def received(self) -> str:
        """The position that the next cut reaches."""
        return self._cutter.received

    @property
    def idle_position(self) -> str | None:
        """The position up to which all has been cut; None if changes wait."""
        return self._cutter.idle_position

    def confirm(self, position: str) -> None:
        """Let the server forget what was delivered."""
        client, point = self._client, self._state.points.at(position)
        if client is None or point is None:
            return
        key = self._confirmations.upto(position, point.replicated)
        if key is not None:
            client.confirm(key)

    def ping(self) -> None:
        """Do nothing: the server sends checkpoints by itself."""

    def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
        conn, self._conn = self._conn, None
        if conn is not None:
            close(conn)
