"""Columns of rows, from the protocol buffers in which OpenLogReplicator shows changes.

Each change is a ``Payload`` of its ``OraProtoBuf.proto``, with a ``Value`` for each column of the row before and after
it. Release 1.9.0 leaves out what values of some types are, so they look like null, and rounds numbers to single or
double precision if its dictionary has few digits for them, or none: only what can't have been changed is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import byte_at, offsets_of, slices, text_of
from floodmark.codecs.binary import decode_hex
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.connectors.oracle.values.documents import FLOATS, Entries, values_of
from floodmark.connectors.oracle.values.protocol_buffers import Fields, Numbers, as_text, read_fields
from floodmark.connectors.oracle.values.shown_rows import OLR, ShownRows, another_column
from floodmark.errors import DecodeError
from floodmark.events.json_text import value_bytes

_ROWS = {Side.OLD: 4, Side.NEW: 5}
_NAME, _INTEGER, _SINGLE, _DOUBLE, _TEXT, _BYTES = range(1, 7)
_EXACT_DIGITS = {_SINGLE: 6, _DOUBLE: 15}
"""With so many digits, any decimal number is the nearest one to some binary number."""
_DIGITS = 38
_LEFT_OUT = frozenset(("RAW", "BLOB", "DATE", "XMLTYPE"))
_JSON = "Set the server's format.type to json or debezium."
_LIMITS = (-(1 << 63), (1 << 63) - 1)


def rows_of(entries: pa.StringArray, table: Table, adapter: str = OLR) -> ShownRows:
    """Return the rows of changes of a table, in whichever of its formats the server has sent them.

    Args:
        entries: the changes.
        table: the table.
        adapter: ``database.connection.adapter``.

    Raises:
        DecodeError: an entry isn't what the server writes, or has a column that the table doesn't have.
    """
    is_json = byte_at(entries, 0) == ord("{")
    return Entries(entries, table, adapter) if is_json.all() else Messages(entries, table)


@dataclass(frozen=True)
class _Side:
    """The rows before or after changes.

    Attributes:
        fields: those of the values.
        row: the change of each value, shape (values,), ascending.
        column: its column, shape (values,); -1: it is of none.
    """

    fields: Fields
    row: Numbers
    column: Numbers


class Messages(ShownRows):
    """Changes that are protocol buffers.

    Args:
        entries: they, in hexadecimal digits.
        table: the table.

    Raises:
        DecodeError: an entry isn't what the server writes, or has a column that the table doesn't have.
    """

    def __init__(self, entries: pa.StringArray, table: Table) -> None:
        super().__init__(table)
        try:
            raw = decode_hex(entries)
        except ValueError as exc:
            raise DecodeError(f"A change that OpenLogReplicator has sent can't be read: {exc}") from None
        self._count = len(entries)
        places = offsets_of(raw).astype(np.int64) - offsets_of(raw)[0]
        changes = read_fields(value_bytes(raw), places[:-1], places[1:])
        self._sides = {side: self._side(changes, number) for side, number in _ROWS.items()}
        self._shown = {side: self._presence(one) for side, one in self._sides.items()}

    def _side(self, changes: Fields, number: int) -> _Side:
        values = changes.within(number)
        names = values.texts(_NAME).dictionary_encode()
        numbers = {column.name: place for place, column in enumerate(self._columns)}
        known = names.dictionary.to_pylist()
        for name in known:
            if name not in numbers:
                raise another_column(name)
        # Values of columns that the server doesn't show have no name.
        column = np.array([*(numbers[name] for name in known), -1])[names.indices.fill_null(len(known)).to_numpy()]
        return _Side(values, changes.message[changes.places(number)], column)

    def _presence(self, side: _Side) -> NDArray[np.bool_]:
        """Return which columns each row has, shape (changes, columns)."""
        found = np.zeros((self._count, len(self._columns)), np.bool_)
        shown = side.column >= 0
        found[side.row[shown], side.column[shown]] = True
        return found

    def _lacks_a_row(self, side: Side) -> bool:
        return not self._shown[side].any(axis=1).all()

    def _partial(self, side: Side) -> Numbers:
        return np.flatnonzero(~self._shown[side].all(axis=1))

    def _lacking(self, side: Side, number: int, among: Numbers) -> NDArray[np.bool_]:
        lacking = np.zeros(self._count, np.bool_)
        lacking[among] = ~self._shown[side][among, number]
        return lacking

    def _is_complete(self, row: int) -> bool:
        before, after = (self._texts_of(self._sides[side], row) for side in (Side.OLD, Side.NEW))
        shared = before.keys() & after.keys() - self._key
        return any(before[name] == after[name] for name in shared)

    def _texts_of(self, side: _Side, row: int) -> dict[str, bytes]:
        """Return the values of a row, by their columns' names, in any form that is the same for the same value."""
        found = {}
        for value in np.flatnonzero((side.row == row) & (side.column >= 0)).tolist():
            of = np.flatnonzero((side.fields.message == value) & (side.fields.number != _NAME)).tolist()
            content = b"".join(
                side.fields.data[side.fields.begin[one] :][: int(side.fields.value[one])].tobytes()
                if side.fields.number[one] >= _TEXT
                else side.fields.value[one].tobytes()
                for one in of
            )
            found[self._columns[side.column[value]].name] = content
        return found

    def _values(self, side: Side, number: int) -> pa.Array:
        given, column = self._sides[side], self._columns[number]
        chosen = np.flatnonzero(given.column == number)
        found = _Values(given.fields, chosen).of(column)
        place = np.full(self._count, -1, np.int64)
        place[given.row[chosen]] = np.arange(len(chosen))
        return found.take(pa.array(place, mask=place < 0))


