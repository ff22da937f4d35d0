"""Makes events of committed changes: those of a table and kind together, and then in the log's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.changes.change_events import ChangeEvents
from floodmark.changes.changes import DELETE, INSERT, OPERATIONS, TRUNCATE, UPDATE, Rows
from floodmark.changes.isolation import Isolation
from floodmark.changes.layout_groups import TableNames
from floodmark.changes.table_version import TableVersion, VersionMaker
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.decoding import DecodeProblems
from floodmark.connectors.oracle.decode.large_objects.assembly import assembled
from floodmark.connectors.oracle.decode.large_objects.columns import TableColumns
from floodmark.connectors.oracle.decode.row_changes import CommittedRows, RowChanges
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.decode.transaction_metadata import CHANGES, WIDTH, TransactionMetadata
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.values.messages import rows_of
from floodmark.connectors.oracle.values.raw_columns import raw_columns
from floodmark.connectors.oracle.values.shown_rows import WITHOUT_STATEMENTS
from floodmark.errors import DecodeError, SchemaChangeError
from floodmark.events.columns import EventGroup
from floodmark.events.json_text import Pieces

Numbers = NDArray[np.int64]

_KINDS = {
    Operation.INSERT: INSERT,
    Operation.UPDATE: UPDATE,
    Operation.DELETE: DELETE,
    # Of the statements about tables, only those that empty them come with the changes.
    Operation.DDL: TRUNCATE,
}


class Decoder:
    """Makes events of transactions.

    Args:
        options: the source's options.
        make_version: makes the table versions of the output.
        with_statements: the option ``log.mining.include.redo.sql``.
        with_large_objects: the option ``lob.enabled``; then rows must be those of whole transactions.
        by_number: whether statements may have columns' numbers (``log.mining.strategy=hybrid``).
        adapter: ``database.connection.adapter``: which server the changes come from.
    """

    def __init__(
        self,
        options: CommonOptions,
        make_version: VersionMaker,
        with_statements: bool = False,
        with_large_objects: bool = False,
        by_number: bool = False,
        adapter: str = "logminer",
    ) -> None:
        self._options = options
        self._make_version = make_version
        self._with_statements = with_statements
        self._with_large_objects = with_large_objects
        self._by_number = by_number
        self._adapter = adapter
        self._events = ChangeEvents(options)
        self._readers: dict[tuple[tuple[str, ...], bool], StatementReader] = {}

    def decode(
        self,
        shown: pa.Table,
        rows: CommittedRows,
        structures: Mapping[str, TableStructure],
        isolation: Isolation | None = None,
    ) -> pa.RecordBatch | None:
        """Return the events of committed changes, in their order; None: there are none.

        Args:
            shown: the changes, as the view has them.
            rows: the same, as events need them.
            structures: of the captured tables, by ``schema.table``.
            isolation: of them; None: what can't be decoded is an error.

        Raises:
            DecodeError: a statement can't be read, or has a value that isn't its column's.
        """
        known = list(structures.values())
        apart = isolation or Isolation(known, (), None, DecodeProblems())
        values = _Values(self._reader, self._adapter)
        if self._with_large_objects:
            changes = assembled(shown, rows, structures, self._reader, apart.fail_table)
            shown, rows = changes.shown, changes.rows
            values.know(shown, changes.columns)
        groups: list[EventGroup] = []
        parts = list(self._parts(shown, rows, structures, apart))
        if self._options.provide_transaction_metadata:
            metadata = self._metadata(rows, parts, values)
            groups += metadata.groups()
            for part in parts:
                part.blocks = metadata
        for part in parts:
            groups += apart.run(lambda some: self._events_of(some, values), part)
        return self._make_version.assemble(groups)

    def _parts(
        self,
        shown: pa.Table,
        rows: CommittedRows,
        structures: Mapping[str, TableStructure],
        isolation: Isolation,
    ) -> Iterator[Rows[RowChanges]]:
        """Yield the changes of each captured table and kind that events are made of."""
        versions: dict[str, TableVersion | None] = {}
        for name, changes in self._grouped(shown, rows, structures):
            structure = structures[name]
            if name not in versions:
                versions[name] = self._version(structure, isolation)
            version, kind = versions[name], int(changes.kind[0])
            # An update that changes the key makes a delete and a create, so updates are skipped later.
            if version is None or (kind != UPDATE and self._options.skips(OPERATIONS[kind])):
                continue
            names_of = TableNames.of(structure, self._options)
            yield Rows(changes, version, names_of, self._source(changes, names_of), {})

    def changes(
        self, shown: pa.Table, rows: CommittedRows, structures: Mapping[str, TableStructure]
    ) -> Iterator[tuple[RowChanges, TableColumns | None]]:
        """Yield the changes of each captured table and kind, whatever the options skip, with their columns.

        Truncates have none. See ``decode`` for the arguments.

        Raises:
            DecodeError: a statement can't be read, or has a value that isn't its column's.
        """
        values = _Values(self._reader, self._adapter)
        if self._with_large_objects:
            found = assembled(shown, rows, structures, self._reader, _raise)
            shown, rows = found.shown, found.rows
            values.know(shown, found.columns)
        for _, changes in self._grouped(shown, rows, structures):
            yield changes, None if int(changes.kind[0]) == TRUNCATE else values.of(changes)

    def _grouped(
        self, shown: pa.Table, rows: CommittedRows, structures: Mapping[str, TableStructure]
    ) -> Iterator[tuple[str, RowChanges]]:
        """Yield the name of each captured table, and its changes of each kind."""
        names = pc.binary_join_element_wise(shown["SEG_OWNER"], shown["TABLE_NAME"], ".").combine_chunks()
        coded = names.dictionary_encode()
        codes = coded.indices.to_numpy()
        operations = shown["OPERATION_CODE"].to_numpy()
        relations = list(structures.values())
        for number, name in enumerate(coded.dictionary.to_pylist()):
            structure = structures.get(name)
            if structure is None:
                continue
            for operation, kind in _KINDS.items():
                index = np.flatnonzero((codes == number) & (operations == operation))
                if not len(index):
                    continue
                yield (
                    name,
                    RowChanges(
                        rows.select(index),
                        index * WIDTH + CHANGES,
                        np.full(len(index), kind, np.uint8),
                        np.full(len(index), relations.index(structure)),
                        relations,
                    ),
                )

    def _source(self, changes: RowChanges, names: TableNames) -> Pieces:
        if self._adapter == "olr":
            return changes.replicated_source(self._options.topic_prefix, names)
        if self._adapter == "xstream":
            return changes.lcr_source(self._options.topic_prefix, names)
        # Debezium has no statement of a truncate.
        stated = self._with_statements and int(changes.kind[0]) != TRUNCATE
        return changes.source(self._options.topic_prefix, names, stated)

    def _version(self, structure: TableStructure, isolation: Isolation) -> TableVersion | None:
        """Return the table version of a structure; None if it can't be made, so that its table fails."""
        try:
            return self._make_version(structure)
        except SchemaChangeError:
            raise
        except Exception as exc:
            # Whatever the error is, it must not stop the other tables.
            isolation.fail_table(structure, exc)
            return None

    def _events_of(self, rows: Rows[RowChanges], values: _Values) -> Iterator[EventGroup]:
        """Yield the events of changes of a table, of one kind."""
        kind = int(rows.changes.kind[0])
        if kind == TRUNCATE:
            return iter([self._events.truncates(rows)])
        columns = values.of(rows.changes)
        if kind == INSERT:
            return self._events.inserts(rows, columns.new)
        if kind == DELETE:
            return self._events.deletes(rows, columns.old, complete=True)
        return self._events.updates(rows, columns.old, columns.new, complete=True)

    def _reader(self, structure: TableStructure) -> StatementReader:
        """Return the reader of a table's statements, which knows what it has scanned of earlier ones."""
        names = tuple(column.name for column in structure.columns)
        known = names, self._by_number and structure.definition.is_numbered
        if known not in self._readers:
            self._readers[known] = StatementReader(*known)
        return self._readers[known]

    def _metadata(self, rows: CommittedRows, parts: Sequence[Rows[RowChanges]], values: _Values) -> TransactionMetadata:
        counts, table = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        tables: list[str] = []
        for part in parts:
            changes = part.changes
            name = changes.relations[int(changes.relation[0])].full_name
            if name not in tables:
                tables.append(name)
            place = changes.order // WIDTH
            counts[place] = self._counts(part, values)
            table[place] = tables.index(name)
        return TransactionMetadata(self._options, rows, counts, table, tables)

    def _counts(self, rows: Rows[RowChanges], values: _Values) -> Numbers:
        """Return how many events each change makes, without tombstones, shape (changes,)."""
        if int(rows.changes.kind[0]) != UPDATE:
            return np.ones(len(rows), np.int64)
        columns = values.of(rows.changes)
        return self._events.update_counts(rows.version, columns.old, columns.new, complete=True)


