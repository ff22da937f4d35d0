"""Makes events of committed changes: those of a table and kind together, and then in the log's order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.changes.change_events import ChangeEvents
from floodmark.changes.changes import DELETE, INSERT, OPERATIONS, UPDATE, Rows
from floodmark.changes.layout_groups import TableNames
from floodmark.changes.table_version import VersionMaker
from floodmark.codecs.raw_column import RawColumn
from floodmark.config.common import CommonOptions
from floodmark.connectors.oracle.decode.large_objects.assembly import assembled
from floodmark.connectors.oracle.decode.large_objects.columns import TableColumns
from floodmark.connectors.oracle.decode.row_changes import CommittedRows, RowChanges
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.decode.transaction_metadata import CHANGES, WIDTH, TransactionMetadata
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.values.raw_columns import raw_columns
from floodmark.errors import DecodeError
from floodmark.events.columns import EventGroup

Numbers = NDArray[np.int64]

_KINDS = {Operation.INSERT: INSERT, Operation.UPDATE: UPDATE, Operation.DELETE: DELETE}


class Decoder:
    """Makes events of transactions.

    Args:
        options: the source's options.
        make_version: makes the table versions of the output.
        with_statements: the option ``log.mining.include.redo.sql``.
        with_large_objects: the option ``lob.enabled``.
    """

    def __init__(
        self,
        options: CommonOptions,
        make_version: VersionMaker,
        with_statements: bool = False,
        with_large_objects: bool = False,
    ) -> None:
        self._options = options
        self._make_version = make_version
        self._with_statements = with_statements
        self._with_large_objects = with_large_objects
        self._events = ChangeEvents(options)
        self._readers: dict[tuple[str, ...], StatementReader] = {}

    def decode(
        self, shown: pa.Table, rows: CommittedRows, structures: Mapping[str, TableStructure]
    ) -> pa.RecordBatch | None:
        """Return the events of committed changes, in their order; None: there are none.

        Args:
            shown: the changes, as the view has them.
            rows: the same, as events need them.
            structures: of the captured tables, by ``schema.table``.

        Raises:
            DecodeError: a statement can't be read, or has a value that isn't its column's.
        """
        columns: Mapping[str, TableColumns] = {}
        if self._with_large_objects:
            changes = assembled(shown, rows, structures, self._reader)
            shown, rows, columns = changes.shown, changes.rows, changes.columns
        parts = list(self._parts(shown, rows, structures, columns))
        groups: list[EventGroup] = []
        if self._options.provide_transaction_metadata:
            metadata = self._metadata(rows, parts)
            groups += metadata.groups()
            for part in parts:
                part.rows.blocks = metadata
        for part in parts:
            groups += part.events(self._events)
        return self._make_version.assemble(groups)

    def _parts(
        self,
        shown: pa.Table,
        rows: CommittedRows,
        structures: Mapping[str, TableStructure],
        columns: Mapping[str, TableColumns],
    ) -> Iterator[_Part]:
        """Yield the changes of each captured table and kind; the columns of some tables are known already."""
        names = pc.binary_join_element_wise(shown["SEG_OWNER"], shown["TABLE_NAME"], ".").combine_chunks()
        coded = names.dictionary_encode()
        tables = coded.dictionary.to_pylist()
        codes = coded.indices.to_numpy()
        operations = shown["OPERATION_CODE"].to_numpy()
        relations = [structures[name] for name in tables if name in structures]
        for number, name in enumerate(tables):
            if name not in structures:
                continue
            for operation, kind in _KINDS.items():
                index = np.flatnonzero((codes == number) & (operations == operation))
                # An update that changes the key makes a delete and a create, so updates are skipped later.
                if not len(index) or (kind != UPDATE and self._options.skips(OPERATIONS[kind])):
                    continue
                changes = RowChanges(
                    rows.select(index),
                    index * WIDTH + CHANGES,
                    np.full(len(index), kind, np.uint8),
                    np.full(len(index), relations.index(structures[name])),
                    relations,
                )
                known = columns.get(name)
                if known is not None:
                    known = known.select(np.searchsorted(np.flatnonzero(codes == number), index))
                yield self._part(changes, structures[name], known)

    def _part(self, changes: RowChanges, structure: TableStructure, known: TableColumns | None) -> _Part:
        """Return changes of one kind.

        Args:
            changes: the changes.
            structure: their table.
            known: their columns; None: their statements have them.
        """
        kind = int(changes.kind[0])
        columns = known or self._columns(changes.rows.statement, structure, kind)
        names = TableNames.of(structure, self._options)
        source = changes.source(self._options.topic_prefix, names, self._with_statements)
        rows = Rows(changes, self._make_version(structure), names, source, {})
        return _Part(
            rows, structure, kind, [] if kind == INSERT else columns.old, [] if kind == DELETE else columns.new
        )

    def _columns(self, statements: pa.StringArray, structure: TableStructure, kind: int) -> TableColumns:
        """Return the columns of changes whose statements have all of them."""
        read = self._reader(structure).read(statements)
        if read.problems:
            problem = next(iter(read.problems.values()))
            raise DecodeError(f"SQL_REDO of {structure.schema}.{structure.table} can't be read: {problem}")
        inserted = np.full(len(statements), kind == INSERT)
        old = [] if kind == INSERT else raw_columns(read, Side.OLD, structure.columns)
        new = [] if kind == DELETE else raw_columns(read, Side.NEW, structure.columns, inserted)
        return TableColumns(old, new)

    def _reader(self, structure: TableStructure) -> StatementReader:
        """Return the reader of a table's statements, which knows what it has scanned of earlier ones."""
        names = tuple(column.name for column in structure.columns)
        if names not in self._readers:
            self._readers[names] = StatementReader(names)
        return self._readers[names]

    def _metadata(self, rows: CommittedRows, parts: Sequence[_Part]) -> TransactionMetadata:
        counts, table = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        tables: list[str] = []
        for part in parts:
            name = part.structure.full_name
            if name not in tables:
                tables.append(name)
            place = part.rows.changes.order // WIDTH
            counts[place] = part.counts(self._events)
            table[place] = tables.index(name)
        return TransactionMetadata(self._options, rows, counts, table, tables)


@dataclass
class _Part:
    """Changes of a table, of one kind, with the values of their rows.

    Attributes:
        rows: the changes.
        structure: the table.
        kind: ``changes.changes.INSERT`` ….
        old: the rows before; empty for inserts.
        new: the rows after; empty for deletes.
    """

    rows: Rows[RowChanges]
    structure: TableStructure
    kind: int
    old: Sequence[RawColumn]
    new: Sequence[RawColumn]

    def counts(self, events: ChangeEvents) -> Numbers:
        """Return how many events each change makes, without tombstones, shape (changes,)."""
        if self.kind != UPDATE:
            return np.ones(len(self.rows), np.int64)
        return events.update_counts(self.rows.version, self.old, self.new, complete=True)

    def events(self, events: ChangeEvents) -> Iterator[EventGroup]:
        """Yield the events."""
        if self.kind == INSERT:
            return events.inserts(self.rows, self.new)
        if self.kind == DELETE:
            return events.deletes(self.rows, self.old, complete=True)
        return events.updates(self.rows, self.old, self.new, complete=True)