class _Values:
    """Values of one column.

    Args:
        fields: those of all values.
        chosen: the values, ascending.
    """

    def __init__(self, fields: Fields, chosen: Numbers) -> None:
        place = np.full(fields.count, -1, np.int64)
        given = np.flatnonzero(fields.number != _NAME)
        place[fields.message[given]] = given
        self._fields, self._place = fields, place[chosen]
        self._kind = np.where(self._place < 0, 0, fields.number[self._place] if len(fields.number) else 0)
        if (fields.has_length[given] != (fields.number[given] >= _TEXT)).any():
            raise DecodeError("A value that OpenLogReplicator has sent has another form than its kind.")

    def of(self, column: Column) -> pa.Array:
        """Return them in the form that their column's codec takes.

        Raises:
            DecodeError: they aren't what the column's type has, or not known.
        """
        kind = column.type
        if (kind in _LEFT_OUT or kind.startswith("TIMESTAMP")) and not self._kind.all():
            raise DecodeError(
                f"OpenLogReplicator doesn't say in protocol buffers which {kind} the column {column.name!r} has.", _JSON
            )
        if kind in FLOATS:
            return self._binary(_DOUBLE).cast(FLOATS[kind])
        if kind in ("RAW", "BLOB"):
            return self._texts(_BYTES).view(pa.binary())
        binary = [self._decimal(column, one) for one in _EXACT_DIGITS if (self._kind == one).any()]
        return values_of(pc.coalesce(as_text(self._texts(_TEXT)), self._integers(column), *binary), column)

    def _texts(self, kind: int) -> pa.StringArray:
        known = self._kind == kind
        place = self._place[known]
        lengths = self._fields.value[place].view(np.int64)
        found = slices(self._fields.data, self._fields.begin[place], lengths, None)
        return found.take(_places(known))

    def _integers(self, column: Column) -> pa.StringArray:
        known = self._kind == _INTEGER
        found = self._fields.value[self._place[known]].view(np.int64)
        if np.isin(found, _LIMITS).any():
            raise _rounded(column)
        return text_of(found).take(_places(known))

    def _binary(self, kind: int) -> pa.DoubleArray:
        known = self._kind == kind
        return pa.array(_numbers(self._fields.value[self._place[known]], kind)).take(_places(known))

    def _decimal(self, column: Column, kind: int) -> pa.StringArray:
        """Return numbers of which the server has sent the nearest binary ones."""
        if column.length is None or column.length > _EXACT_DIGITS[kind]:
            raise _rounded(column)
        known = self._kind == kind
        found = _numbers(self._fields.value[self._place[known]], kind)
        if not np.isfinite(found).all():
            raise _rounded(column)
        if column.type == "NUMBER" and column.scale is not None:
            shown = pa.array(found).cast(pa.decimal128(_DIGITS, column.scale)).cast(pa.string())
        else:
            # The shortest text that means the same binary number is what it was made from.
            shown = pa.array(found.astype(np.float32) if kind == _SINGLE else found).cast(pa.string())
        return shown.take(_places(known))


def _places(known: NDArray[np.bool_]) -> pa.Int64Array:
    """Return where values are among those that are known; null for others."""
    return pa.array(np.cumsum(known) - 1, mask=~known)


def _numbers(bits: NDArray[np.uint64], kind: int) -> NDArray[np.float64]:
    if kind == _SINGLE:
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    return bits.view(np.float64)


def _rounded(column: Column) -> DecodeError:
    return DecodeError(
        f"OpenLogReplicator rounds numbers of the column {column.name!r} in protocol buffers, as it has no precision, "
        "or another one than is known.",
        _JSON,
    )
