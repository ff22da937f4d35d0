"""Columns of rows, from JSON entries: those in which OpenLogReplicator shows changes, and those made of XStream's."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.binary import decode_hex
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.connectors.oracle.values import texts
from floodmark.connectors.oracle.values.shown_rows import OLR, SIDES, Numbers, ShownRows, another_column
from floodmark.errors import DecodeError

_NANOS = 9
BINARY = ("RAW", "BLOB")
FLOATS = {"BINARY_FLOAT": pa.float32(), "BINARY_DOUBLE": pa.float64()}
_OFFSET = r"^(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>\d\d)$"


class Entries(ShownRows):
    """Changes that are JSON.

    Args:
        entries: their texts.
        table: the table.
        adapter: ``database.connection.adapter``: which server has sent them.

    Raises:
        DecodeError: an entry isn't what the server writes, or has a column that the table doesn't have.
    """

    def __init__(self, entries: pa.StringArray, table: Table, adapter: str = OLR) -> None:
        super().__init__(table, adapter)
        self._names = [column.name for column in table.columns]
        try:
            # Numbers stay texts, of which no digit is lost.
            self._parsed = json.loads(f"[{','.join(entries.to_pylist())}]", parse_int=str, parse_float=str)
            if adapter == "xstream":
                self._forget_unsent()
            self._rows = {side: [one.get(name) for one in self._parsed] for side, name in SIDES.items()}
            row = pa.struct([(name, pa.string()) for name in self._names])
            self._found = {side: pa.array(rows, row) for side, rows in self._rows.items()}
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError, pa.ArrowException) as exc:
            raise DecodeError(f"A change that the server has sent can't be read: {exc}") from None
        self._refuse_others()

    def _forget_unsent(self) -> None:
        """Leave out NULL for values that come apart, unless it came as a chunk: it may mean that nothing was sent.

        Empty texts are NULL where the column may be, as in Debezium.
        """
        apart = [column for column in self._columns if column.comes_apart]
        for one in self._parsed if apart else ():
            came = one["chunks"]
            for column in apart:
                name = column.name
                if one["before"].get(name, name) is None:
                    del one["before"][name]
                value = one["after"].get(name, name)
                if value is None and name not in came:
                    del one["after"][name]
                elif value == "" and column.optional and column.type not in BINARY:
                    one["after"][name] = None

    def _refuse_others(self) -> None:
        rows = chain.from_iterable(self._rows.values())
        others = set(chain.from_iterable(one for one in rows if one)) - {*self._names}
        if others:
            raise another_column(min(others), self._adapter)

    def _lacks_a_row(self, side: Side) -> bool:
        return bool(self._found[side].null_count)

    def _partial(self, side: Side) -> Numbers:
        lengths = np.fromiter(map(len, self._rows[side]), np.int64, len(self._parsed))
        return np.flatnonzero(lengths < len(self._names))

    def _values(self, side: Side, number: int) -> pa.Array:
        return values_of(pc.struct_field(self._found[side], number), self._columns[number])

    def _lacking(self, side: Side, number: int, among: Numbers) -> NDArray[np.bool_]:
        lacking, name = np.zeros(len(self._parsed), np.bool_), self._names[number]
        rows = self._rows[side]
        # Few tables have any: those with large objects, and rows that are shorter than their table.
        lacking[[row for row in among.tolist() if name not in (rows[row] or ())]] = True
        return lacking

    def _is_complete(self, row: int) -> bool:
        before, after = self._rows[Side.OLD][row] or {}, self._rows[Side.NEW][row] or {}
        shared = before.keys() & after.keys() - self._key
        return any(before[name] == after[name] for name in shared)


def values_of(found: pa.StringArray, column: Column) -> pa.Array:
    """Return a column's values in the form that its codec takes."""
    kind = column.type
    if kind in ("NUMBER", "FLOAT"):
        return texts.numbers(found, column.scale if kind == "NUMBER" else None)
    if kind in FLOATS:
        return texts.floats(found, FLOATS[kind])
    if kind in BINARY:
        return _bytes(found)
    if kind == "TIMESTAMP WITH TIME ZONE":
        return _zoned(found)
    if kind == "TIMESTAMP WITH LOCAL TIME ZONE":
        return pc.binary_join_element_wise(_moments(found, True), "+00:00", " ")
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return _moments(found, kind != "DATE")
    if kind == "INTERVAL YEAR TO MONTH":
        return texts.month_intervals(found)
    if kind == "INTERVAL DAY TO SECOND":
        return texts.day_intervals(pc.replace_substring(found, ",", " "))
    return found


