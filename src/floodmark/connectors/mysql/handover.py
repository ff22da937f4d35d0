"""Finds the place of Debezium's offset in a binlog, and Debezium's offset for a place.

Debezium goes on at the event that begins a transaction (``file`` and ``pos``; the event is MySQL's BEGIN, MariaDB's
GTID), and passes over a number of events from there on (``event``) and of rows in the next one (``row``). Where the
server has GTIDs, it goes on by the set of those that are done (``gtids``), on whatever server that is.

A position here begins with the GTID event of its transaction, and lies between events. Rows of an event of which
Debezium has delivered only some therefore come again.

Source: Debezium's ``BinlogOffsetContext`` and ``BinlogStreamingChangeEventSource``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from floodmark.capture.gaps import AcceptedGaps
from floodmark.connectors.contract.handover import HandedBack, Handover, Place
from floodmark.connectors.contract.key_forms import KeyForm
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.mysql.binlog.event_types import (
    ANNOTATE_ROWS,
    GTIDS,
    ROWS,
    ROWS_QUERY,
    TABLE_MAP,
    TRANSACTION_PAYLOAD,
)
from floodmark.connectors.mysql.binlog.records import ORDINARY, Records
from floodmark.connectors.mysql.continuity.check import PROBE_ID, ResumePoint, by_gtids, read_mark
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.ddl.tokens import first_word
from floodmark.connectors.mysql.gtid import lacking, parse_gtids
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import ALL_ROWS, FILE_HEADER_BYTES, Position
from floodmark.connectors.mysql.reading.channel import DumpChannel, DumpStart
from floodmark.connectors.mysql.reading.log_part import HEARTBEAT_S, SILENCE_S
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.connectors.mysql.schema.catalog import read_collations, read_schema
from floodmark.connectors.mysql.schema.debezium_history import HistoryReader
from floodmark.connectors.mysql.schema.follower import SchemaFollower, history_files
from floodmark.connectors.mysql.schema_history.records import debezium_image
from floodmark.connectors.mysql.schema_history.store import SchemaHistory
from floodmark.connectors.mysql.server.binlogs import (
    BinlogFile,
    LogEnd,
    binlogs,
    end_with_gtids,
    file_of,
    gtids_before,
    log_end,
    split_name,
)
from floodmark.connectors.mysql.server.connection import Connection, run
from floodmark.connectors.mysql.source.session import MysqlSession
from floodmark.connectors.mysql.structures.session import session_of, statement_text
from floodmark.connectors.schema_history.files import ReadOnlyFiles
from floodmark.debezium.snapshot_state import RUNNING
from floodmark.errors import ConnectError, OffsetError, SchemaHistoryError
from floodmark.json_data import Json, JsonObject, stored_object

BUFFER_BYTES = 4 << 20
TRIES = 20
NEAR_BYTES = 4096
"""At least as large as a GTID event, and the events of a file that follow a transaction."""
STATEMENT_BYTES = 1 << 20
"""At least as large as most statements that alter tables: Debezium's offset may lie behind one that comes again."""
_FILE_AND_OFFSET = re.compile(r"(.+\.\d+):(\d+)")
_UUID = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_GTIDS_TEXT = {
    "mysql": re.compile(rf"{_UUID}:[\w:-]+(,\s*{_UUID}:[\w:-]+)*"),
    "mariadb": re.compile(r"\d+-\d+-\d+(,\d+-\d+-\d+)*"),
}
_FORMS: dict[str, KeyForm] = {"number": "number", "text": "text", "binary": "hex"}
"""By the words of ``snapshot.key_ranges``."""
_ALTERING = ("CREATE", "ALTER", "DROP", "RENAME")
PARTLY = "Rows of the event that Debezium has delivered in part come again, all of them."
_WITHIN = (TABLE_MAP, ROWS_QUERY, ANNOTATE_ROWS, *ROWS)
"""Events that only come inside of a transaction."""
NEW_SNAPSHOT = "Start the query with a new checkpoint and snapshot.mode=initial, which takes the snapshot."
OTHER_SERVER = (
    "It is of another server, or this one was reset or restored. Connect to the server that Debezium has read, or "
    "start with a new checkpoint and snapshot.mode=initial, which takes a new snapshot."
)


