"""From segments to events: the ``LogDecoder`` of PostgreSQL.

All changes of tables that look alike and of one kind are made into events together; at the end they are put
back into the log's order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.capture.segment import SegmentData
from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.base import DeadLetter, TableFailure
from floodmark.connectors.postgres.log.event_orders import EventOrders, event_orders
from floodmark.connectors.postgres.log.messages import DELETE, INSERT, TRUNCATE, UPDATE
from floodmark.connectors.postgres.log.placing import message_groups, placed, positions, told_group
from floodmark.connectors.postgres.log.records import Changes, all_changes, truncated, within
from floodmark.connectors.postgres.log.shapes import Shapes, TableNames
from floodmark.connectors.postgres.log.transaction_events import TransactionEvents, block_pieces
from floodmark.connectors.postgres.log.tuples import NEW_ROW, OLD_KEY_ROW, OLD_ROW, TextColumn, last_tuples, tuple_pairs
from floodmark.connectors.postgres.lsn import position
from floodmark.connectors.postgres.rows.relation import Relation
from floodmark.connectors.postgres.rows.source_block import StreamedSource
from floodmark.connectors.postgres.rows.table_version import TableVersion, VersionMaker, take_columns, with_old_values
from floodmark.errors import DecodeError, describe
from floodmark.events.columns import HEADERS, EventGroup, assemble
from floodmark.events.json_text import Fragment

NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"
OPERATIONS = {INSERT: "c", UPDATE: "u", DELETE: "d"}

# Sub-order of the events made from one change.
DELETED, TOMBSTONE, CREATED = 0, 1, 2

# Small slices keep the working set in the allocator's and the processor's caches; with many shapes of tables a slice
# must still hold enough rows of each to be worth a vectorised pass.
SLICE_CHANGES = 16_384
SLICE_CHANGES_MANY_SHAPES = 131_072
FEW_SHAPES = 4


@dataclass
class _Rows:
    """Changes of tables that look alike and of one kind, with what their events are made of."""

    changes: Changes
    version: TableVersion
    names: TableNames
    source: list[str | pa.StringArray]
    orders: EventOrders | None = None

    def __len__(self) -> int:
        return len(self.changes.at)

    def select(self, index: NDArray[np.int64]) -> _Rows:
        at = pa.array(index)
        source = [piece if isinstance(piece, str) else piece.take(at) for piece in self.source]
        return _Rows(self.changes.select(index), self.version, self.names.take(at), source, self.orders)


class _Isolation:
    """The tables of a segment that are left out, and those that turn out to be undecodable.

    Args:
        relations: of the segment.
        aside: OIDs of tables to leave out.
        only: OIDs of the tables that are wanted; None: all.
        failed: gets the tables that can't be decoded; None: raise.
        dead: gets the records that can't be decoded; None: their tables fail.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        aside: Collection[int],
        only: Collection[int] | None,
        failed: list[TableFailure] | None,
        dead: list[DeadLetter] | None,
    ) -> None:
        self._relations = relations
        self._failed = failed
        self._dead = dead
        unwanted = {relation.oid for relation in relations if only is not None and relation.oid not in only}
        self.oids = {*aside, *unwanted}
        self.aside = np.array([relation.oid in self.oids for relation in relations], np.bool_)

    def version(self, make: VersionMaker, shapes: Shapes, number: int) -> TableVersion | None:
        """Return how rows of a shape are made into events; None if that is not known."""
        try:
            return make(shapes.first[number])
        except Exception as exc:
            # Whatever it is, it must not stop the other tables.
            for index in np.flatnonzero(shapes.shape == number).tolist():
                self._set_aside(index, exc)
            return None

    def run(self, make: Callable[[_Rows], Iterator[EventGroup]], rows: _Rows) -> list[EventGroup]:
        """Return the events of rows; if they can't be made, those of the tables that are not to blame."""
        if self.oids:
            rows = rows.select(np.flatnonzero(~self.aside[rows.changes.relation]))
            if not len(rows):
                return []
        try:
            return list(make(rows))
        except Exception as exc:
            tables = np.unique(rows.changes.relation)
            if len(tables) == 1 and self._dead is None:
                self._set_aside(int(tables[0]), _located(make, rows, exc))
                return []
            if len(rows) == 1 and self._dead is not None:
                self._dead.append(self._letter(rows.changes, exc))
                return []
        if len(tables) == 1:
            parts = [rows.select(half) for half in np.array_split(np.arange(len(rows)), 2)]
        else:
            parts = [rows.select(np.flatnonzero(rows.changes.relation == table)) for table in tables]
        return [group for part in parts for group in self.run(make, part)]

    def _letter(self, change: Changes, error: Exception) -> DeadLetter:
        relation = self._relations[int(change.relation[0])]
        lsn = change.transactions.lsn[change.transaction]
        return DeadLetter(
            positions(lsn, change.ordinal, 0)[0].as_py(),
            f"{relation.schema}.{relation.table}",
            OPERATIONS[int(change.kind[0])],
            describe(error),
            change.raw(0),
        )

    def _set_aside(self, index: int, error: Exception) -> None:
        relation = self._relations[index]
        if self._failed is None:
            raise error
        if relation.oid not in self.oids:
            self._failed.append(TableFailure(f"{relation.schema}.{relation.table}", relation.oid, describe(error)))
        self.oids.add(relation.oid)
        self.aside |= [other.oid in self.oids for other in self._relations]