def _bytes(digits: pa.StringArray) -> pa.BinaryArray:
    try:
        return decode_hex(digits)
    except ValueError as exc:
        raise DecodeError(f"A value of bytes isn't hexadecimal: {exc}") from None


def _parts(nanos: pa.StringArray) -> tuple[pa.TimestampArray, pa.Int64Array]:
    """Return times, nanoseconds since the epoch as texts, in seconds, and the nanoseconds above these."""
    try:
        negative = pc.starts_with(nanos, "-")
        digits = pc.utf8_lpad(pc.utf8_ltrim(nanos, "-"), _NANOS + 1, "0")
        seconds = pc.utf8_slice_codeunits(digits, 0, -_NANOS).cast(pa.int64())
        rest = pc.utf8_slice_codeunits(digits, -_NANOS).cast(pa.int64())
    except pa.ArrowInvalid as exc:
        raise DecodeError(f"A time isn't a number of nanoseconds since the epoch: {exc}", _TIMES) from None
    whole, borrows = pc.negate(seconds), pc.greater(rest, 0)
    before = pc.subtract(whole, borrows.cast(pa.int64()))
    above = pc.if_else(borrows, pc.subtract(10**_NANOS, rest), rest)
    return (
        pc.if_else(negative, before, seconds).cast(pa.timestamp("s")),
        pc.if_else(negative, above, rest),
    )


def _moments(nanos: pa.StringArray, with_fraction: bool) -> pa.StringArray:
    """Return times as ``YYYY-MM-DD HH:MM:SS.fffffffff``."""
    seconds, rest = _parts(nanos)
    return _written(seconds, rest if with_fraction else None)


def _written(seconds: pa.TimestampArray, rest: pa.Int64Array | None) -> pa.StringArray:
    shown = seconds.cast(pa.string())
    if rest is None:
        return shown
    return pc.binary_join_element_wise(shown, pc.utf8_lpad(rest.cast(pa.string()), _NANOS, "0"), ".")


def _zoned(found: pa.StringArray) -> pa.StringArray:
    """Return times with a zone, ``<nanoseconds>,<zone>``, at that zone and with its offset behind."""
    comma = pc.find_substring(found, ",")
    if pc.any(pc.less(comma, 1)).as_py():
        raise DecodeError("A time with a zone isn't '<nanoseconds>,<zone>'.", _TIMES)
    parts = pc.extract_regex(found, r"^(?P<nanos>-?\d+),(?P<zone>.+)$")
    if parts.null_count > found.null_count:
        raise DecodeError("A time with a zone isn't '<nanoseconds>,<zone>'.", _TIMES)
    seconds, rest = _parts(pc.struct_field(parts, "nanos"))
    coded = pc.struct_field(parts, "zone").dictionary_encode()
    codes = coded.indices
    minutes = pa.nulls(len(found), pa.int64())
    for number, zone in enumerate(coded.dictionary.to_pylist()):
        minutes = pc.if_else(pc.equal(codes, number), _offsets(seconds, zone), minutes)
    local = pc.add(seconds, pc.multiply(minutes, 60).cast(pa.duration("s")))
    size = pc.abs(minutes)
    hours = pc.divide(size, 60)
    sign = pc.if_else(pc.less(minutes, 0), " -", " +")
    two = [pc.utf8_lpad(one.cast(pa.string()), 2, "0") for one in (hours, pc.subtract(size, pc.multiply(hours, 60)))]
    return pc.binary_join_element_wise(_written(local, rest), sign, two[0], ":", two[1], "")


def _offsets(seconds: pa.TimestampArray, zone: str) -> Any:
    """Return how many minutes a zone is ahead of UTC at some times."""
    fixed = pc.extract_regex(pa.scalar(zone), _OFFSET).as_py()
    if fixed is not None:
        minutes = int(fixed["hours"]) * 60 + int(fixed["minutes"])
        return pa.scalar(-minutes if fixed["sign"] == "-" else minutes, pa.int64())
    try:
        local = pc.local_timestamp(seconds.cast(pa.timestamp("s", tz=zone)))
    except pa.ArrowException:
        raise DecodeError(f"A time has the zone {zone!r}, which isn't known.") from None
    return pc.divide(pc.subtract(local, seconds).cast(pa.int64()), 60)


_TIMES = "Leave the server's options format.timestamp and format.timestamp-tz out."