@dataclass(frozen=True)
class DebeziumPlace:
    """Where Debezium's connector for MySQL or MariaDB is.

    Attributes:
        file: name of the binlog file.
        offset: where the transaction's event lies that Debezium goes on with, or where the last event ended.
        events: how many events it passes over from there on.
        rows: how many rows of the next event it passes over.
        gtids: the transactions that are done; None: not known.
    """

    file: str
    offset: int
    events: int = 0
    rows: int = 0
    gtids: str | None = None

    @classmethod
    def from_fields(cls, fields: Mapping[str, Json]) -> DebeziumPlace:
        """Read an offset.

        Raises:
            OffsetError: it isn't one of these connectors, or its snapshot isn't finished.
        """
        offset = JsonObject(fields, "Debezium's offset", _wrong)
        if offset.value("snapshot") not in (None, False, *RUNNING) and not offset.flag("snapshot_completed", False):
            raise OffsetError(
                "Debezium has not delivered a change since its snapshot, or not finished it, and would begin it again: "
                "there is no position from which the log alone is enough.",
                NEW_SNAPSHOT,
            )
        return cls(
            offset.text("file"),
            offset.integer("pos"),
            offset.integer("event", 0),
            offset.integer("row", 0),
            offset.optional_text("gtids"),
        )


def _wrong(problem: str) -> OffsetError:
    return OffsetError(
        f"This is not an offset of Debezium's connector for this database: {problem}.", "Give its store."
    )


@dataclass(frozen=True)
class FirstEvents:
    """The events with which a transaction begins.

    Attributes:
        file: number of their file.
        offsets: where each lies in it.
        types: their types.
    """

    file: int
    offsets: list[int]
    types: list[int]