def _located(make: Callable[[_Rows], Iterator[EventGroup]], rows: _Rows, error: Exception) -> DecodeError:
    """Return the error of the first change that can't be decoded, with its place.

    Args:
        make: fails for the rows.
        rows: changes of one table.
        error: why.
    """
    good, bad = 0, len(rows)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            list(make(rows.select(np.arange(middle))))
            good = middle
        except Exception as exc:
            bad, error = middle, exc
    changes = rows.changes
    relation = changes.relations[int(changes.relation[good])]
    lsn = int(changes.transactions.lsn[changes.transaction[good]])
    place = position(lsn, int(changes.ordinal[good]))
    name = f"{relation.schema}.{relation.table}"
    return DecodeError(f"The change of {name} at {place} cannot be decoded: {describe(error)}")


class PostgresDecoder:
    """Decodes segments of pgoutput messages into events."""

    def __init__(self, options: PostgresOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._make_version = make_version

    def decode(
        self,
        data: SegmentData,
        after: str,
        upto: str,
        aside: Collection[int] = (),
        only: Collection[int] | None = None,
        failed: list[TableFailure] | None = None,
        xmin: int | None = None,
        dead: list[DeadLetter] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the events of the changes in ``(after, upto]``, in the log's order.

        Args:
            data: a segment.
            after: begin after this position.
            upto: end with this position.
            aside: OIDs of tables to leave out.
            only: OIDs of the tables that are wanted; None: all.
            failed: gets the tables that can't be decoded; None: raise.
            xmin: the slot's oldest transaction, if it is asked for.
            dead: gets the records that can't be decoded; None: their tables fail.

        Raises:
            DecodeError: a record isn't what the protocol says.
        """
        whole = all_changes(data)
        changes = within(whole, after, upto)
        shapes = Shapes(changes.relations, self._options)
        isolation = _Isolation(changes.relations, aside, only, failed, dead)
        versions = [isolation.version(self._make_version, shapes, number) for number in range(len(shapes.first))]
        source = StreamedSource(self._options.topic_prefix, self._options.dbname, changes.transactions, xmin)
        orders, told = None, []
        with_others = only is None and self._options.format == "events"
        if self._options.provide_transaction_metadata and self._options.format == "events":
            orders = event_orders(data, whole, shapes, versions, self._options)
            if with_others:
                topic = TransactionEvents(self._options, data, whole, orders)
                told = [topic.begins(after, upto), topic.ends(after, upto)]
        size = SLICE_CHANGES if len(versions) <= FEW_SHAPES else SLICE_CHANGES_MANY_SHAPES
        low = 0
        for first in range(0, max(len(changes.at), 1), size):
            part = changes.select(slice(first, first + size))
            groups = [
                *self._row_changes(part, shapes, versions, source, orders, isolation),
                *self._truncates(part, source, orders, isolation),
            ]
            if with_others:
                last = first + size >= len(changes.at)
                high = len(data.starts) if last else int(part.record[-1]) + 1
                groups += message_groups(part, source, orders, self._options)
                groups += [told_group(one.select(low, high), changes, self._options) for one in told]
                low = high
            batch = assemble(groups, self._make_version.schema)
            if batch is not None:
                yield batch

    def _row_changes(
        self,
        changes: Changes,
        shapes: Shapes,
        versions: Sequence[TableVersion | None],
        source: StreamedSource,
        orders: EventOrders | None,
        isolation: _Isolation,
    ) -> Iterator[EventGroup]:
        # Truncates have no relation, which the last place stands for.
        shape = np.append(np.where(isolation.aside, -1, shapes.shape), -1)[changes.relation]
        order = np.argsort(shape, kind="stable")
        bounds = np.flatnonzero(np.diff(shape[order])) + 1
        for index in np.split(order, bounds):
            if not len(index) or shape[index[0]] < 0:
                continue
            version = versions[int(shape[index[0]])]
            if version is None:
                continue
            # An update may be a delete and a create, so it is not left out before it has been looked at.
            for kind, operations, make in (
                (INSERT, "c", self._inserts),
                (UPDATE, "udc", self._updates),
                (DELETE, "d", self._deletes),
            ):
                chosen = index[changes.kind[index] == kind]
                if len(chosen) and not all(map(self._options.skips, operations)):
                    part = changes.select(chosen)
                    names = shapes.names(part.relation)
                    pieces = source.pieces(names.source, part.transaction, part.lsn)
                    yield from isolation.run(make, _Rows(part, version, names, pieces, orders))

    def _inserts(self, rows: _Rows) -> Iterator[EventGroup]:
        _expect(rows.changes, 5, NEW_ROW)
        yield self._event(rows, "c", None, rows.version.encode(_only_tuples(rows)))

    def _updates(self, rows: _Rows) -> Iterator[EventGroup]:
        kinds = rows.changes.payload[rows.changes.at + 5]
        for kind, make in (
            (NEW_ROW, self._updates_without_old),
            (OLD_ROW, self._updates_with_old),
            (OLD_KEY_ROW, self._updates_with_key),
        ):
            index = np.flatnonzero(kinds == kind)
            if len(index) == len(rows):
                yield from make(rows)
                return
            if len(index):
                yield from make(rows.select(index))
        if not np.isin(kinds, (NEW_ROW, OLD_ROW, OLD_KEY_ROW)).all():
            raise DecodeError("An Update message holds an unknown kind of tuple.")

    def _updates_without_old(self, rows: _Rows) -> Iterator[EventGroup]:
        if self._options.skips("u"):
            return
        yield self._event(rows, "u", None, rows.version.encode(_only_tuples(rows)))

    def _updates_with_old(self, rows: _Rows) -> Iterator[EventGroup]:
        old, new = _both_tuples(rows)
        yield from self._changed(rows, old, with_old_values(new, old), complete=True)

    def _updates_with_key(self, rows: _Rows) -> Iterator[EventGroup]:
        old, new = _both_tuples(rows)
        # The new row lacks a large key that stayed as it was.
        yield from self._changed(rows, old, with_old_values(new, old), complete=False)

    def _changed(
        self, rows: _Rows, old: list[TextColumn], new: list[TextColumn], complete: bool
    ) -> Iterator[EventGroup]:
        """Make updates, and delete, tombstone and create where the key changed."""
        version = rows.version
        moved = version.key_changed(old, new, complete)
        stayed = ~moved
        if complete and self._options.skip_messages_without_change:
            stayed &= version.row_changed(old, new)
        same = np.flatnonzero(stayed)
        if len(same) and not self._options.skips("u"):
            part = rows if len(same) == len(rows) else rows.select(same)
            before = version.encode_old(take_columns(old, same), complete)
            yield self._event(part, "u", before, version.encode(take_columns(new, same)))
        index = np.flatnonzero(moved)
        if not len(index):
            return
        part = rows.select(index)
        before = version.encode_old(take_columns(old, index), complete)
        after = version.encode(take_columns(new, index))
        if not self._options.skips("d"):
            deleted = self._event(part, "d", before, None, DELETED)
            deleted.columns["headers"] = _headers(NEW_KEY, version.keys(after, len(index), bare=True))
            yield deleted
            if version.tombstones:
                tombstone = self._tombstone(part, deleted.columns["key"])
                tombstone.columns["headers"] = deleted.columns["headers"]
                yield tombstone
        if self._options.skips("c"):
            return
        created = self._event(part, "c", None, after, CREATED)
        created.columns["headers"] = _headers(OLD_KEY, version.keys(before, len(index), bare=True))
        yield created

    def _deletes(self, rows: _Rows) -> Iterator[EventGroup]:
        kinds = rows.changes.payload[rows.changes.at + 5]
        for kind in (OLD_ROW, OLD_KEY_ROW):
            index = np.flatnonzero(kinds == kind)
            if not len(index):
                continue
            part = rows if len(index) == len(rows) else rows.select(index)
            before = part.version.encode_old(_only_tuples(part), kind == OLD_ROW)
            group = self._event(part, "d", before, None, DELETED)
            yield group
            if part.version.tombstones:
                yield self._tombstone(part, group.columns["key"])
        if not np.isin(kinds, (OLD_ROW, OLD_KEY_ROW)).all():
            raise DecodeError("A Delete message holds an unknown kind of tuple.")

    def _truncates(
        self, changes: Changes, source: StreamedSource, orders: EventOrders | None, isolation: _Isolation
    ) -> Iterator[EventGroup]:
        if self._options.skips("t"):
            return
        for i in np.flatnonzero(changes.kind == TRUNCATE).tolist():
            one = changes.select(np.array([i]))
            for sub, oid in enumerate(truncated(changes.payload, int(changes.at[i]))):
                relation = changes.relation_at(oid, int(changes.record[i]))
                if oid in isolation.oids or not self._options.captures(relation.schema, relation.table):
                    continue
                version = self._make_version(relation)
                names = TableNames.of(relation, self._options)
                pieces = source.pieces(names.source, one.transaction, one.lsn)
                rows = _Rows(one, version, names, pieces, orders)
                yield self._event(rows, "t", None, None, sub)

    def _event(
        self,
        rows: _Rows,
        operation: str,
        before: list[Fragment] | None,
        after: list[Fragment] | None,
        sub: int = 0,
    ) -> EventGroup:
        block = None
        if rows.orders is not None:
            entry = rows.orders.first[rows.changes.record] + (sub if operation == "t" else 0)
            later = int(sub == CREATED and operation == "c" and not self._options.skips("d"))
            block = block_pieces(rows.changes, rows.orders, entry, later)
        columns = rows.version.columns(operation, len(rows), before, after, rows.source, block)
        return self._group(rows, operation, columns, sub)

    def _tombstone(self, rows: _Rows, keys: pa.StringArray) -> EventGroup:
        return self._group(rows, "d", {"key": keys, "value": pa.nulls(len(rows), pa.string())}, TOMBSTONE)

    def _group(self, rows: _Rows, operation: str, columns: dict[str, pa.Array], sub: int) -> EventGroup:
        changes = rows.changes
        every = {**columns, **rows.names.columns(), "op": operation}
        order = changes.record * 256 + min(sub, 255)
        return placed(order, changes, changes.transaction, changes.ordinal, min(sub, 255), every, self._options)


def _only_tuples(rows: _Rows) -> list[TextColumn]:
    """Split messages that hold one tuple."""
    changes = rows.changes
    return last_tuples(changes.payload, changes.at + 6, len(rows.version.names), changes.ends)


def _both_tuples(rows: _Rows) -> tuple[list[TextColumn], list[TextColumn]]:
    """Split updates that hold an old and a new tuple."""
    changes = rows.changes
    return tuple_pairs(changes.payload, changes.at + 6, len(rows.version.names), changes.ends)


def _expect(changes: Changes, offset: int, kind: int) -> None:
    if (changes.payload[changes.at + offset] != kind).any():
        raise DecodeError("A message holds an unknown kind of tuple.")


def _headers(name: str, values: pa.StringArray) -> pa.ListArray:
    """Return a list of one header for each row."""
    rows = len(values)
    names = pa.repeat(pa.scalar(name), rows)
    entries = pa.StructArray.from_arrays([names, values.cast(pa.binary())], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32)), entries, type=HEADERS)
