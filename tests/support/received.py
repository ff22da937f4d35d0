"""Feeds bytes to the receiver of PostgreSQL's stream, without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from floodmark.capture.gaps import Gap
from floodmark.capture.log_stream import Cut
from floodmark.capture.segment import SegmentData
from floodmark.connectors.postgres.capture.cutting import FinishedCut
from floodmark.connectors.postgres.capture.header_relations import CatalogSteps
from floodmark.connectors.postgres.capture.pending_records import Arrived
from floodmark.connectors.postgres.capture.receiver import Receiver
from floodmark.connectors.postgres.continuity.bookmark import LastEnd
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.structure import CatalogColumn, CurrentStructure
from floodmark.connectors.postgres.types.type_info import TypeInfo
from floodmark.connectors.postgres.wire.frames import COPY_DATA
from floodmark.connectors.postgres.wire.messages import FRAME_KIND, PAYLOAD, PG_EPOCH_US, WAL_DATA
from tests.support.options import REQUIRED
from tests.support.pgoutput import FIRST_LSN, TEXT_OID, Log, read_frames, relation_message

TABLE, MOODS, LEVELS, SIGNALS = 16400, 16401, 16402, 16403
ENUM, DOMAIN = 90_000, 90_001
RELATIONS = {
    TABLE: relation_message(TABLE, "plain", ["id", "v"]),
    MOODS: relation_message(MOODS, "moods", ["id", "mood"], types=[TEXT_OID, ENUM]),
    LEVELS: relation_message(LEVELS, "levels", ["id", "level"], types=[TEXT_OID, DOMAIN]),
    SIGNALS: relation_message(SIGNALS, "signals", ["id", "type", "data"]),
}
TYPES = {ENUM: TypeInfo("mood", "e", labels=("sad", "ok")), DOMAIN: TypeInfo("level", "d", TEXT_OID)}
COMMIT_US = 1_000_000 + PG_EPOCH_US


@dataclass
class Catalog:
    """Answers requests to the catalog.

    Attributes:
        structure: of every table, but for its types.
        types: the types that need a description.
        requests: what was requested, in order.
    """

    structure: CurrentStructure = field(default_factory=CurrentStructure)
    types: Mapping[int, TypeInfo] = field(default_factory=dict)
    requests: list[dict[int, set[int]]] = field(default_factory=list)

    def answer(self, wanted: Mapping[int, set[int]]) -> dict[int, CurrentStructure]:
        """Return the structures of tables."""
        self.requests.append(dict(wanted))
        return {
            oid: replace(self.structure, types=self.types if types & self.types.keys() else {})
            for oid, types in wanted.items()
        }


class Fed:
    """A receiver with what it has reported.

    Args:
        options: more options than the required ones.
        segment_bytes: size at which a segment is full; less than the option allows.
        catalog: answers the requests to the catalog.
        lsn: replication starts at this LSN.
        end: the last end before.

    Attributes:
        begun: commit LSN and number of each transaction that began.
        replies: how often the server wanted a status update.
        gaps: changes that were left out.
        finished: the cuts.
    """

    def __init__(
        self,
        options: Mapping[str, str] | None = None,
        segment_bytes: int | None = None,
        catalog: Catalog | None = None,
        lsn: int = FIRST_LSN,
        end: LastEnd | None = None,
    ) -> None:
        parsed = PostgresOptions.parse({**REQUIRED, "skipped.operations": "none", **(options or {})})
        if segment_bytes is not None:
            parsed = parsed.model_copy(update={"segment_bytes": segment_bytes})
        self.receiver = Receiver(parsed, lsn, end)
        self.catalog = catalog or Catalog()
        self.begun: list[tuple[int, int]] = []
        self.replies = 0
        self.gaps: list[Gap] = []
        self.finished: list[FinishedCut] = []

    @property
    def cuts(self) -> list[Cut]:
        """The segments that were cut."""
        return [one.cut for one in self.finished]

    def idle(self) -> str | None:
        """Return the position up to which there is nothing to cut."""
        return self.receiver.idle_position

    def full(self) -> bool:
        """Return whether a segment's worth of messages has been received."""
        return self.receiver.full

    def feed(self, data: bytes, pieces: Iterable[int] = (), after_each: Callable[[], object] | None = None) -> None:
        """Let bytes arrive.

        Args:
            data: the bytes.
            pieces: sizes of the first pieces; what is left comes at once.
            after_each: called after each piece.
        """
        sizes = iter(pieces)
        at = 0
        while at < len(data):
            space = self.receiver.space()
            count = min(next(sizes, len(data)), len(data) - at, len(space))
            space[:count] = data[at : at + count]
            for happened in self.receiver.take(count):
                self._note(happened)
            at += count
            if after_each is not None:
                after_each()

    def _note(self, happened: Arrived | Gap) -> None:
        if isinstance(happened, Gap):
            self.gaps.append(happened)
        else:
            self.begun += zip(happened.lsn.tolist(), happened.xid.tolist(), strict=True)
            self.replies += happened.reply

    def cut(self, force: bool = False) -> Cut | None:
        """Cut a segment, and answer its requests."""
        finished = self._answer(self.receiver.cut(force))
        if finished is None:
            return None
        self.finished.append(finished)
        return finished.cut

    def _answer(self, steps: CatalogSteps[FinishedCut | None]) -> FinishedCut | None:
        try:
            request = next(steps)
            while True:
                request = steps.send(self.catalog.answer(request))
        except StopIteration as end:
            finished: FinishedCut | None = end.value
            return finished


def records_of(data: SegmentData) -> list[bytes]:
    """Return the messages of a segment, which must be where the segment says."""
    found = read_frames(data.payload.tobytes())
    assert [start for start, _ in found] == data.starts.tolist()
    return [message for _, message in found]


def lsn_of(number: int) -> int:
    """Return the LSN of a transaction's commit record."""
    return FIRST_LSN + 1000 * (number + 1)


def opened(*changes: Callable[[Log], None], first: int = 0) -> Log:
    """Return the log of a transaction that has begun, with an insert before the changes."""
    log = Log()
    log.begin(lsn_of(first), 700)
    log.relation(RELATIONS[TABLE])
    insert(log)
    for change in changes:
        change(log)
    return log


def insert(log: Log, oid: int = TABLE) -> None:
    """Add an insert of two columns."""
    log.change("I", oid, ("N", ["1", "one"]))


def raw(log: Log) -> bytes:
    """Return a log's bytes."""
    return b"".join(log.frames)


def catalog() -> Catalog:
    """Return a catalog of tables with the columns ``id``, the key, and ``v``."""
    columns = (CatalogColumn("id", TEXT_OID, False), CatalogColumn("v", TEXT_OID, False))
    return Catalog(CurrentStructure(key=("id",), required=("id",), defaults={"v": "'x'"}, columns=columns), TYPES)


def fed(options: Mapping[str, str] | None = None, segment_bytes: int | None = None) -> Fed:
    """Return a receiver with such a catalog and a signal table; for the arguments see ``Fed``."""
    return Fed({"signal.data.collection": "public.signals", **(options or {})}, segment_bytes, catalog())


def is_record(frame: bytes) -> bool:
    """Return whether a message of a log is a record: not a keepalive, and not something besides CopyData."""
    return frame[0] == COPY_DATA and frame[FRAME_KIND] == WAL_DATA


def messages_of(log: Log) -> list[bytes]:
    """Return the records of a log."""
    return [frame[PAYLOAD:] for frame in log.frames if is_record(frame)]