class MysqlHandover:
    """A ``Handover``.

    Args:
        options: the source's options.
    """

    catalog = ""

    def __init__(self, options: BinlogOptions) -> None:
        self._options = options
        self._session = MysqlSession(options, AcceptedGaps())

    def taken_over(
        self, offset: Mapping[str, Json], history: Iterable[Mapping[str, Json]] | None, before: str | None
    ) -> Place:
        """Return the place where Debezium's offset lies."""
        place = DebeziumPlace.from_fields(offset)
        conn = self._session.ordinary()
        epoch = 0 if before is None else Position.parse(before).epoch
        begin, events = self._by_gtids(conn, place) if self._goes_by_gtids(conn, place) else self._by_file(conn, place)
        name = binlogs(conn)[begin.file].name
        same = self._is_same_server(conn, place, begin)
        begin = replace(begin, epoch=epoch)
        at, notes = self._within(place, begin, events if same else None)
        if history is not None:
            upto = (begin.file, begin.transaction) if same else (split_name(place.file)[1], place.offset)
            structures = HistoryReader(conn, self._options, self._session.server()).structures(history, upto)
        else:
            structures = self._present_structures(
                conn, DumpStart(name, max(begin.transaction, FILE_HEADER_BYTES)), begin
            )
        assert self._session.at is not None
        mark = read_mark(self._session.beside, self._options.connector, begin, name)
        gtids = place.gtids if self._goes_by_gtids(conn, place) else None
        point = ResumePoint(self._session.at.server, gtids, self._session.at.host, mark)
        shown = f"{name}:{begin.transaction}" + (f", with the events up to {at.event}" if at.inside else "")
        return Place({"connector": self._options.connector}, str(at), point.to_json(), shown, notes, structures)

    def handed_back(self, position: str, bookmark: Mapping[str, Json] | None) -> HandedBack:
        """Return the offset from which Debezium goes on at a query's position, and the schema history there."""
        place = Position.parse(position)
        if bookmark is None:
            raise OffsetError(
                f"The checkpoint says nothing of the log before {position}.", "Let the query finish a micro-batch."
            )
        known = ResumePoint.from_json(bookmark)
        conn = self._session.ordinary()
        if self._session.prove(position, known) != place.epoch:
            raise OffsetError(
                "The query has read another server than the one at this address, whose binlog is numbered differently.",
                "Let the query go on there and finish a micro-batch, or connect to the former server.",
            )
        name = binlogs(conn)[place.file].name
        fields: dict[str, Json] = {"file": name, "pos": place.transaction}
        if place.inside:
            fields |= self._passed_over(name, place)
        if known.gtids:
            fields["gtids"] = known.gtids
        files = ReadOnlyFiles(history_files(self._options))
        newest = stored_object(bookmark, "A bookmark").optional_text("history")
        schema = SchemaHistory(files, self._options.topic_prefix).load(position, newest)
        at = {key: value for key, value in fields.items() if key in ("file", "pos", "gtids")}
        return HandedBack(fields, tuple(debezium_image(schema, self._options.topic_prefix, at)))

    def chosen(self, text: str, before: str | None) -> Place:
        """Return the place of ``<file>:<offset>``, of a set of GTIDs that are done, or of a log position."""
        conn = self._session.ordinary()
        epoch = 0 if before is None else Position.parse(before).epoch
        gtids: str | None = None
        notes: tuple[str, ...] = ()
        if found := _FILE_AND_OFFSET.fullmatch(text):
            place = DebeziumPlace(found[1], int(found[2]))
            begin, _ = self._by_file(conn, place)
            if begin.transaction != place.offset:
                notes = (f"The offset {place.offset} lies inside of a transaction, which comes from its beginning.",)
        elif re.fullmatch(r"[0-9A-F]{10}(-[0-9A-F]{16}){2}-[0-9A-F]{8}", text):
            begin = Position.parse(text)
            if begin.inside or begin.epoch != epoch:
                raise OffsetError(f"The position {text} lies inside of a transaction, or in another server's log.")
            file = file_of(binlogs(conn), begin)
            if self._begin_of(file, begin.file, begin.transaction) != begin.transaction:
                raise OffsetError(f"The position {text} lies inside of a transaction.", "Give that of its beginning.")
        elif _GTIDS_TEXT[self._options.connector].fullmatch(text):
            place = DebeziumPlace("", 0, gtids=text)
            if not self._goes_by_gtids(conn, place):
                raise OffsetError("The server has no GTIDs.", "Give a file and an offset: binlog.000012:4711.")
            begin, _ = self._by_gtids(conn, place)
            gtids = text
        else:
            raise OffsetError(
                f"'{text}' is not a position in a binlog.",
                "Give a file and an offset, such as binlog.000012:4711, or the set of the GTIDs that are done.",
            )
        return self._at(conn, replace(begin, epoch=epoch), gtids, before, notes)

    def latest(self, before: str | None) -> Place:
        """Return the end of the binlog."""
        conn, server = self._session.ordinary(), self._session.server()
        epoch = 0 if before is None else Position.parse(before).epoch
        end = log_end(conn, server.flavor, server.version)
        return self._at(conn, end.position(epoch), end.gtids if server.flavor == "mysql" else None, before, ())

    def _at(
        self, conn: Connection, begin: Position, gtids: str | None, before: str | None, notes: tuple[str, ...]
    ) -> Place:
        """Return a place that lies between transactions."""
        options = self._options
        name = binlogs(conn)[begin.file].name
        if gtids is None and options.connector == "mariadb":
            gtids = gtids_before(conn, LogEnd(split_name(name)[0], begin.file, begin.transaction, ""))
        structures = None if before is None or str(begin) > before else self._known_structures(str(begin))
        if structures is None:
            start = DumpStart(name, max(begin.transaction, FILE_HEADER_BYTES))
            structures = self._present_structures(conn, start, begin)
        assert self._session.at is not None
        mark = read_mark(self._session.beside, options.connector, begin, name)
        point = ResumePoint(self._session.at.server, gtids or None, self._session.at.host, mark)
        shown = f"{name}:{begin.transaction}"
        return Place({"connector": options.connector}, str(begin), point.to_json(), shown, notes, structures)

    def _known_structures(self, position: str) -> Schema | None:
        """Return the tables' structures at an earlier position; None if the history doesn't reach back to it."""
        try:
            return SchemaHistory(ReadOnlyFiles(history_files(self._options)), self._options.topic_prefix).load(position)
        except SchemaHistoryError:
            return None

    def _passed_over(self, name: str, place: Position) -> dict[str, Json]:
        """Return the fields of an offset that lies inside of a transaction."""
        mariadb = self._options.connector == "mariadb"
        hidden = mariadb and not self._options.include_query
        count, begin = 0, place.transaction
        for records in self._records(DumpStart(name, place.transaction), place.file):
            if (records.inner != ORDINARY).any() or (records.types == TRANSACTION_PAYLOAD).any():
                return {}  # Debezium counts the events of compressed transactions otherwise: it begins at the first
            wanted = (records.offsets <= place.event) & ((records.types != ANNOTATE_ROWS) | (not hidden))
            if not count and not mariadb:
                # MySQL's BEGIN follows the GTID event.
                begin = int(records.offsets[1])
                wanted[0] = False
            count += int(wanted.sum())
            if int(records.offsets[-1]) >= place.event:
                break
        return {"pos": begin, "event": count}

    def _present_structures(self, conn: Connection, start: DumpStart, begin: Position) -> Schema:
        """Return the tables' structures as the server has them, if no statement of the log has altered any since."""
        server = self._session.server()
        structures = read_schema(conn, server)
        collations = read_collations(conn)
        for records in self._records(start, begin.file):
            for at, query in records.statements:
                text = statement_text(query, collations)
                if first_word(text, session_of(query, collations, server), server) in _ALTERING:
                    raise OffsetError(
                        f"Since Debezium's position a statement has altered tables, at {records.offsets[at]} in binlog "
                        f"file number {records.file(at)}: what they were like before isn't known.",
                        "Give Debezium's schema history with --history.",
                    )
        return structures

    def key_forms(self, oid: int, key: TableKey) -> tuple[KeyForm | None, ...]:
        """Return how the values of a key's columns are written."""
        del oid
        return tuple(_FORMS.get(kind[0]) for kind in key.kinds)

    def settle(self, place: Place) -> dict[str, Json] | None:
        """Store the tables' structures at a place; return the bookmark that names them."""
        if not isinstance(place.structures, Schema):
            return place.bookmark
        follower = SchemaFollower(self._options, AcceptedGaps())
        follower.begin(place.position, place.structures)
        return {**(place.bookmark or {}), "history": follower.newest(place.position)}

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def _goes_by_gtids(self, conn: Connection, place: DebeziumPlace) -> bool:
        if not place.gtids:
            return False
        if self._options.connector == "mariadb":
            return True
        return bool(run(conn, "SELECT @@GLOBAL.gtid_mode", "the server's settings")[0][0] == "ON")

    def _by_gtids(self, conn: Connection, place: DebeziumPlace) -> tuple[Position, FirstEvents | None]:
        """Return where the first transaction begins that isn't done, on whichever server this is, and its events."""
        options, server = self._options, self._session.server()
        assert place.gtids is not None
        done = parse_gtids(options.connector, place.gtids)
        known = ResumePoint("", place.gtids)
        start = by_gtids(conn, options.connector, Position(0, 0, 0), known, self._session.accepted)
        for _ in range(TRIES):
            found = self._first_events(start.dump, 0, place.events + 2)
            if found is not None:
                return Position(0, found.file, found.offsets[0]), found
            end = end_with_gtids(conn, server.flavor, server.version)
            if not lacking(parse_gtids(options.connector, end.gtids), done):
                return Position(0, end.file, end.offset), None
        raise ConnectError("The server's binlog has transactions to send, but does not send them.")

    def _by_file(self, conn: Connection, place: DebeziumPlace) -> tuple[Position, FirstEvents | None]:
        """Return where the transaction begins that Debezium's file and offset name, and its events."""
        number = split_name(place.file)[1]
        file = file_of(binlogs(conn), Position(0, number, place.offset))
        if file.name != place.file:
            raise OffsetError(f"The server has no binlog file {place.file}, but {file.name}.", OTHER_SERVER)
        begin = self._begin_of(file, number, place.offset)
        found = self._first_events(DumpStart(file.name, begin), number, place.events + 2) if place.events else None
        return Position(0, number, begin), found

    def _is_same_server(self, conn: Connection, place: DebeziumPlace, begin: Position) -> bool:
        """Return whether Debezium's file and offset are this server's: what follows them begins there, or behind."""
        number = split_name(place.file)[1]
        file = binlogs(conn).get(number)
        if file is None or file.name != place.file or file.size < place.offset:
            return False
        if begin.file == number:
            return place.offset - STATEMENT_BYTES <= begin.transaction <= place.offset + NEAR_BYTES
        return begin.file > number

    def _within(
        self, place: DebeziumPlace, begin: Position, events: FirstEvents | None
    ) -> tuple[Position, tuple[str, ...]]:
        """Return the position after the events that Debezium passes over, and what comes again."""
        if not place.events:
            return begin, ()
        again = (
            "Debezium has delivered a part of the transaction that begins there; it comes again from its beginning, "
            "since its events can't be counted as Debezium does.",
        )
        if events is None or TRANSACTION_PAYLOAD in events.types:
            return begin, again
        # MySQL's transaction begins with BEGIN, which follows the GTID event. MariaDB's texts of statements come only
        # if Debezium asks for them.
        first = 0 if self._options.connector == "mariadb" else 1
        hidden = self._options.connector == "mariadb" and not self._options.include_query
        counted = [
            (offset, kind)
            for offset, kind in list(zip(events.offsets, events.types, strict=True))[first:]
            if not (hidden and kind == ANNOTATE_ROWS)
        ]
        if len(counted) < place.events or counted[0][0] != place.offset:
            return begin, again
        done = counted[: place.events]
        notes = (PARTLY,) if place.rows else ()
        if not any(kind in ROWS for _, kind in done):
            return begin, notes
        return replace(begin, event=done[-1][0], row=ALL_ROWS), notes

    def _begin_of(self, file: BinlogFile, number: int, offset: int) -> int:
        """Return where the transaction begins that an offset of a file lies in; the offset if it lies in none."""
        last: tuple[int, int] | None = None
        begin = offset
        if offset <= FILE_HEADER_BYTES:
            return FILE_HEADER_BYTES
        for records in self._records(DumpStart(file.name, FILE_HEADER_BYTES), number):
            count = records.before(number, offset)
            kinds, offsets = records.types[:count], records.offsets[:count]
            gtids = np.flatnonzero(np.isin(kinds, GTIDS))
            if len(gtids):
                begin = int(offsets[gtids[-1]])
            if count:
                last = int(offsets[-1]), int(kinds[-1])
            if count < len(records):
                here = records.file(count) != number or int(records.offsets[count]) == offset
                break
        else:
            here = file.size == offset
        if not here:
            raise OffsetError(f"No event begins at offset {offset} of the binlog file {file.name}.", OTHER_SERVER)
        inside = last is not None and (last[1] in GTIDS or last[1] in _WITHIN)
        return begin if inside else offset

    def _first_events(self, start: DumpStart, file: int, least: int) -> FirstEvents | None:
        """Return the first events of the first transaction from a place on; None if the log has none.

        Args:
            start: the place.
            file: number of its file; 0: only the server knows it.
            least: how many events are wanted, if the transaction has so many.
        """
        found: FirstEvents | None = None
        for records in self._records(start, file):
            gtids = np.flatnonzero(np.isin(records.types, GTIDS)).tolist()
            first = 0
            if found is None:
                if not gtids:
                    continue
                first = gtids.pop(0)
                found = FirstEvents(records.file(first), [], [])
            after = gtids[0] if gtids else len(records)
            plain = records.inner[first:after] == ORDINARY
            found.offsets.extend(records.offsets[first:after].tolist())
            found.types.extend(np.where(plain, records.types[first:after], TRANSACTION_PAYLOAD).tolist())
            if gtids or len(found.offsets) >= least:
                break
        return found

    def _records(self, start: DumpStart, file: int) -> Iterator[Records]:
        """Yield the log from a place on, up to its end."""
        receiver = Receiver(BUFFER_BYTES, 0, file, start.offset, None)
        channel = DumpChannel(self._session.beside(), self._options.connector, PROBE_ID, HEARTBEAT_S)
        with closing(channel), closing(receiver):
            channel.start(start)
            ended = False
            while not ended or receiver.holding:
                try:
                    if not receiver.receive(channel.read_into, SILENCE_S):
                        raise ConnectError(f"Nothing came from the server for {SILENCE_S:.0f} s.")
                except ConnectError:
                    # With server id 0 the server ends the stream at the log's end.
                    ended = True
                count = receiver.waiting.count
                if count:
                    yield receiver.all_records()
                    receiver.drop(count)


def make_handover(options: BinlogOptions) -> Handover:
    """Return what takes a source's log over."""
    return MysqlHandover(options)
