"""Groups tables with the same layout, so that their changes can be decoded together.

A vectorised pass costs some hundred microseconds, however few rows it has. With many tables, as for tenants or
partitions, the changes of all tables with the same columns go into one pass; only their names differ from row to row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.changes.column_plan import plan_key
from floodmark.changes.structure import Structure
from floodmark.config.common import CommonOptions
from floodmark.events.json_text import Text
from floodmark.events.topics import table_topic


@dataclass(frozen=True)
class TableNames:
    """The names of the table that each row belongs to: one text for all rows, or one a row, shape (rows,).

    Attributes:
        source: the parts of the source block that hold them.
    """

    topic: Text
    schema: Text
    table: Text
    source: tuple[Text, ...]

    @classmethod
    def of(cls, structure: Structure, options: CommonOptions) -> TableNames:
        """Return the names of one table."""
        schema, table = structure.schema, structure.table
        return cls(table_topic(options, schema, table), schema, table, structure.source_pieces)

    def take(self, at: pa.Array) -> TableNames:
        """Return the names of some of the rows."""
        topic, schema, table, *source = (
            text if isinstance(text, str) else text.take(at)
            for text in (self.topic, self.schema, self.table, *self.source)
        )
        return TableNames(topic, schema, table, tuple(source))

    def columns(self) -> dict[str, Text]:
        """Return the output columns that hold the names."""
        return {"topic": self.topic, "schema": self.schema, "table": self.table}


class LayoutGroups:
    """The layout groups of a segment's relation versions.

    Attributes:
        shape: the group of each relation version, -1 if its changes aren't captured, shape (relations,).
        first: the first relation version of each group.
    """

    def __init__(self, relations: Sequence[Structure], options: CommonOptions) -> None:
        self._names = [TableNames.of(relation, options) for relation in relations]
        self.shape = np.full(len(relations), -1, np.int64)
        self.first: list[Structure] = []
        known: dict[object, int] = {}
        shaping = options.shapes_columns
        for number, relation in enumerate(relations):
            alike = relation.layout_key()
            if alike is None or not options.captures(relation.schema, relation.table):
                continue
            # Then tables can't share a group: schemas hold topics' names, and ``tables`` has a column for each table.
            apart = options.writes_schemas or options.format in ("tables", "arrow")
            own = (relation.schema, relation.table) if apart else ()
            plan = plan_key(relation, options) if shaping else None
            layout_key = (alike, own, plan)
            if layout_key not in known:
                known[layout_key] = len(self.first)
                self.first.append(relation)
            self.shape[number] = known[layout_key]

    def names(self, relation: NDArray[np.int64]) -> TableNames:
        """Return the names of the tables that changes belong to.

        Args:
            relation: number of each change's relation version, shape (rows,).
        """
        members = np.unique(relation)
        if len(members) == 1:
            return self._names[int(members[0])]
        at = pa.array(np.searchsorted(members, relation))
        chosen = [self._names[number] for number in members.tolist()]
        topic, schema, table, *source = (
            pa.array(texts)
            for texts in zip(*((one.topic, one.schema, one.table, *one.source) for one in chosen), strict=True)
        )
        return TableNames(topic, schema, table, tuple(source)).take(at)
