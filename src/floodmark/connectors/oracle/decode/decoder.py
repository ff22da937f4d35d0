"""Makes events of committed changes: those of a table and kind together, and then in the log's order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.changes.change_events import ChangeEvents
from floodmark.changes.changes import DELETE, INSERT, OPERATIONS, UPDATE, Rows
from floodmark.changes.layout_groups import TableNames
from floodmark.changes.table_version import VersionMaker
from floodmark.config.common import CommonOptions
from floodmark.connectors.oracle.decode.row_changes import CommittedRows, RowChanges
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.values.raw_columns import raw_columns
from floodmark.errors import DecodeError
from floodmark.events.columns import EventGroup

_KINDS = {Operation.INSERT: INSERT, Operation.UPDATE: UPDATE, Operation.DELETE: DELETE}


class Decoder:
    """Makes events of transactions.

    Args:
        options: the source's options.
        make_version: makes the table versions of the output.
        with_statements: the option ``log.mining.include.redo.sql``.
    """

    def __init__(self, options: CommonOptions, make_version: VersionMaker, with_statements: bool = False) -> None:
        self._options = options
        self._make_version = make_version
        self._with_statements = with_statements
        self._events = ChangeEvents(options)

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
        names = pc.binary_join_element_wise(shown["SEG_OWNER"], shown["TABLE_NAME"], ".").combine_chunks()
        coded = names.dictionary_encode()
        tables = coded.dictionary.to_pylist()
        codes = coded.indices.to_numpy()
        operations = shown["OPERATION_CODE"].to_numpy()
        groups: list[EventGroup] = []
        relations = [structures[name] for name in tables if name in structures]
        for number, name in enumerate(tables):
            if name not in structures:
                continue
            for operation, kind in _KINDS.items():
                index = np.flatnonzero((codes == number) & (operations == operation))
                if not len(index) or self._options.skips(OPERATIONS[kind]):
                    continue
                relation = relations.index(structures[name])
                changes = RowChanges(
                    rows.select(index),
                    index,
                    np.full(len(index), kind, np.uint8),
                    np.full(len(index), relation),
                    relations,
                )
                groups += self._groups(changes, kind, structures[name])
        return self._make_version.assemble(groups)

    def _groups(self, changes: RowChanges, kind: int, structure: TableStructure) -> Iterator[EventGroup]:
        read = StatementReader([column.name for column in structure.columns]).read(changes.rows.statement)
        if read.problems:
            problem = next(iter(read.problems.values()))
            raise DecodeError(f"SQL_REDO of {structure.schema}.{structure.table} can't be read: {problem}")
        names = TableNames.of(structure, self._options)
        source = changes.source(self._options.topic_prefix, names, self._with_statements)
        rows = Rows(changes, self._make_version(structure), names, source, {})
        old = None if kind == INSERT else raw_columns(read, Side.OLD, structure.columns)
        new = None if kind == DELETE else raw_columns(read, Side.NEW, structure.columns)
        if old is None and new is not None:
            yield from self._events.inserts(rows, new)
        elif new is None and old is not None:
            yield from self._events.deletes(rows, old, complete=True)
        elif old is not None and new is not None:
            yield from self._events.updates(rows, old, new, complete=True)
