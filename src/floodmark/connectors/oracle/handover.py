"""Finds the place of Debezium's offset in Oracle's log, and Debezium's offset for a place.

Debezium's offset has the number behind which the log is read again, since the oldest open transaction began there
(``scn``), and the newest commit of each redo thread that was delivered, with the transactions that have that number
(``commit_scn``). What was committed before is passed over. A position here sorts all commits, so it lies before the
lowest of these numbers, and the transactions that the offset names are left out; of other threads, what lies between
comes again.

Source: Debezium's ``OracleOffsetContext``, ``CommitScn`` and the two ``…LogMinerStreamingChangeEventSource``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from floodmark.connectors.contract.handover import HandedBack, Handover, Place
from floodmark.connectors.contract.key_forms import KeyForm
from floodmark.connectors.contract.table_key import TableKey
from floodmark.connectors.oracle.commit_scn import CommitScn, ThreadCommit
from floodmark.connectors.oracle.continuity.check import prove, prove_kept
from floodmark.connectors.oracle.continuity.resume_point import ResumePoint
from floodmark.connectors.oracle.mining.available_logs import archive_destinations
from floodmark.connectors.oracle.mining.log_queries import oldest_scn
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.position import Position, behind
from floodmark.connectors.oracle.schema.debezium_history import check_history, debezium_image
from floodmark.connectors.oracle.schema.follower import SchemaFollower
from floodmark.connectors.oracle.schema.versions import TableVersions
from floodmark.connectors.oracle.server.catalog import StoredTable, read_tables
from floodmark.connectors.oracle.server.connection import Connection, at_primary, close, value
from floodmark.connectors.oracle.server.database import (
    Database,
    current_scn,
    oldest_open_transaction,
    read_database,
    read_threads,
)
from floodmark.connectors.oracle.source.session import OracleSession
from floodmark.connectors.schema_history.files import ReadOnlyFiles, StateDirFiles
from floodmark.debezium.snapshot_state import RUNNING
from floodmark.errors import CheckpointError, OffsetError
from floodmark.json_data import Json, JsonObject

NO_TRANSACTION = "0" * 16
NEW_SNAPSHOT = "Start the query with a new checkpoint and snapshot.mode=initial, which takes the snapshot."
OTHER_SERVER = (
    "It is of another database, or this one was restored or opened with RESETLOGS. Connect to the database that "
    "Debezium has read, or start with a new checkpoint and snapshot.mode=initial, which takes a new snapshot."
)
ADAPTERS = {
    "olr": "Where a message of OpenLogReplicator (scn_idx) lies in its transaction hasn't been proven yet",
    "xstream": "A position of XStream (lcr_position) is one of Oracle's own library",
}
"""Why positions of an adapter can't be moved."""
STRUCTURES = (
    "The tables' structures are those that the dictionary has now. What was logged before a table was altered since "
    "can't be decoded, which the query then says of that table."
)
_FORMS: dict[str, KeyForm] = {"number": "number", "bytes": "hex"}
"""By the words of ``snapshot.key_ranges``. The order of texts is that of a session, and Debezium's has its own."""
_NUMBER = re.compile(r"\d+")
_POSITION = re.compile(r"[0-9A-F]{16}-[0-9A-F]{4}-[0-9A-F]{16}-[0-9A-F]{8}")


@dataclass(frozen=True)
class DebeziumPlace:
    """Where Debezium's connector is.

    Attributes:
        begin: the changes behind this number are read again.
        position: everything that was committed before has been delivered.
        done: the transactions behind that which have been delivered as well.
        newest: the highest number that it names.
        threads: the redo threads that it names; empty: nothing was delivered since the snapshot.
        part: the transaction of which a part was delivered; None: there is none.
    """

    begin: int
    position: Position
    done: frozenset[str]
    newest: int
    threads: frozenset[int] = frozenset()
    part: str | None = None

    def without(self, threads: Iterable[int]) -> DebeziumPlace:
        """Return the place before all that threads may have committed that the offset doesn't name."""
        if not self.threads or self.threads.issuperset(threads):
            return self
        return replace(self, position=Position(min(self.begin + 1, self.position.scn)))

    @classmethod
    def from_fields(cls, fields: Mapping[str, Json]) -> DebeziumPlace:
        """Read an offset.

        Raises:
            OffsetError: it isn't one of this connector and of LogMiner, or its snapshot isn't finished.
        """
        offset = JsonObject(fields, "Debezium's offset", _wrong)
        for field, adapter in (("lcr_position", "xstream"), ("scn_idx", "olr")):
            if offset.value(field) is not None:
                raise _refused(adapter)
        if offset.value("snapshot") not in (None, *RUNNING) and not offset.flag("snapshot_completed", False):
            raise OffsetError(
                "Debezium has not finished its snapshot, and would begin it again: there is no position from which the "
                "log alone is enough.",
                NEW_SNAPSHOT,
            )
        scn = _number(offset, "scn")
        if scn is None:
            raise _wrong("it has no scn")
        pending = _pending(offset)
        try:
            commits = CommitScn.parse(str(offset.value("commit_scn") or ""))
        except CheckpointError as exc:
            raise _wrong(exc.what) from None
        if not commits.threads:
            # Nothing was delivered but the rows of a snapshot, which sees what was committed up to a number.
            seen = _number(offset, "snapshot_scn")
            after = scn if seen is None else seen
            return cls(min([scn, after, *(one - 1 for one in pending)]), Position(after + 1), frozenset(), after)
        lowest = min(one.scn for one in commits.threads.values())
        done = frozenset(name.lower() for one in commits.threads.values() for name in one.transactions)
        part = offset.optional_text("txId")
        if part is not None and (part.lower() in done or offset.value("txSeq") is None):
            part = None
        # LogMiner's other adapter reads from the number itself on.
        begin = min([scn, lowest, *pending]) - 1
        return cls(begin, Position(lowest), done, max(scn, commits.newest), frozenset(commits.threads), part)


