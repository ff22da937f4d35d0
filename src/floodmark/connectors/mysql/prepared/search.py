"""Finds XA transactions in the binlog that were prepared before the position from which it is read.

A branch that is committed now may have been prepared before the query began, or before its last read point. The log
doesn't record where, so the files are searched from the latest to the earliest until it is found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np

from floodmark.capture.spool import TransactionSpool
from floodmark.connectors.mysql.binlog.boundaries import type_set
from floodmark.connectors.mysql.binlog.event_types import GTIDS
from floodmark.connectors.mysql.binlog.inflation import Scratch
from floodmark.connectors.mysql.binlog.records import Indices, Records
from floodmark.connectors.mysql.binlog.xa import Step, branch_key, branch_name, branch_steps
from floodmark.connectors.mysql.continuity.check import PROBE_ID
from floodmark.connectors.mysql.position import FILE_HEADER_BYTES, Position
from floodmark.connectors.mysql.prepared.branches import RECEIVING, Branches
from floodmark.connectors.mysql.reading.channel import DumpChannel, DumpStart
from floodmark.connectors.mysql.reading.executed_gtids import Executed
from floodmark.connectors.mysql.reading.log_part import HEARTBEAT_S, read_records
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.connectors.mysql.reading.table_versions import opened_at_end
from floodmark.connectors.mysql.server.binlogs import BinlogFile, binlogs
from floodmark.connectors.mysql.server.connection import Connection, close, run
from floodmark.errors import PrivilegeError
from floodmark.logger import get_logger

log = get_logger(__name__)

ANYWHERE = 1 << 62
"""An offset beyond the end of any file."""
_GTIDS = type_set(*GTIDS)
UNSEEN = (
    "The account may not list prepared XA transactions. Those that are prepared when a new query begins are looked for "
    "in the binlog only when they are committed, and the query ends if the server has removed that file by then."
)
SEE_THEM = "GRANT XA_RECOVER_ADMIN ON *.* to the account before a new query is started."


def listed_branches(conn: Connection, flavor: str) -> list[bytes] | None:
    """Return the branches that are prepared now; None if the account may not see them.

    Args:
        conn: an ordinary connection.
        flavor: ``mysql`` or ``mariadb``.

    Raises:
        FloodmarkError: the query failed.
    """
    statement = "XA RECOVER" if flavor == "mariadb" else "XA RECOVER CONVERT XID"
    try:
        rows = run(conn, statement, "listing prepared XA transactions")
    except PrivilegeError:
        return None
    found = []
    for format_id, size, _, data in rows:
        raw = data if isinstance(data, bytes) else bytes.fromhex(str(data).removeprefix("0x"))
        found.append(branch_key(int(format_id), raw[: int(size)], raw[int(size) :]))
    return found


class BranchSearch:
    """Finds branches in the log of one server.

    Args:
        connect: returns a new ordinary connection.
        flavor: ``mysql`` or ``mariadb``.
        segment_bytes: how much of the log is processed at a time.
        spool: keeps the branches that are found.
        scratch: opens unnamed temporary files, for large compressed transactions.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        flavor: str,
        segment_bytes: int,
        spool: TransactionSpool,
        scratch: Scratch,
    ) -> None:
        self._connect = connect
        self._flavor = flavor
        self._segment_bytes = segment_bytes
        self._spool = spool
        self._scratch = scratch

    def keep(self, key: bytes, before: Position) -> bool:
        """Find the branch of this name prepared last before a position, and spool it; return whether there is one.

        Raises:
            ConnectError: the connection was lost.
            SourceStateError: the server refuses to send its log.
        """
        place = self.places([key], before).get(key)
        if place is None:
            # It was prepared before the oldest file, or with sql_log_bin=0.
            return False
        # The branch is decided at once, so its position and GTIDs are never needed for resuming.
        branches = Branches(self._spool, self._segment_bytes)
        opened = None
        name, anywhere = self._files()[place.file].name, replace(place, transaction=ANYWHERE)
        for records, whole in self._read(name, place, anywhere):
            if not whole:
                opened = opened_at_end(records, opened)
                assert opened is not None
                branches.receive(records, opened, str(place), "")
                continue
            step = next((one for one in branch_steps(records, self._gtids(records)) if one.key == key), None)
            if step is None:
                continue
            branches.keep(records, step, str(place), "")
            return True
        self._spool.drop(RECEIVING)
        return False

    def places(self, keys: Collection[bytes], before: Position) -> dict[bytes, Position | None]:
        """Return where the branches begin that were prepared last before a position.

        Branches that aren't found are omitted. None: the branch was decided before the position, so the branch with
        the same name at the position is another one, which isn't in the log.

        Raises:
            ConnectError: the connection was lost.
            SourceStateError: the server refuses to send its log.
        """
        found: dict[bytes, Position | None] = {}
        files = self._files()
        for file in sorted((number for number in files if number <= before.file), reverse=True):
            missing = set(keys) - found.keys()
            if not missing:
                break
            log.info("prepared_transactions_are_looked_for", file=files[file].name, transactions=len(missing))
            end = before if file == before.file else Position(before.epoch, file, files[file].size)
            found |= self._places_in(files[file].name, missing, end)
        return found

    def gtids_before(self, place: Position) -> str:
        """Return the GTIDs of all transactions before the start of one; empty if some of them have none.

        Raises:
            ConnectError: the connection was lost.
            SourceStateError: the server refuses to send its log.
        """
        name = self._files()[place.file].name
        if self._flavor == "mariadb":
            conn = self._connect()
            try:
                query = f"SELECT BINLOG_GTID_POS('{name}', {place.transaction})"
                return str(run(conn, query, "asking for a place's GTIDs")[0][0] or "")
            finally:
                close(conn)
        executed = Executed(self._flavor, None)
        for records, _ in self._read(name, Position(place.epoch, place.file, FILE_HEADER_BYTES), place):
            count = records.before(place.file, place.transaction)
            if count:
                executed.add(None, records.slice(0, count))
        return executed.text or ""

    def _places_in(self, name: str, keys: Collection[bytes], end: Position) -> dict[bytes, Position | None]:
        found: dict[bytes, Position | None] = {}
        open_at = 0
        for records, whole in self._read(name, Position(end.epoch, end.file, FILE_HEADER_BYTES), end):
            gtids = self._gtids(records)
            if whole:
                for step in branch_steps(records, gtids):
                    begin = int(records.offsets[step.first]) if len(gtids) and step.first >= gtids[0] else open_at
                    inside = records.file(step.last) == end.file and begin < end.transaction
                    if step.key in keys and inside:
                        prepared = step.step is Step.PREPARED
                        found[step.key] = Position(end.epoch, end.file, begin) if prepared else None
            elif len(gtids):
                open_at = int(records.offsets[gtids[-1]])
        return found

    def _read(self, name: str, begin: Position, end: Position) -> Iterator[tuple[Records, bool]]:
        """Yield the records between two positions of a file, and whether their last transaction is complete."""
        receiver = Receiver(
            self._segment_bytes, begin.epoch, begin.file, begin.transaction, None, scratch=self._scratch
        )
        channel = DumpChannel(self._connect(), self._flavor, PROBE_ID, HEARTBEAT_S)
        with closing(channel), closing(receiver):
            channel.start(DumpStart(name, begin.transaction))
            yield from read_records(
                channel, receiver, lambda: receiver.file == end.file and receiver.offset < end.transaction
            )

    def _gtids(self, records: Records) -> Indices:
        return np.flatnonzero(_GTIDS[records.types])

    def _files(self) -> dict[int, BinlogFile]:
        conn = self._connect()
        try:
            return binlogs(conn)
        finally:
            close(conn)


def names_of(keys: Collection[bytes]) -> str:
    """Return the names of branches as statements write them, for messages."""
    return ", ".join(sorted(branch_name(key) for key in keys))
