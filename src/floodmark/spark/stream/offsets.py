"""The offset: the whole resume state, as a JSON document in Spark's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from floodmark.capture.gaps import Gap
from floodmark.errors import CheckpointError
from floodmark.json_data import Json, JsonObject, stored_object
from floodmark.notifications.records import Notification, pack_notifications, unpack_notifications
from floodmark.packing import pack_names, unpack_names
from floodmark.signals.records import ExecuteSnapshot
from floodmark.snapshots.excluded_tables import ExcludedTable
from floodmark.snapshots.incremental.state import IncrementalState
from floodmark.snapshots.state import SnapshotState
from floodmark.spark.stream.catch_up import CatchUpState

VERSION = 4
READABLE = (3, VERSION)


@dataclass
class Offset:
    """Where a query is.

    Attributes:
        source: what identifies the source; empty before the first micro-batch.
        log: log position; empty before the first micro-batch.
        snapshot: the running snapshot, if any.
        ended: whether nothing follows (``snapshot.mode=initial_only``).
        incremental: the incremental snapshots, if any.
        taken: receipts of the polled signals that were taken with this offset, and of those that may be returned again.
        notifications: the notifications of the micro-batch that ends with this offset.
        blocking: blocking snapshots that were requested and haven't begun.
        known: the names of the captured tables when new tables were last looked for.
        batch: the name of the micro-batch that ends with this offset, under which its tasks report.
        excluded: the excluded tables.
        catch_up: the catch-up snapshot and stream of new tables, if there is one.
        gap: whether the log before this offset was left out: the source had lost it, or the query doesn't stream.
        heartbeat: the time of the heartbeat in the micro-batch that ends with this offset, milliseconds since the
            epoch; None: there is none.
        context: what decoders of that micro-batch need besides the log (``LogSource.decode_context``).
        bookmark: what the connector needs besides the position to go on from ``oldest``; None: nothing.
        gaps: accepted gaps that have been announced and that the log has not passed yet.
        after: the name of the micro-batch before; None: an earlier version of Floodmark has written the offset.
        read: by the ids of signals, how many of the tables that they asked for this offset knows to have been read to
            the end, by the micro-batch before or earlier, and that the offset before didn't know.
        accepted: gaps that a user has accepted while the query was stopped, and that the next micro-batch announces.
    """

    source: dict[str, str]
    log: str
    snapshot: SnapshotState | None = None
    ended: bool = False
    incremental: IncrementalState | None = None
    taken: tuple[str, ...] = ()
    notifications: tuple[Notification, ...] = ()
    gap: bool = False
    blocking: tuple[ExecuteSnapshot, ...] = ()
    known: tuple[str, ...] = ()
    batch: str = ""
    excluded: tuple[ExcludedTable, ...] = ()
    catch_up: CatchUpState | None = None
    heartbeat: int | None = None
    context: int | None = None
    bookmark: dict[str, Json] | None = None
    gaps: tuple[Gap, ...] = ()
    after: str | None = None
    read: Mapping[str, int] = field(default_factory=dict)
    accepted: tuple[Gap, ...] = ()

    @property
    def oldest(self) -> str:
        """The position from which the log is still needed."""
        return (
            min(self.log, self.catch_up.position) if self.catch_up is not None and self.catch_up.position else self.log
        )

    @property
    def new(self) -> bool:
        """Whether the query hasn't begun."""
        return not self.log

    @property
    def reads_tables(self) -> bool:
        """Whether a snapshot runs or is about to."""
        runs = self.incremental is not None and self.incremental.active
        return runs or self.snapshot is not None or self.catch_up is not None or bool(self.blocking)

    def to_json(self) -> dict[str, Json]:
        """Return the offset as JSON data."""
        after: dict[str, Json] = {} if self.after is None else {"after": self.after}
        if self.read:
            after["read"] = dict(self.read)
        if self.accepted:
            after["accepted"] = [gap.to_json() for gap in self.accepted]
        return {
            "v": VERSION,
            "source": self.source,
            "log": self.log,
            "snapshot": self.snapshot.to_json() if self.snapshot else None,
            "ended": self.ended,
            "incremental": self.incremental.to_json() if self.incremental else None,
            "taken": list(self.taken),
            "notifications": pack_notifications(self.notifications),
            "gap": self.gap,
            "known": pack_names(self.known),
            "batch": self.batch,
            "aside": [table.to_json() for table in self.excluded],
            "lane": self.catch_up.to_json() if self.catch_up else None,
            "blocking": [action.to_json() for action in self.blocking],
            "heartbeat": self.heartbeat,
            "xmin": self.context,
            "bookmark": self.bookmark,
            "gaps": [gap.to_json() for gap in self.gaps],
            **after,
        }

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the offset that ``to_json`` described.

        Raises:
            CheckpointError: it has a format version that this Floodmark doesn't read, or describes something else.
        """
        stored = stored_object(data, "An offset")
        version = stored.value("v")
        if version not in READABLE:
            raise CheckpointError(
                f"The checkpoint has format version {version}; this Floodmark reads "
                f"{' and '.join(map(str, READABLE))}.",
                "Use the Floodmark that wrote it, or a new checkpoint.",
            )
        snapshot, incremental, catch_up = (_present(stored, name) for name in ("snapshot", "incremental", "lane"))
        bookmark = stored.optional_member("bookmark")
        return cls(
            stored.text_by_name("source"),
            stored.text("log"),
            SnapshotState.from_json(snapshot) if snapshot else None,
            stored.flag("ended"),
            IncrementalState.from_json(incremental) if incremental else None,
            stored.texts("taken"),
            unpack_notifications(stored.value("notifications")),
            stored.flag("gap"),
            tuple(map(ExecuteSnapshot.from_json, stored.items("blocking"))),
            unpack_names(stored.value("known")),
            stored.text("batch"),
            tuple(map(ExcludedTable.from_json, stored.items("aside"))),
            CatchUpState.from_json(catch_up) if catch_up else None,
            _optional_integer(stored, "heartbeat"),
            _optional_integer(stored, "xmin"),
            None if bookmark is None else bookmark.content(),
            tuple(map(Gap.from_json, stored.items("gaps"))) if "gaps" in stored else (),
            stored.text("after") if "after" in stored else None,
            _counts(stored.member("read")) if "read" in stored else {},
            tuple(map(Gap.from_json, stored.items("accepted"))) if "accepted" in stored else (),
        )


def _counts(stored: JsonObject) -> dict[str, int]:
    return {name: stored.integer(name) for name in stored}


def _present(stored: JsonObject, name: str) -> Json:
    """Return a member that may be null; one that is missing would be work that is silently not done."""
    if name not in stored:
        raise stored.wrong(name, "an object or null")
    return stored.value(name)


def _optional_integer(stored: JsonObject, name: str) -> int | None:
    return None if stored.value(name) is None else stored.integer(name)


def following(start: Offset, **changes: Any) -> Offset:
    """Return the offset that follows another one; fields of a single micro-batch are reset."""
    single: dict[str, Any] = {"gap": False, "taken": (), "notifications": (), "heartbeat": None, "read": {}}
    return replace(start, **{**single, "accepted": (), **changes})
