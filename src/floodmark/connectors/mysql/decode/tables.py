"""Assigns a segment's row events to versions of tables, by its TABLE_MAP events and its header."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from floodmark.codecs.numbering import number_rows
from floodmark.connectors.mysql.binlog import event_types as kinds
from floodmark.connectors.mysql.binlog.little_endian import numbers
from floodmark.connectors.mysql.binlog.segments import damaged_segment
from floodmark.connectors.mysql.binlog.table_map import TableMap, parse_table_map
from floodmark.connectors.mysql.decode.events import Events
from floodmark.connectors.mysql.decode.structure import Flavor, TableStructure
from floodmark.connectors.mysql.structures.table import Table
from floodmark.connectors.mysql.values.layouts import Layout, parse_layouts, with_structure
from floodmark.errors import DecodeError

TABLE_ID_BYTES = 6
_FILE_BITS, _FILE_MASK = 48, 0x7FFF  # above an id's 48 bits, without the sign bit


class SegmentTables:
    """The versions of tables that the row events of a segment belong to.

    Attributes:
        relations: the versions; a relation is an index into this list.
        maps: the TABLE_MAP event of each version.
        relation: the relation of each row event, -1 for other events, shape (events,).

    Raises:
        DecodeError: a row event has no TABLE_MAP event before it, or the header isn't what capture writes.
    """

    def __init__(self, events: Events) -> None:
        self.relations: list[TableStructure] = []
        self.maps: list[TableMap] = []
        self.relation = np.full(len(events), -1, np.int64)
        self._flavor: Flavor = "mariadb" if events.header.flavor == "mariadb" else "mysql"
        entries = events.header.tables
        self._known = [
            (one.record, Table.from_json(one.structure, damaged_segment))
            for one in entries
            if one.structure is not None
        ]
        self._carried = [
            (one.table_id, parse_table_map(one.map, self._flavor)) for one in entries if one.map is not None
        ]
        self._assign(events)

    def layouts(self, relation: int) -> tuple[Layout, ...]:
        """Return the layouts of a table version's columns in the log.

        Raises:
            DecodeError: the log and the schema history disagree.
        """
        seen = self.maps[relation]
        structure = self.relations[relation]
        if not structure.columns:
            raise DecodeError(
                f"The schema history does not know {seen.database}.{seen.table}, whose rows the log holds."
            )
        try:
            hidden = self._flavor == "mariadb"
            return with_structure(parse_layouts(seen.types, seen.metadata), structure.columns, hidden)
        except DecodeError as exc:
            raise DecodeError(f"{structure.schema}.{structure.table}: {exc}") from None

    def _assign(self, events: Events) -> None:
        rows = np.flatnonzero(events.of("rows"))
        if not len(rows):
            return
        maps = np.flatnonzero(events.kind == kinds.TABLE_MAP)
        carried = len(self._carried)
        # An id belongs to one version of a table until the server restarts, which begins another file.
        first = int(events.file[0]) & _FILE_MASK
        known = np.array([number | first << _FILE_BITS for number, _ in self._carried], np.int64)
        owner = np.concatenate([np.arange(carried), self._numbered(events, maps)])
        keys = np.concatenate([known, _table_ids(events, maps), _table_ids(events, rows)])
        place = np.concatenate([np.full(carried, -1), maps, rows])
        # Each row event gets the version of the last TABLE_MAP event before it with the same id: sorted by id, then by
        # place, that is the last map in front of it.
        order = np.lexsort((place, keys))
        is_map = order < len(owner)
        last = np.maximum.accumulate(np.where(is_map, np.arange(len(order)), -1))
        found = order[np.maximum(last, 0)]
        if not ((last >= 0) & (keys[found] == keys[order]))[~is_map].all():
            raise DecodeError("A row event belongs to a table that no TABLE_MAP event has announced.")
        self.relation[rows[order[~is_map] - len(owner)]] = owner[found[~is_map]]

    def _numbered(self, events: Events, maps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the relation of each TABLE_MAP event."""
        for _, seen in self._carried:
            self._add(seen, -1)
        if not len(maps):
            return np.zeros(0, np.int64)
        # Parse one TABLE_MAP event per id and number of structures known before it.
        ids = _table_ids(events, maps)
        version = np.searchsorted(sorted({record for record, _ in self._known}), events.record[maps], "right")
        found = number_rows(ids, version)
        relation = [
            self._add(parse_table_map(events.event(one), self._flavor), int(events.record[one]))
            for one in maps[found.first].tolist()
        ]
        return np.array(relation, np.int64)[found.owner]

    def _add(self, seen: TableMap, record: int) -> int:
        self.relations.append(self._structure(seen, record))
        self.maps.append(seen)
        return len(self.relations) - 1

    def _structure(self, seen: TableMap, record: int) -> TableStructure:
        versions = [
            table
            for first, table in self._known
            if first <= record and table.database == seen.database and table.name == seen.table
        ]
        # Capture keeps no structures of tables that are not captured.
        table = versions[-1] if versions else Table(seen.database, seen.table, ())
        return TableStructure(table, self._flavor)


def _table_ids(events: Events, index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the table ids of TABLE_MAP and row events, combined with the file, within which they are unique."""
    at = events.at[index]
    return numbers(events.buf, at, TABLE_ID_BYTES) | (events.file[index] & _FILE_MASK) << _FILE_BITS