def _raise(structure: TableStructure, error: Exception) -> None:
    """Raise what a table's changes can't be decoded for."""
    del structure
    raise error


class _Values:
    """The rows before and after changes.

    Args:
        reader_of: returns the reader of a table's statements.
        adapter: ``database.connection.adapter``: whose they are.
    """

    def __init__(self, reader_of: Callable[[TableStructure], StatementReader], adapter: str) -> None:
        self._reader_of = reader_of
        self._adapter = adapter
        self._known: dict[str, tuple[Numbers, TableColumns]] = {}

    def know(self, shown: pa.Table, columns: Mapping[str, TableColumns]) -> None:
        """Take over the columns of tables whose statements don't have all values.

        Args:
            shown: all changes, as the view has them.
            columns: those of each such table's changes, by ``schema.table``.
        """
        names = pc.binary_join_element_wise(shown["SEG_OWNER"], shown["TABLE_NAME"], ".")
        for name, found in columns.items():
            places = np.flatnonzero(pc.fill_null(pc.equal(names, name), False).to_numpy())
            self._known[name] = places, found

    def of(self, changes: RowChanges) -> TableColumns:
        """Return the columns of changes of a table, of one kind; inserts have no old ones, and deletes no new ones.

        Raises:
            DecodeError: a statement can't be read.
        """
        structure, kind = changes.relations[int(changes.relation[0])], int(changes.kind[0])
        known = self._known.get(f"{structure.schema}.{structure.table}")
        if known is not None:
            places, columns = known
            return columns.select(np.searchsorted(places, changes.order // WIDTH))
        if self._adapter in WITHOUT_STATEMENTS:
            entries = rows_of(changes.rows.statement, structure.definition, self._adapter)
            old = [] if kind == INSERT else entries.columns(Side.OLD, kind == UPDATE)
            return TableColumns(old, [] if kind == DELETE else entries.columns(Side.NEW, kind == UPDATE))
        read = self._reader_of(structure).read(changes.rows.statement)
        if read.problems:
            problem = next(iter(read.problems.values()))
            raise DecodeError(f"SQL_REDO of {structure.schema}.{structure.table} can't be read: {problem}")
        inserted = np.full(len(changes), kind == INSERT)
        old = [] if kind == INSERT else raw_columns(read, Side.OLD, structure.columns)
        new = [] if kind == DELETE else raw_columns(read, Side.NEW, structure.columns, inserted)
        return TableColumns(old, new)
