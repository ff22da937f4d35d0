"""The source's side: its tables at a read point, as rows of the types that a mirror gets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import pyarrow as pa

from floodmark.capture.segment import SegmentData
from floodmark.changes.arrow_tables import ArrowRowVersion
from floodmark.changes.structure import Structure
from floodmark.changes.table_version import TableVersion
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.chunk import Chunk, DescribedTable, KeyRangeChunk, PageChunk
from floodmark.connectors.contract.read_points import ReadPoint
from floodmark.connectors.contract.source import Source
from floodmark.connectors.load import load_options
from floodmark.connectors.registry import connector_module, spec_of
from floodmark.errors import ConditionError, SourceStateError
from floodmark.events.columns import EventGroup
from floodmark.json_data import Json

_DROPS = frozenset({"slot.drop.on.stop"})
"""Options by which closing a source changes it, which reading must not do."""
_OF_EVENTS = ("key.converter", "predicates", "transforms", "value.converter")
"""How options begin that say what becomes of events, which rows aren't."""
_FILTERS = _DROPS | {
    "format",
    "signal.data.collection",
    "table.include.list",
    "table.exclude.list",
    "schema.include.list",
    "schema.exclude.list",
    "database.include.list",
    "database.exclude.list",
}
"""Options that are others where only one table is looked at."""


@dataclass(frozen=True)
class PlainRows:
    """Makes the table versions of plain rows: the table's columns as a mirror gets them, and nothing else."""

    options: CommonOptions

    def __call__(self, structure: Structure) -> TableVersion:
        """Return the version for a structure."""
        return ArrowRowVersion(structure, self.options)

    def assemble(self, groups: list[EventGroup]) -> pa.RecordBatch | None:
        """Return the rows of groups."""
        rows = [group.columns["after"] for group in groups if len(group.order)]
        return pa.RecordBatch.from_struct_array(pa.concat_arrays(rows)) if rows else None


def reading_options(given: Mapping[str, str]) -> CommonOptions:
    """Return a source's options, such that nothing is changed there.

    Args:
        given: those of the query.

    Raises:
        ConfigError: one is wrong.
    """
    wanted = {"format": "arrow", "skipped.operations": "none"}
    left_out = _DROPS | wanted.keys()
    kept = {
        name: text
        for name, text in given.items()
        if name.lower() not in left_out and not name.lower().startswith(_OF_EVENTS)
    }
    return load_options({**kept, **wanted})


