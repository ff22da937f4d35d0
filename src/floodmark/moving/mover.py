"""Moves a stopped query: from Debezium's offset, and to it.

Each method first finds out, at the source, whether the query or Debezium can go on there, and returns a plan. Nothing
is written before the plan is carried out; the checkpoint, or Debezium's store, is copied first.
"""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyarrow import fs

from floodmark.capture.files import open_filesystem, state_dir_error
from floodmark.capture.gaps import Gap
from floodmark.capture.store import SCHEMA_HISTORY, is_run
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.handover import Handover, Place
from floodmark.connectors.contract.tables import TableCatalog
from floodmark.connectors.registry import connector_module, require_driver, spec_of
from floodmark.debezium.history import HistoryStore
from floodmark.debezium.offsets import OffsetStore, StoredOffset, find_offset
from floodmark.debezium.snapshot_state import DebeziumSnapshot
from floodmark.errors import OffsetError
from floodmark.json_data import Json
from floodmark.moving.incremental import SnapshotMover
from floodmark.snapshots.incremental.state import IncrementalState
from floodmark.snapshots.reports import ReportBox
from floodmark.spark.checkpoint import Checkpoint
from floodmark.spark.pipelines.model import Pipeline
from floodmark.spark.stream.offsets import Offset

MOVED = "moved"
"""In an offset, the name of the micro-batch before: no micro-batch has it, so none can end there by mistake."""
WITHOUT_SNAPSHOT = ("no_data", "recovery")
"""The values of ``snapshot.mode`` with which a new query reads no rows."""


@dataclass(frozen=True)
class Plan:
    """What would be written.

    Attributes:
        lines: what it is, for people; a sentence each.
        offset: where the query goes on; None: the checkpoint is not written.
        place: where that is.
        stored: the offset for Debezium; None: its store is not written.
        history: the schema history for Debezium; None: it is not written.
        forget: whether the checkpoint is set aside.
    """

    lines: tuple[str, ...]
    offset: Offset | None = None
    place: Place | None = None
    stored: StoredOffset | None = None
    history: tuple[Mapping[str, Json], ...] | None = None
    forget: bool = False