def _number(offset: JsonObject, name: str) -> int | None:
    found = offset.value(name)
    if found is None:
        return None
    if isinstance(found, bool) or not _NUMBER.fullmatch(str(found)):
        raise _wrong(f"its {name} is no change number")
    return int(str(found))


def _pending(offset: JsonObject) -> list[int]:
    """Return where the transactions began that were open at the snapshot's number and that must be read as a whole."""
    text = offset.optional_text("snapshot_pending_tx") or ""
    found = [entry.rpartition(":")[2].strip() for entry in text.split(",") if entry.strip()]
    if not all(map(_NUMBER.fullmatch, found)):
        raise _wrong("its snapshot_pending_tx is damaged")
    return list(map(int, found))


def _wrong(problem: str) -> OffsetError:
    return OffsetError(f"This is not an offset of Debezium's Oracle connector: {problem}.", "Give its own store.")


def _refused(adapter: str) -> OffsetError:
    return OffsetError(
        f"{ADAPTERS[adapter]}: it can't be taken over or handed back.",
        f"With database.connection.adapter={adapter}, start with a new checkpoint and snapshot.mode=initial, or let "
        "Debezium go on with LogMiner first, and import its offset then.",
    )


class OracleHandover:
    """A ``Handover``.

    Args:
        options: the source's options.

    Raises:
        OffsetError: positions of its adapter can't be moved.
    """

    def __init__(self, options: OracleOptions) -> None:
        if options.adapter in ADAPTERS:
            raise _refused(options.adapter)
        self.catalog = options.database
        self._options = options
        self._session = OracleSession(options)

    def taken_over(
        self, offset: Mapping[str, Json], history: Iterable[Mapping[str, Json]] | None, before: str | None
    ) -> Place:
        """Return the place where Debezium's offset lies."""
        del before
        place = DebeziumPlace.from_fields(offset)
        conn = self._session.mining()
        try:
            with at_primary(self._options, conn) as root:
                database = read_database(root)
                place = place.without(one.number for one in read_threads(root) if one.is_open)
            self._session.identity = database.identity
            _refuse_other(database, place.begin, place.newest)
            self._prove_kept(conn, place.begin)
        finally:
            close(conn)
        notes = [] if history is not None else [STRUCTURES]
        if history is not None:
            check_history(history, self._read_tables(), self._options)
        if place.part is not None:
            notes.append(f"Debezium has delivered a part of the transaction {place.part}, which comes again.")
        if len(place.threads) > 1 or (place.threads and place.newest > place.position.scn):
            notes.append(
                f"Debezium's offset names commits up to {place.newest}, and not those of each redo thread: what was "
                f"committed from {place.position.scn} on comes again, but for the transactions that it names."
            )
        point = ResumePoint(
            database.identity, place.begin, abandoned=tuple(sorted(place.done)), adapter=self._options.adapter
        )
        return self._place(place.position, point, tuple(notes))

    def handed_back(self, position: str, bookmark: Mapping[str, Json] | None) -> HandedBack:
        """Return the offset from which Debezium goes on at a query's position, and the schema history there."""
        if bookmark is None:
            raise OffsetError(
                f"The checkpoint says nothing of the log before {position}.", "Let the query finish a micro-batch."
            )
        place, known = Position.parse(position), ResumePoint.from_json(bookmark)
        if known.adapter in ADAPTERS:
            raise _refused(known.adapter)
        conn = self._session.mining()
        try:
            with at_primary(self._options, conn) as root:
                self._session.identity = prove(root, position, known).identity
                threads = [one.number for one in read_threads(root)]
            self._prove_kept(conn, known.begin)
        finally:
            close(conn)
        # Of other transactions with the commit's number nothing is known: they come again, as does one in the middle.
        done = {name.lower() for name in known.abandoned}
        if place.number and not known.filters:
            done.add(place.transaction.lower())
        scn = place.scn if place.number or done else place.scn - 1
        commit = ThreadCommit(scn, frozenset(done or [NO_TRANSACTION]))
        begin = str(known.begin)
        fields: dict[str, Json] = {
            "scn": begin,
            "commit_scn": str(CommitScn(dict.fromkeys(threads, commit))),
            "snapshot_scn": begin,
        }
        versions = TableVersions(ReadOnlyFiles(StateDirFiles(self._options.state_dir, self._options.owner)))
        tables = versions.read(known.structures).tables
        at: dict[str, Json] = {"scn": begin, "commit_scn": fields["commit_scn"]}
        return HandedBack(fields, tuple(debezium_image(tables.values(), self._options.topic_prefix, at)))

    def chosen(self, text: str, before: str | None) -> Place:
        """Return the place behind a change number, or at a log position."""
        del before
        if _NUMBER.fullmatch(text):
            position = Position.parse(behind(int(text)))
        elif _POSITION.fullmatch(text):
            position = Position.parse(text)
        else:
            raise OffsetError(f"'{text}' is not a position in Oracle's log.", "Give a change number, such as 2868546.")
        if position.is_inside:
            raise OffsetError(f"The position {text} lies inside of a transaction.", "Give that of another commit.")
        conn = self._session.mining()
        try:
            with at_primary(self._options, conn) as root:
                database = read_database(root)
            self._session.identity = database.identity
            _refuse_other(database, position.scn - 1, position.scn - 1)
            destinations = archive_destinations(conn, self._options.destinations)
            oldest = value(conn, oldest_scn(self._options.archive_hours, destinations), "looking for the oldest log")
            # Nothing says what was open then, so the log is read from its beginning.
            begin = min(position.scn - 1, position.scn - 1 if oldest is None else int(oldest) - 1)
            self._prove_kept(conn, position.scn - 1)
        finally:
            close(conn)
        notes = (f"The log is read from {begin} on, since nothing says which transactions were open then.", STRUCTURES)
        return self._place(position, ResumePoint(database.identity, begin, adapter=self._options.adapter), notes)

    def latest(self, before: str | None) -> Place:
        """Return the end of the log."""
        del before
        conn = self._session.mining()
        try:
            with at_primary(self._options, conn) as root:
                database = read_database(root)
                oldest = oldest_open_transaction(root)
                end = current_scn(root)
            self._session.identity = database.identity
        finally:
            close(conn)
        begin = min(database.scn, end if oldest is None else oldest - 1)
        point = ResumePoint(database.identity, begin, adapter=self._options.adapter)
        return self._place(Position.parse(behind(end)), point, ())

    def key_forms(self, oid: int, key: TableKey) -> tuple[KeyForm | None, ...]:
        """Return how the values of a key's columns are written."""
        del oid
        return tuple(_FORMS.get(kind[0]) for kind in key.kinds)

    def settle(self, place: Place) -> dict[str, Json] | None:
        """Store the tables' structures at a place; return the bookmark that names them."""
        assert place.bookmark is not None
        follower = SchemaFollower(self._options, self._read_tables)
        # The dictionary may know of statements that the log only has behind the place.
        name = follower.begin(place.position, is_exact=False)
        return ResumePoint.from_json(place.bookmark).with_structures(name).to_json()

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    def _place(self, position: Position, point: ResumePoint, notes: tuple[str, ...]) -> Place:
        shown = f"SCN {position.scn - 1}"
        if point.abandoned:
            shown += f", and the transactions {', '.join(point.abandoned)}"
        bookmark = replace(point, structures="").to_json()
        return Place({"connector": self._options.connector}, str(position), bookmark, shown, notes)

    def _prove_kept(self, conn: Connection, begin: int) -> None:
        destinations = archive_destinations(conn, self._options.destinations)
        prove_kept(conn, begin, self._options.archive_hours, destinations)

    def _read_tables(self) -> list[StoredTable]:
        return read_tables(self._session.ordinary(), self._options.database, self._options.captures)


def _refuse_other(database: Database, oldest: int, newest: int) -> None:
    """Refuse numbers that are not of a database's present life."""
    if newest > database.scn:
        raise OffsetError(
            f"The position {newest} lies in the future: the database {database.name} has come to {database.scn}.",
            OTHER_SERVER,
        )
    if oldest + 1 < database.resetlogs:
        raise OffsetError(
            f"The position {oldest} lies before the change number {database.resetlogs}, at which the database "
            f"{database.name} was opened with RESETLOGS: it is one of its earlier life, or of another database.",
            OTHER_SERVER,
        )


def make_handover(options: OracleOptions) -> Handover:
    """Return what takes a source's log over."""
    return OracleHandover(options)