@dataclass(frozen=True)
class ChunkRows:
    """A part of a table at a read point that any process can read.

    Attributes:
        options: the source's options.
    """

    options: CommonOptions
    chunk: Chunk
    local: ClassVar[bool] = False

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows.

        Args:
            columns: names and types of the wanted columns.

        Raises:
            SourceStateError: the table was altered, or the read point is gone.
        """
        executor = connector_module(self.options.connector, "executor")
        reader = executor.make_chunk_reader(self.options, PlainRows(self.options))
        try:
            outcome = yield from _fitting(reader.read(self.chunk), columns)
        finally:
            reader.close()
        prove_complete(outcome, self.chunk.table.name)


def _fitting(batches: Iterator[pa.RecordBatch], columns: pa.Schema) -> Generator[pa.Table, None, object]:
    while True:
        try:
            batch = next(batches)
        except StopIteration as end:
            return cast(object, end.value)
        yield fit(batch, columns)


def fit(batch: pa.RecordBatch, columns: pa.Schema) -> pa.Table:
    """Return rows with the columns and types of a target.

    Raises:
        SourceStateError: they don't have them, so the table was altered.
    """
    try:
        return pa.table([batch.column(one.name).cast(one.type) for one in columns], schema=columns)
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _altered("The source's table", str(error)) from None


def prove_complete(outcome: object, table: str) -> None:
    """Check that a part of a table was read as it was at the read point.

    Raises:
        SourceStateError: it wasn't.
    """
    if outcome != "complete":
        raise _altered(f"The table {table}", f"it was read only in part ({outcome})")


def _altered(what: str, why: str) -> SourceStateError:
    return SourceStateError(
        f"{what} was altered, rewritten or dropped while it was compared, or its read point was lost: "
        f"{why.rstrip('.')}.",
        "Verify it again.",
    )


class SourceTables:
    """The tables of a source, for reading. It is used by one thread.

    Args:
        given: the source's options.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = dict(given)
        self.options = reading_options(given)
        self._source: Source = connector_module(self.options.connector, "connector").make_source(self.options)
        self._executor = connector_module(self.options.connector, "executor")

    @property
    def backslashes(self) -> bool:
        """Whether conditions are read as MySQL does (``ConnectorSpec``)."""
        spec = spec_of(self.options.connector)
        return spec is not None and spec.backslashes

    def locate(self, position: str, bookmark: dict[str, Json] | None) -> None:
        """Verify that the source has the log that a query's position belongs to, so that positions can be compared."""
        self._source.log.locate(position, bookmark)

    def names(self) -> dict[str, list[CapturedTable]]:
        """Return the captured tables by the names that they have in events; a name may have several partitions."""
        found: dict[str, list[CapturedTable]] = defaultdict(list)
        for table in self._source.tables.captured():
            schema, _, name = table.published.rpartition(".")
            if not self.options.takes_signals(schema, name):
                found[table.published].append(table)
        return dict(found)

    def open(self) -> ReadPoint:
        """Open a read point; the caller releases it."""
        return self._source.snapshots.open_unsettled()

    def columns(self, name: str) -> pa.Schema:
        """Return the columns of a table as a mirror gets them.

        Args:
            name: the name that it has in events.
        """
        kept = {option: text for option, text in self._given.items() if option.lower() not in _FILTERS}
        listed = re.escape(name).replace(",", "\\,")
        options = load_options({**kept, "format": "rows", "table.include.list": listed})
        return pa.schema(list(self._executor.row_schema(options).field("after").type))

    def chunks(self, point: ReadPoint, tables: Sequence[CapturedTable]) -> list[ChunkRows | LocalChunk]:
        """Return the parts of a table at a read point, which together have all its rows."""
        described = self._described(tables)
        sized = {one.oid: one for one in self._source.tables.captured(sized=True)}
        parts: list[ChunkRows | LocalChunk] = []
        for oid, table in described.items():
            now = sized.get(oid)
            if now is None:
                raise _altered(f"The table {table.name}", "it is gone")
            if point.local is not None:
                parts.append(LocalChunk(self, point, self._local_chunk(point, table, now)))
                continue
            step = self._source.tables.chunk_units()
            parts += [
                ChunkRows(
                    self.options,
                    PageChunk(
                        table=table,
                        file=now.file,
                        token=point.token,
                        position=point.position,
                        first=first,
                        last=min(first + step, now.units),
                    ),
                )
                for first in range(0, now.units, step)
            ]
        return parts

    def with_condition(
        self, point: ReadPoint, tables: Sequence[CapturedTable], condition: str, columns: pa.Schema
    ) -> Generator[pa.Table, None, None]:
        """Yield the rows of a table that fulfil a condition.

        Args:
            condition: as signals have it.
            columns: names and types of the wanted columns.

        Raises:
            ConditionError: the condition isn't one that the source can decide.
        """
        described = self._described(tables)
        files = self._source.tables.fingerprints(list(described))
        for oid, table in described.items():
            key, where = self._source.tables.key_of(oid, None), self._source.tables.row_filter(oid, condition)
            if point.local is not None:
                if key is None:
                    raise ConditionError("the table has no key")
                chunk: Chunk = KeyRangeChunk(
                    table=table,
                    file=files.get(oid, ""),
                    token=point.token,
                    position=point.position,
                    low=point.position,
                    key=key,
                    after=None,
                    upto=None,
                    to_end=True,
                    condition=where,
                )
                yield from LocalChunk(self, point, chunk).rows(columns)
                continue
            chunk = PageChunk(
                table=table,
                file=files.get(oid, ""),
                token=point.token,
                position=point.position,
                first=0,
                last=(1 << 32) - 1,
                condition=where,
            )
            yield from ChunkRows(self.options, chunk).rows(columns)

    def local_rows(self, point: ReadPoint, chunk: Chunk, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows of a chunk that only this process can read."""
        assert point.local is not None
        outcome: list[object] = []
        pieces = point.local.rows(chunk)

        def read() -> Iterator[SegmentData]:
            outcome.append((yield from pieces))

        reader = self._executor.make_local_row_reader(self.options, PlainRows(self.options))
        for batch in reader.read(chunk, read(), ()):
            yield fit(batch, columns)
        prove_complete(outcome[0] if outcome else "nothing", chunk.table.name)

    def close(self) -> None:
        """Close all connections."""
        self._source.close()

    def _local_chunk(self, point: ReadPoint, table: DescribedTable, now: CapturedTable) -> Chunk:
        return Chunk(table=table, file=now.file, token=point.token, position=point.position, low=point.position)

    def _described(self, tables: Sequence[CapturedTable]) -> dict[int, DescribedTable]:
        found = self._source.tables.describe([table.oid for table in tables])
        if len(found) < len(tables):
            raise _altered(f"The table {tables[0].published}", "it is gone")
        stated = next((table.name for table in found.values() if table.statement is not None), None)
        if stated is not None:
            raise SourceStateError(
                f"Snapshots read the table {stated} by a statement of its own, which needn't return all rows.",
                "Leave it out, or verify without snapshot.select.statement.overrides and snapshot.query.mode.",
            )
        return found


@dataclass(frozen=True)
class LocalChunk:
    """A part of a table at a read point that only this process can read."""

    source: SourceTables
    point: ReadPoint
    chunk: Chunk
    local: ClassVar[bool] = True

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows.

        Args:
            columns: names and types of the wanted columns.
        """
        return self.source.local_rows(self.point, self.chunk, columns)
