"""Histories: turns changes of rows into versions, each with the time from which on, and to which, it was valid.

Type 2 of the slowly changing dimensions: R. Kimball, M. Ross, The Data Warehouse Toolkit, chapter 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.sinks.keys import row_codes

VALID_FROM, VALID_TO, CURRENT = "valid_from", "valid_to", "is_current"
"""The columns of a version; ``valid_to`` is null for the one that is current."""
TIME = pa.timestamp("us", tz="UTC")
VALIDITY = pa.schema([(VALID_FROM, TIME), (VALID_TO, TIME), (CURRENT, pa.bool_())])

_POSITION, _TIME = "position", "source_ts"
Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Columns = Mapping[str, pa.Array]


@dataclass(frozen=True)
class Versions:
    """What a micro-batch makes of a history.

    Attributes:
        rows: new versions: the table's columns, then those of ``VALIDITY``, then the positions of the changes that
            made them.
        ended: numbers of the held versions that end.
        until: when each of them ends.
    """

    rows: pa.Table
    ended: Numbers
    until: pa.Array


def versions_of(events: pa.Table, held: pa.Table, key: Sequence[str], position: str) -> Versions:
    """Return the versions that events make.

    A row that was read, and is as the version before it, makes none. An event that is older than the held version of
    its key makes none, either.

    Args:
        events: rows of a table as ``format=rows`` has them, in any order.
        held: the current versions of their keys in the target, and with a truncate those of all keys; the table's
            columns, ``valid_from`` and the positions.
        key: the columns of the table's key; at least one.
        position: the column with positions.
    """
    columns = events.schema.field("after").type
    events = _with_truncates(events, held, key)
    seen = _Changes.of(events, held, columns, key, position)
    values, same = seen.values(), np.zeros(len(seen.at), np.bool_)
    again = np.flatnonzero(seen.read & seen.follows)
    same[again] = _same(values, again, again - 1)
    kept = np.flatnonzero(~same)
    codes, opens, times = seen.codes[kept], seen.opens[kept], seen.times[kept]
    # Clocks of a source may go back; a version may not end before it began.
    runs = np.cumsum(~_followers(codes, opens))
    times = pd.Series(times).groupby(runs).cummax().to_numpy()
    last = np.r_[codes[1:] != codes[:-1], True][: len(codes)]
    from_target = seen.at[kept] < held.num_rows
    made, ended = np.flatnonzero(opens & ~from_target), np.flatnonzero(from_target & ~last)
    until = pa.array(np.r_[times[1:], times[:1]], mask=last).cast(TIME)
    chosen = pa.array(kept[made])
    rows = {name: column.take(chosen) for name, column in values.items()}
    rows[VALID_FROM] = pa.array(times[made]).cast(TIME)
    rows[VALID_TO], rows[CURRENT] = until.take(pa.array(made)), pa.array(last[made])
    rows[position] = seen.positions.take(chosen)
    return Versions(pa.table(rows), seen.at[kept[ended]], until.take(pa.array(ended)))


@dataclass(frozen=True)
class _Changes:
    """Held versions and events, by key, then by position.

    Attributes:
        at: number of each of them among the held versions and, behind those, the events.
        codes: a number for each key.
        opens: which of them begin a version; the others only end one.
        read: which of them are rows that were read.
        follows: which of them have a version of the same key right before them.
        times: when they happened, in microseconds since the epoch.
        before: the one from which each takes the values that it lacks; -1: none.
        lacking: for each column with such values, which of them lack it.
        source: the columns of the held versions and, behind those, of the events.
        positions: of each.
    """

    at: Numbers
    codes: Numbers
    opens: Mask
    read: Mask
    follows: Mask
    times: Numbers
    before: Numbers
    lacking: Mapping[str, Mask]
    source: Columns
    positions: pa.Array

    @classmethod
    def of(
        cls, events: pa.Table, held: pa.Table, columns: pa.StructType, key: Sequence[str], position: str
    ) -> _Changes:
        """Put held versions and events in order, without the events that are older than the held version."""
        count = held.num_rows
        ops = events["op"].combine_chunks()
        after, before = (_flat(events[side]) for side in ("after", "before"))
        gone = pc.equal(ops, "d")
        source = {
            field.name: pa.concat_arrays([_plain(held[field.name]).cast(field.type), after[field.name]])
            for field in columns
        }
        own = pa.table([pc.if_else(gone, before[name], after[name]) for name in key], list(key))
        old = pa.table([before[name] for name in key], list(key))
        known = pa.table([source[name].slice(0, count) for name in key], list(key))
        codes = row_codes(pa.concat_tables([known, own, old]))
        codes, former = codes[: count + len(ops)], np.r_[np.full(count, -1), codes[count + len(ops) :]]
        positions = pa.concat_arrays([_plain(held[position]), _plain(events[_POSITION])])
        places = _numbers(pc.rank(positions, tiebreaker="dense"))
        # A key has one held version.
        place_held = pd.Series(np.where(np.arange(len(codes)) < count, places, 0))
        newest = place_held.groupby(codes).transform("max").to_numpy()
        order = np.lexsort((places, codes))
        order = order[(order < count) | (places[order] > newest[order])]
        opens = np.r_[np.ones(count, np.bool_), ~_mask(gone)][order]
        codes, former, places = codes[order], former[order], places[order]
        follows = _followers(codes, opens)
        moments = [held[VALID_FROM], events[_TIME]]
        times = np.concatenate([_numbers(pc.fill_null(one.cast(TIME).cast(pa.int64()), 0)) for one in moments])
        inserted = np.r_[np.zeros(count, np.bool_), _mask(pc.equal(ops, "c"))][order]
        read = np.r_[np.zeros(count, np.bool_), _mask(pc.equal(ops, "r"))][order]
        moved = inserted & np.r_[np.zeros(count, np.bool_), _mask(pc.is_valid(_plain(events["before"])))][order]
        previous = np.where(follows & ~inserted, np.arange(len(order)) - 1, -1)
        absent = _absent(events["unavailable"], columns)
        lacking = {name: np.r_[np.zeros(count, np.bool_), mask][order] for name, mask in absent.items()}
        for number in np.flatnonzero(moved & np.any([np.zeros(len(order), np.bool_), *lacking.values()], axis=0)):
            previous[number] = _last_of(former[number], places[number], codes, places, opens)
        taken = positions.take(pa.array(order))
        return cls(order, codes, opens, read, follows, times[order], previous, lacking, source, taken)

    def values(self) -> Columns:
        """Return the columns of all, with the values that some lack from those before."""
        found = {}
        for name, column in self.source.items():
            at, lacks = np.arange(len(self.at)), self.lacking.get(name)
            while lacks is not None and (open_ := (at >= 0) & lacks[at]).any():
                at[open_] = self.before[at[open_]]
            found[name] = column.take(pa.array(self.at[at], mask=at < 0))
        return found


def _followers(codes: Numbers, opens: Mask) -> Mask:
    """Return which changes have a version of the same key right before them."""
    found: Mask = np.r_[False, (codes[1:] == codes[:-1]) & opens[:-1]][: len(codes)]
    return found


def _last_of(code: int, place: int, codes: Numbers, places: Numbers, opens: Mask) -> int:
    """Return the version that a key had before its row got another key at a place; -1: none."""
    begin, end = np.searchsorted(codes, code, "left"), np.searchsorted(codes, code, "right")
    number = begin + int(np.searchsorted(places[begin:end], place)) - 1
    # What ended it is the change of the key itself.
    number -= number >= begin and not opens[number]
    return int(number) if number >= begin and opens[number] else -1


def _with_truncates(events: pa.Table, held: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return events in which deletes of all rows stand for truncates."""
    is_truncate = pc.equal(events["op"], "t")
    truncates = events.filter(is_truncate)
    others = events.filter(pc.invert(is_truncate)).select(["op", _POSITION, _TIME, "unavailable", "before", "after"])
    parts = [others]
    after = _flat(others["after"])
    told = pa.table([after[name] for name in key], list(key))
    for at, time in zip(truncates[_POSITION].to_pylist(), truncates[_TIME], strict=True):
        earlier = pc.and_(pc.less(others[_POSITION], at), pc.is_valid(others["after"]))
        every = [held.select(list(key)).cast(told.schema), told.filter(earlier)]
        keys = pa.concat_tables(every).group_by(list(key)).aggregate([])
        count, row = keys.num_rows, others.schema.field("after").type
        fields = [keys[one.name].combine_chunks() if one.name in key else pa.nulls(count, one.type) for one in row]
        ended = {
            "op": pa.repeat("d", count),
            _POSITION: pa.repeat(at, count),
            _TIME: pa.repeat(time.cast(others.schema.field(_TIME).type), count),
            "unavailable": pa.nulls(count, others.schema.field("unavailable").type),
            "before": pa.StructArray.from_arrays(fields, fields=list(row)),
            "after": pa.nulls(count, row),
        }
        parts.append(pa.table(ended, schema=others.schema))
    return pa.concat_tables(parts)


