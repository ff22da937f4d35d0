"""LogMiner as a session uses it: the logs that it was given, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.oracle.errors import OracleError
from tests.support.oracle.mining.session_formats import Formats
from tests.support.oracle.mining.statements import Dictionary, StatementWriter
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.dictionaries import StoredDictionary
from tests.support.oracle.model.logs import RedoLog
from tests.support.oracle.model.redo import OPERATION_NAMES, Operation, RedoRecord
from tests.support.oracle.model.tables import Structure
from tests.support.oracle.model.transactions import UNKNOWN_SEQUENCE

ONLINE_CATALOG = "DICT_FROM_ONLINE_CATALOG"
REDO_LOGS = "DICT_FROM_REDO_LOGS"
COMMITTED = "COMMITTED_DATA_ONLY"
NO_ROW_IDS = "NO_ROWID_IN_STMT"
TRACKING = "DDL_DICT_TRACKING"
OPTIONS = {ONLINE_CATALOG, REDO_LOGS, COMMITTED, NO_ROW_IDS, TRACKING, "CONTINUOUS_MINE", "NO_SQL_DELIMITER"}
PIECE_BYTES = 4000


@dataclass(frozen=True)
class _Mining:
    start: int
    end: int
    options: frozenset[str]
    dictionary: StoredDictionary | None


@dataclass(frozen=True)
class _Transaction:
    """A committed transaction."""

    start: RedoRecord | None
    commit: RedoRecord


class LogMiner:
    """``DBMS_LOGMNR`` and ``V$LOGMNR_CONTENTS`` of one session.

    Args:
        database: whose logs are mined.
    """

    def __init__(self, database: OracleDatabase) -> None:
        self._database = database
        self._files: dict[str, RedoLog] = {}
        self._mining: _Mining | None = None

    @property
    def files(self) -> list[str]:
        """The names of the logs."""
        return list(self._files)

    def add(self, name: str, is_new: bool = False) -> None:
        """Add a log; with ``is_new`` all earlier ones are removed."""
        if is_new:
            self._files.clear()
        if name in self._files:
            raise OracleError(1289, name)
        found = self._find(name)
        if found is None:
            raise OracleError(1284, name)
        self._files[name] = found

    def remove(self, name: str) -> None:
        """Remove a log."""
        if self._files.pop(name, None) is None:
            raise OracleError(1290, name)

    def start(self, start: int, end: int, options: Sequence[str], dictionary_file: str = "") -> None:
        """Begin to mine.

        Args:
            start: the first change number.
            end: the last one; 0: the logs' last.
            options: names of the constants of ``DBMS_LOGMNR``.
            dictionary_file: ``DICTFILENAME``.
        """
        unknown = set(options) - OPTIONS
        if unknown:
            raise OracleError(6550, f"DBMS_LOGMNR.{min(unknown)}")
        if end and end < start:
            raise OracleError(1281)
        if not self._files:
            raise OracleError(1292)
        dictionary = self._given_dictionary(start, options, dictionary_file)
        self._check_covered(start, end)
        if dictionary is not None and TRACKING in options and dictionary.scn < start:
            # Statements about tables are followed from there.
            self._check_covered(dictionary.scn, end)
        self._mining = _Mining(start, end, frozenset(options), dictionary)

    def end(self) -> None:
        """End mining, and forget the logs."""
        if self._mining is None:
            raise OracleError(1307)
        self._mining = None
        self._files.clear()

    def contents(self, formats: Formats) -> list[dict[str, Any]]:
        """Return the rows of ``V$LOGMNR_CONTENTS``.

        Args:
            formats: the session's.
        """
        if self._mining is None:
            raise OracleError(1306)
        mining = self._mining
        writer = StatementWriter(self._dictionary(mining), formats, NO_ROW_IDS not in mining.options)
        records = sorted(self._records(mining), key=lambda record: (record.scn, record.thread, record.number))
        if COMMITTED in mining.options:
            return list(self._committed(records, writer))
        return [row for record in records for row in self._rows(record, writer, None, 0)]

    def _given_dictionary(self, start: int, options: Sequence[str], file: str) -> StoredDictionary | None:
        """Return the dictionary in a file, or the one in the logs: the last one before what is read, or the first."""
        if file:
            found = self._database.dictionary_files.get(file)
            if found is None:
                raise OracleError(1284, file)
            if found.database_id != self._database.settings.database_id:
                raise OracleError(1295, file)
            return found
        if REDO_LOGS not in options:
            return None
        logs = list(self._files.values())
        whole = sorted((one for log in logs for one in log.begun if one.is_in(logs)), key=lambda one: one.scn)
        if not whole:
            raise OracleError(1371)
        before = [one for one in whole if one.scn <= start]
        return before[-1] if before else whole[0]

    def _find(self, name: str) -> RedoLog | None:
        for thread in self._database.threads.values():
            for group, log in thread.online.items():
                if thread.member(group) == name:
                    return log
            for log in thread.logs:
                for destination, copy in log.archived.items():
                    if copy == name and destination not in log.deleted:
                        return log
        return None

    def _check_covered(self, start: int, end: int) -> None:
        for thread in self._database.threads.values():
            logs = sorted(
                (log for log in self._files.values() if log.thread == thread.number), key=lambda log: log.sequence
            )
            if not logs:
                if thread.status == "OPEN" and len(self._database.threads) == 1:
                    raise OracleError(1291)
                continue
            numbers = [log.sequence for log in logs]
            whole = numbers == list(range(numbers[0], numbers[-1] + 1))
            begins = logs[0].first <= start or logs[0].first <= thread.enabled_scn
            ends = end == 0 or logs[-1].next > end or thread.status == "CLOSED"
            if not (whole and begins and ends):
                raise OracleError(1291)

    def _records(self, mining: _Mining) -> Iterator[RedoRecord]:
        for name, log in self._files.items():
            found = self._find(name)
            if found is None:
                raise OracleError(308, text=f"cannot open archived log '{name}'")
            if found is not log:
                raise OracleError(310, found.sequence, log.sequence)
            for record in log.records:
                if record.scn >= mining.start and (not mining.end or record.scn <= mining.end):
                    yield record

    def _dictionary(self, mining: _Mining) -> Dictionary:
        if mining.dictionary is not None:
            tracked = mining.dictionary.scn if TRACKING in mining.options else None
            return Dictionary(mining.dictionary.structures, tracked)
        structures: dict[int, Structure] = {}
        if ONLINE_CATALOG in mining.options:
            structures = {one.object_id: one.structure for one in self._database.tables if not one.dropped}
        return Dictionary(structures)

    def _committed(self, records: Sequence[RedoRecord], writer: StatementWriter) -> Iterator[dict[str, Any]]:
        by_transaction: dict[str, list[RedoRecord]] = {}
        by_slot: dict[str, str] = {}
        ended: list[str] = []
        for record in records:
            if record.operation == Operation.INTERNAL:
                continue
            if record.operation == Operation.MISSING_SCN:
                yield from self._rows(record, writer, None, 0)
                continue
            slot = record.xid[: -len(UNKNOWN_SEQUENCE)]
            # What undoes changes may have lost the sequence of its transaction.
            xid = by_slot.get(slot, record.xid) if record.xid.endswith(UNKNOWN_SEQUENCE) else record.xid
            by_slot[slot] = xid
            by_transaction.setdefault(xid, []).append(record)
            if record.operation == Operation.COMMIT:
                ended.append(record.xid)
        for xid in ended:
            found = by_transaction[xid]
            # Only what lies in the range is known of a transaction.
            whole = _Transaction(found[0] if found[0].operation == Operation.START else None, found[-1])
            for number, record in enumerate(_kept(found), 1):
                yield from self._rows(record, writer, whole, number)

    def _rows(
        self, record: RedoRecord, writer: StatementWriter, whole: _Transaction | None, number: int
    ) -> Iterator[dict[str, Any]]:
        shown = writer.show(record, self._database.object(record.object_id))
        time = self._database.clock.time_of
        is_ddl = record.operation == Operation.DDL
        row = {
            "SCN": record.scn,
            "OPERATION_CODE": int(record.operation),
            "TIMESTAMP": time(record.scn),
            "XID": record.xid,
            "TABLE_NAME": shown.table,
            "SEG_NAME": shown.table,
            "SEG_OWNER": shown.owner,
            "OPERATION": OPERATION_NAMES.get(record.operation, record.operation.name),
            "ROW_ID": record.row_id,
            "ROLLBACK": int(record.is_undo),
            "STATUS": shown.status,
            "INFO": shown.info,
            "SSN": record.number,
            "THREAD#": record.thread,
            "DATA_OBJ#": record.object_id,
            "DATA_OBJV#": record.version,
            "DATA_OBJD#": record.data_object_id,
            "START_SCN": None if whole is None or whole.start is None or is_ddl else whole.start.scn,
            "COMMIT_SCN": None if whole is None or is_ddl else whole.commit.scn,
            "SEQUENCE#": number or 1,
            "START_TIMESTAMP": None if whole is None or whole.start is None else time(whole.start.scn),
            "COMMIT_TIMESTAMP": None if whole is None or is_ddl else time(whole.commit.scn),
            "RS_ID": f" 0x{record.log:06x}.{(record.same_record or record.scn) & 0xFFFFFFFF:08x}.0010 ",
            "USERNAME": record.user or "UNKNOWN",
            "CLIENT_ID": record.client,
            "SRC_CON_NAME": record.container or None,
        }
        pieces = _pieces(shown.statement)
        for place, piece in enumerate(pieces):
            yield {**row, "SQL_REDO": piece, "CSF": int(place < len(pieces) - 1)}


def _kept(records: Sequence[RedoRecord]) -> list[RedoRecord]:
    """Return a committed transaction's records without what it undid."""
    undone = {record.change for record in records if record.is_undo}
    return [record for record in records if record.change == 0 or record.change not in undone]


def _pieces(text: str | None) -> list[str | None]:
    """Cut a statement as the view does, where no piece has more bytes than a VARCHAR2 may."""
    if text is None or len(text.encode()) <= PIECE_BYTES:
        return [text]
    pieces: list[str | None] = []
    raw = text.encode()
    while raw:
        end = min(PIECE_BYTES, len(raw))
        while end < len(raw) and raw[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(raw[:end].decode())
        raw = raw[end:]
    return pieces