class Mover:
    """Moves one query.

    Args:
        pipeline: the query.
        stamp: what the names of copies end with; None: the time.
    """

    def __init__(self, pipeline: Pipeline, stamp: str | None = None) -> None:
        self._pipeline = pipeline
        self._options: CommonOptions = pipeline.options
        self._checkpoint = Checkpoint(pipeline.checkpoint)
        self.stamp = stamp or f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"

    def delivered(self) -> Offset | None:
        """Return the offset of the last finished micro-batch; None if the query hasn't begun.

        Raises:
            CheckpointError: it can't be read.
        """
        if not self._checkpoint.is_used():
            return None
        found = self._checkpoint.delivered()
        return None if found is None else Offset.from_json(found)

    def from_debezium(
        self, store: OffsetStore, name: str | None, history: Iterable[Mapping[str, Json]] | None = None
    ) -> Plan:
        """Plan to let the query go on where Debezium's connector has stopped.

        Args:
            store: the connector's offsets.
            name: the connector's name; None: the only one with the query's ``topic.prefix``.
            history: the connector's schema history; None: it isn't given.

        Raises:
            FloodmarkError: the query can't go on from there.
        """
        self._refuse_running()
        stored = find_offset(store, self._options.topic_prefix, name)
        before = self.delivered()
        snapshot = DebeziumSnapshot.from_fields(stored.fields)
        with self._handover() as handover:
            place = handover.taken_over(stored.fields, history, None if before is None else before.log or None)
            offset = self._offset(place, before)
            read: list[str] = []
            if snapshot is not None:
                with self._tables() as tables:
                    mover = SnapshotMover(self._options, tables, handover)
                    offset.incremental, read = mover.taken_over(snapshot)
        lines = [
            f"Debezium's connector '{stored.name}' has delivered everything up to {place.shown} "
            f"(position {place.position}).",
            *place.notes,
            *read,
        ]
        if before is None:
            lines.append(f"A new checkpoint is made in {self._checkpoint.uri}, from which the query goes on there.")
        else:
            lines.append(f"The query's checkpoint {self._checkpoint.uri} is at {before.log}, and is moved there.")
            lines += _crossed(before, place)
            own = [] if before.incremental is None else before.incremental.tables
            if own:
                lines.append(
                    f"The query's own incremental snapshot of {', '.join(own)} ends. Send a signal for what Debezium "
                    "has not taken over of it."
                )
        return Plan(tuple(lines), offset, place)

    def to_debezium(self, store: OffsetStore, name: str | None) -> Plan:
        """Plan to let Debezium's connector go on where the query has stopped.

        Args:
            store: the connector's offsets.
            name: the connector's name; None: that of the store's only offset with the query's ``topic.prefix``.

        Raises:
            FloodmarkError: the connector would lose something there.
        """
        self._refuse_running()
        self._checkpoint.require()
        offset = self.delivered()
        if offset is None or offset.new:
            raise OffsetError("The query has finished no micro-batch yet.", "Start Debezium's connector as a new one.")
        if offset.snapshot is not None or offset.catch_up is not None:
            raise OffsetError(
                "The query has not finished its snapshot, which Debezium can't go on with.",
                "Let the query finish it, or start Debezium's connector as a new one, which takes its own.",
            )
        server = self._options.topic_prefix
        known = find_offset(store, server) if name is None else None
        state = self._settled(offset)
        snapshot: DebeziumSnapshot | None = None
        read: list[str] = []
        with self._handover() as handover:
            back = handover.handed_back(offset.log, offset.bookmark)
            if state is not None:
                with self._tables() as tables:
                    snapshot, read = SnapshotMover(self._options, tables, handover).handed_back(state)
        stored = StoredOffset(
            name or (known.name if known else ""),
            known.partition if known else {"server": server},
            back.fields if snapshot is None else {**back.fields, **snapshot.to_fields()},
        )
        lines = [
            f"The query has delivered everything up to {offset.log}. Debezium's connector '{stored.name}' goes on from "
            "there.",
            f"In {store.place}, its offset becomes {stored.value.decode()}.",
        ]
        if known is not None:
            lines.append(f"It was {known.value.decode()}.")
        lines += read
        if back.history is not None:
            lines.append(f"Its schema history becomes {len(back.history)} records with the structures of all tables.")
        return Plan(tuple(lines), stored=stored, history=back.history)

    def to_position(self, text: str | None) -> Plan:
        """Plan to move the query.

        Args:
            text: a position, in the source's notation or as the log position; None: the end of the log.

        Raises:
            FloodmarkError: the query can't go on there.
        """
        self._refuse_running()
        before = self.delivered()
        if before is not None and before.reads_tables:
            raise OffsetError(
                "The query has not finished a snapshot, which depends on the position of its log.",
                "Let it finish, or stop an incremental one with the signal stop-snapshot.",
            )
        with self._handover() as handover:
            position = None if before is None else before.log or None
            place = handover.latest(position) if text is None else handover.chosen(text, position)
            offset = self._offset(place, before)
        lines = [f"The query's next position is {place.shown} (position {place.position}).", *place.notes]
        if before is None:
            return Plan((*lines, f"A new checkpoint is made in {self._checkpoint.uri}."), offset, place)
        # A table that was made in a gap is a new one.
        offset = replace(offset, known=before.known)
        if place.position > before.log:
            reason = f"The query was moved from {before.log} to {place.position}."
            command = "floodmark offsets skip-to-latest" if text is None else "floodmark offsets set"
            offset = replace(offset, accepted=(Gap(before.log, place.position, reason, command),))
            lines.append(
                f"Changes between {before.log} and {place.position} are lost: the query never delivers them. Its next "
                "micro-batch tells of this gap. Rows of targets that were changed meanwhile stay as they are."
            )
        else:
            lines += _crossed(before, place)
        return Plan(tuple(lines), offset, place)

    def from_the_start(self) -> Plan:
        """Plan to forget where the query is, so that it begins as a new one.

        Raises:
            FloodmarkError: there is no checkpoint, or the query is running.
        """
        self._refuse_running()
        self._checkpoint.require()
        before, mode = self.delivered(), self._options.snapshot_mode
        lines = [f"The checkpoint {self._checkpoint.uri} is set aside, and the query begins as a new one."]
        if before is not None:
            lines.append(f"It is at {before.log}.")
        if mode in WITHOUT_SNAPSHOT:
            lines.append(
                f"With snapshot.mode={mode} a new query takes no snapshot: the changes between that position and its "
                "start are lost, except those that a replication slot still holds. No event tells of this gap."
            )
        else:
            lines.append(
                f"With snapshot.mode={mode} a new query reads the tables first. Rows that were deleted between that "
                "position and its start stay in targets that keep what other queries have written."
            )
        lines.append("A mirror, and the sink jdbc, see a new query, too: see their option existing.tables.")
        return Plan(tuple(lines), forget=True)

    def carry_out(self, plan: Plan, store: OffsetStore | None = None, history: HistoryStore | None = None) -> list[str]:
        """Write what was planned; return what was done, for people.

        Args:
            plan: what is written.
            store: gets Debezium's offset.
            history: gets Debezium's schema history.

        Raises:
            FloodmarkError: something can't be written.
        """
        done = []
        if plan.forget:
            return [f"The checkpoint was moved to {self._checkpoint.set_aside(self.stamp)}."]
        if plan.history is not None:
            if history is None:
                raise OffsetError("Debezium needs the schema history, too.", "Name its file with --history.")
            # Before the offset: a history that reaches further than the offset does no harm.
            copy = history.write(plan.history)
            done += [f"The former schema history was copied to {copy}."] if copy else []
            done.append("Debezium's schema history was written.")
        if plan.stored is not None and store is not None:
            copy = store.write(plan.stored.key, plan.stored.value)
            done += [f"The former store was copied to {copy}."] if copy else []
            done.append("Debezium's offset was written.")
        if plan.offset is not None and plan.place is not None:
            if self._checkpoint.is_used():
                done.append(f"The checkpoint was copied to {self._checkpoint.copy(self.stamp)}.")
            done += [f"The schema history was copied to {copy}." for copy in self._copied_history()]
            with self._handover() as handover:
                offset = replace(plan.offset, bookmark=handover.settle(plan.place))
            batch = self._checkpoint.go_on_from(offset.to_json())
            done.append(f"The checkpoint was written: the query goes on after micro-batch {batch}.")
        return done

    def _settled(self, offset: Offset) -> IncrementalState | None:
        """Return the incremental snapshots after an offset's micro-batch: what its tasks haven't read is left."""
        if offset.incremental is None:
            return None
        state = offset.incremental.copy()
        state.settle_batch(ReportBox(self._options.state_dir, self._options.owner).read(offset.batch))
        return state

    @contextmanager
    def _tables(self) -> Iterator[TableCatalog]:
        source = connector_module(self._options.connector, "connector").make_source(self._options)
        try:
            yield source.tables
        finally:
            source.close()

    def _offset(self, place: Place, before: Offset | None) -> Offset:
        """Return the offset that lies at a place; what an earlier one excludes stays excluded."""
        with self._tables() as tables:
            known = tuple(sorted(set(tables.names())))
        made = Offset(place.source, place.position, known=known, bookmark=place.bookmark, batch=uuid.uuid4().hex)
        return replace(made, after=MOVED, excluded=() if before is None else before.excluded)

    def _copied_history(self) -> list[str]:
        """Copy the schema history, if there is one in the state directory, and return where to."""
        options = self._options
        filesystem, root = open_filesystem(options.state_dir)
        history = f"{root.rstrip('/')}/{options.owner}/{SCHEMA_HISTORY}"
        if filesystem.get_file_info(history).type != fs.FileType.Directory:
            return []
        # Beside the source's directory, in which a query removes what it doesn't know.
        copy = f"{root.rstrip('/')}/{options.owner}.backup-{self.stamp}/{SCHEMA_HISTORY}"
        try:
            filesystem.create_dir(copy, recursive=True)
            fs.copy_files(history, copy, filesystem, filesystem)
        except OSError as exc:
            raise state_dir_error(options.state_dir, "where a copy can't be made", exc, "Free some space.") from None
        return [copy]

    def _refuse_running(self) -> None:
        if is_run(self._options.state_dir, self._options.owner):
            raise OffsetError(
                "The query is running.", "Stop it first: it would go on from its own position, and overwrite this one."
            )

    @contextmanager
    def _handover(self) -> Iterator[Handover]:
        connector = self._options.connector
        require_driver(connector)
        spec = spec_of(connector)
        if spec is None or importlib.util.find_spec(f"{spec.package}.handover") is None:
            raise OffsetError(f"Positions of the connector '{connector}' can't be moved yet.", "See its page.")
        handover: Handover = connector_module(connector, "handover").make_handover(self._options)
        try:
            yield handover
        finally:
            handover.close()


def _crossed(before: Offset, place: Place) -> list[str]:
    """Return what moving a query means for what it has delivered."""
    if place.position < before.log:
        return [f"Changes between {place.position} and {before.log} have been delivered by the query: they come again."]
    if place.position > before.log:
        return [f"Changes between {before.log} and {place.position} were delivered by Debezium, not by the query."]
    return []


def shown_fields(fields: Mapping[str, object]) -> str:
    """Return an offset's fields for people."""
    return ", ".join(f"{name} {value}" for name, value in sorted(fields.items()))