def _same(columns: Columns, ones: Numbers, others: Numbers) -> Mask:
    """Return which rows have the values of others in all columns."""
    alike = np.ones(len(ones), np.bool_)
    for column in columns.values():
        pair = pa.table([column.take(pa.array(np.r_[ones, others]))], ["value"])
        if pa.types.is_nested(column.type):
            values = pair["value"].to_pylist()
            alike &= np.array([values[n] == values[n + len(ones)] for n in range(len(ones))], np.bool_)
        else:
            codes = row_codes(pair)
            alike &= codes[: len(ones)] == codes[len(ones) :]
    return alike


def _absent(lists: pa.ChunkedArray, columns: pa.StructType) -> dict[str, Mask]:
    """Return for each column that any event lacks, which events lack it."""
    array = _plain(lists)
    names, rows = pc.list_flatten(array), _numbers(pc.list_parent_indices(array))
    masks: dict[str, Mask] = {}
    for name in pc.unique(names).to_pylist():
        if columns.get_field_index(name) >= 0:
            masks[name] = np.zeros(len(array), np.bool_)
            masks[name][rows[_mask(pc.equal(names, name))]] = True
    return masks


def _flat(column: pa.ChunkedArray) -> dict[str, pa.Array]:
    """Return the fields of a column of structures; they are null where the structure is."""
    array = _plain(column)
    return dict(zip(array.type.names, array.flatten(), strict=True))


def _plain(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _mask(array: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _numbers(array: pa.Array | pa.ChunkedArray) -> Numbers:
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return np.asarray(whole.to_numpy(zero_copy_only=False), np.int64)
