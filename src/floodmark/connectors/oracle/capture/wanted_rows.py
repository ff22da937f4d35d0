"""Chooses the rows of LogMiner's view that become events, before anything is kept of the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.connectors.oracle.mining.contents_query import Names
from floodmark.connectors.oracle.mining.operations import CHANGES, Operation
from floodmark.connectors.oracle.mining_options import HYBRID
from floodmark.connectors.oracle.options import OracleOptions

_OF_TABLES = (*CHANGES, Operation.UNSUPPORTED)
_UNKNOWN = "UNKNOWN"
_TEMPORARY = "/* No SQL_REDO for temporary tables */"


def _is_number(owner: str, table: str) -> bool:
    """Return whether LogMiner knows a table's number only, since the dictionary doesn't have it any more."""
    return owner == _UNKNOWN and table.startswith("OBJ#")


def _with_names(rows: pa.Table, objects: Mapping[int, str]) -> pa.Table:
    """Return rows with the names of known tables instead of their numbers."""
    nameless = pc.fill_null(pc.equal(rows["SEG_OWNER"], _UNKNOWN), False).to_numpy()
    numbers = rows["DATA_OBJ#"].to_numpy()
    known = nameless & np.isin(numbers, list(objects)) & np.isin(rows["OPERATION_CODE"].to_numpy(), CHANGES)
    if not known.any():
        return rows
    found, places = np.unique(numbers[known], return_inverse=True)
    parts = [objects[int(number)].partition(".")[::2] for number in found.tolist()]
    for column, names in zip(("SEG_OWNER", "TABLE_NAME"), zip(*parts, strict=True), strict=True):
        values = pc.replace_with_mask(
            rows[column].combine_chunks(), pa.array(known), pa.array(names, pa.string()).take(pa.array(places))
        )
        rows = rows.set_column(rows.schema.get_field_index(column), rows.schema.field(column), values)
    return rows


def _of_sessions(column: pa.ChunkedArray, names: Names) -> NDArray[np.bool_]:
    """Return which rows are of sessions that are wanted, shape (rows,).

    Whose change it is that LogMiner doesn't know, nobody can say, so it isn't left out.
    """
    if not (names.include or names.exclude):
        return np.ones(len(column), np.bool_)
    include, exclude = ({name.upper() for name in some} for some in (names.include, names.exclude))
    coded = column.combine_chunks().fill_null(_UNKNOWN).dictionary_encode()
    wanted = [
        name in ("", _UNKNOWN) or (name.upper() in include if include else name.upper() not in exclude)
        for name in coded.dictionary.to_pylist()
    ]
    found: NDArray[np.bool_] = np.array(wanted, np.bool_)[coded.indices.to_numpy()]
    return found


class WantedRows:
    """Chooses rows by their tables and by who made the change.

    Args:
        options: the source's options.
    """

    def __init__(self, options: OracleOptions) -> None:
        self._options = options
        self._captured: dict[str, bool] = {}
        self._sessions = {
            "USERNAME": Names(options.usernames_include, options.usernames_exclude),
            "CLIENT_ID": Names(options.clients_include, options.clients_exclude),
        }

    def of(self, rows: pa.Table, objects: Mapping[int, str]) -> pa.Table:
        """Return the rows that are wanted: changes of captured tables, and what isn't a change.

        Changes of a captured table that was dropped since, of which LogMiner has only the number, come as UNSUPPORTED,
        or with the table's name if columns may have numbers, too (``log.mining.strategy=hybrid``).

        Args:
            rows: of the view.
            objects: the names of the captured tables by their numbers.
        """
        if self._options.strategy == HYBRID and objects:
            rows = _with_names(rows, objects)
        operations = rows["OPERATION_CODE"].to_numpy()
        changes = np.isin(operations, _OF_TABLES)
        if not changes.any():
            return rows
        names = pc.binary_join_element_wise(rows["SEG_OWNER"], rows["TABLE_NAME"], ".").combine_chunks()
        coded = names.dictionary_encode()
        captured = np.array([self._captures(name) for name in coded.dictionary.to_pylist()], np.bool_)
        codes = coded.indices.fill_null(0).to_numpy()
        is_named = pc.is_valid(names).to_numpy(zero_copy_only=False)
        # Without a name nothing is known of the table, so UNSUPPORTED rows of it say nothing, either.
        wanted = is_named & captured[codes] if len(captured) else is_named
        for column, names in self._sessions.items():
            wanted &= _of_sessions(rows[column], names)
        wanted &= ~pc.fill_null(pc.equal(rows["SQL_REDO"], _TEMPORARY), False).to_numpy()
        kept = rows.filter(pa.array(wanted | ~changes))
        return self._with_dropped(kept, rows, changes & ~wanted, objects)

    def _captures(self, name: str) -> bool:
        known = self._captured.get(name)
        if known is None:
            owner, _, table = name.partition(".")
            known = self._captured[name] = self._options.captures(owner, table) and not (
                self._is_own(owner, table) or _is_number(owner, table)
            )
        return known

    def _is_own(self, owner: str, table: str) -> bool:
        """Return whether it is the table that makes the server write its log."""
        options = self._options
        return table == options.flush_table.upper() and owner == options.user.upper()

    def _with_dropped(
        self, kept: pa.Table, rows: pa.Table, left_out: NDArray[np.bool_], objects: Mapping[int, str]
    ) -> pa.Table:
        """Return rows with one for each captured table of whose changes LogMiner has only the table's number."""
        if not left_out.any() or not objects:
            return kept
        nameless = left_out & pc.fill_null(pc.equal(rows["SEG_OWNER"], _UNKNOWN), False).to_numpy()
        if not nameless.any():
            return kept
        numbers = rows["DATA_OBJ#"].to_numpy()
        places = np.flatnonzero(nameless & np.isin(numbers, list(objects)))
        _, first = np.unique(numbers[places], return_index=True)
        told = [
            self._unsupported(rows.slice(place, 1), objects[int(numbers[place])]) for place in places[first].tolist()
        ]
        return pa.concat_tables([*told, kept]) if told else kept

    def _unsupported(self, row: pa.Table, name: str) -> pa.Table:
        owner, _, table = name.partition(".")
        values = {
            "OPERATION_CODE": int(Operation.UNSUPPORTED),
            "SEG_OWNER": owner,
            "TABLE_NAME": table,
            "INFO": "the table was dropped or replaced before its changes were read",
        }
        for column, value in values.items():
            place = row.schema.get_field_index(column)
            row = row.set_column(place, row.schema.field(place), pa.array([value], row.schema.field(place).type))
        return row
