"""Reduces a table's typed rows of a micro-batch to the last change of each key, in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.changes.moved_keys import LastState, last_states
from floodmark.sinks.keys import row_codes

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

_OPS = pa.array(["r", "c", "u", "d", "t"])
_CREATE, _DELETE, _TRUNCATE = 1, 3, 4


@dataclass(frozen=True)
class LastChanges:
    """What a micro-batch makes of a table, one row for each key that it touches.

    Attributes:
        truncated: whether the target is to be emptied before.
        rows: the table's columns. A deleted row has only its key; what is unavailable is null.
        positions: of each row's last change, as texts that sort as the changes do.
        deleted: which rows are deleted.
        unavailable: for each column with such values, the rows whose value is the one that the target has.
        held: the keys under which the target has those values, one row for each of ``rows``; null where there are
            none, since the row is new. Only with ``unavailable``.
    """

    truncated: bool
    rows: pa.Table
    positions: pa.Array
    deleted: Mask
    unavailable: Mapping[str, Mask]
    held: pa.Table


def last_changes(events: pa.Table, key: Sequence[str]) -> LastChanges:
    """Reduce the rows of a micro-batch.

    Args:
        events: rows of a table as ``format=rows`` delivers them, in any order.
        key: the columns of the table's key; at least one.
    """
    ops = _numbers(pc.fill_null(pc.index_in(events["op"], _OPS), -1))
    order = _numbers(pc.sort_indices(events["position"]))
    emptied = np.flatnonzero(ops[order] == _TRUNCATE)
    order = order[emptied[-1] + 1 :] if len(emptied) else order
    order = order[(ops[order] >= 0) & (ops[order] < _TRUNCATE)]
    # Rows are copied once, when it is known which are the last: only keys are put in order before.
    ops, taken = ops[order], pa.array(order)
    after, before = _struct(events, "after"), _struct(events, "before")
    old = [before.field(before.type.get_field_index(name)).take(taken) for name in key]
    new = [after.field(after.type.get_field_index(name)).take(taken) for name in key]
    gone = pa.array(ops == _DELETE)
    at = pa.table([pc.if_else(gone, was, now) for was, now in zip(old, new, strict=True)], list(key))
    unavailable = {name: mask[order] for name, mask in _unavailable(events["unavailable"], after.type).items()}
    lacking = np.zeros(len(ops), np.bool_)
    for mask in unavailable.values():
        lacking |= mask
    has_before = _numbers(before.is_valid().cast(pa.int8())).astype(np.bool_)[order]
    moved = np.flatnonzero((ops == _CREATE) & has_before & lacking)
    codes = row_codes(pa.concat_tables([at, pa.table([part.take(pa.array(moved)) for part in old], list(key))]))
    codes, sources = codes[: len(ops)], codes[len(ops) :]
    followed = np.isin(codes, np.concatenate([sources, codes[moved]]))
    states = _followed(events, order, at, followed, key, after.type.names) if len(moved) else []
    plain = _plain(after, order, at, events["position"], ops, codes, unavailable, np.flatnonzero(~followed))
    return _joined(bool(len(emptied)), plain, states, key)


def _plain(
    after: pa.StructArray,
    places: Numbers,
    at: pa.Table,
    positions: pa.ChunkedArray,
    ops: Numbers,
    codes: Numbers,
    unavailable: Mapping[str, Mask],
    chosen: Numbers,
) -> LastChanges:
    """Reduce events that need no value from another key.

    Args:
        after: the rows after all events.
        places: where the events are among those, in the order of their positions, which all others are in.
        at: their keys.
        positions: of all events.
        chosen: which of them.
    """
    order = chosen[np.argsort(codes[chosen], kind="stable")]
    first = np.r_[True, np.diff(codes[order]) != 0][: len(order)]
    starts = np.flatnonzero(first)
    ends = np.r_[starts[1:], len(order)][: len(starts)] - 1
    # Values from before the last insert or delete belong to another row.
    begins = np.where(np.isin(ops[order], (_CREATE, _DELETE)), np.arange(len(order)), -1)
    since = np.maximum.accumulate(begins)[ends] if len(order) else begins
    made = since >= starts
    since = np.maximum(since, starts)
    last = order[ends]
    deleted = ops[last] == _DELETE
    columns, unknown = {}, {}
    for name in after.type.names:
        values, mask = after.field(after.type.get_field_index(name)), unavailable.get(name)
        if name in at.column_names:
            columns[name] = at[name].take(pa.array(last))
        elif mask is None:
            columns[name] = values.take(pa.array(places[last], mask=deleted))
        else:
            known = np.maximum.accumulate(np.where(mask[order], -1, np.arange(len(order))))[ends]
            lacks = (known < since) & ~deleted
            columns[name] = values.take(pa.array(places[order[np.maximum(known, 0)]], mask=deleted | lacks))
            if (lacks & ~made).any():
                unknown[name] = lacks & ~made
    held = {name: pc.if_else(pa.array(made | deleted), None, at[name].take(pa.array(last))) for name in at.column_names}
    rows = pa.table(columns) if columns else pa.table({})
    return LastChanges(False, rows, positions.take(pa.array(places[last])), deleted, unknown, pa.table(held))


def _followed(
    events: pa.Table, places: Numbers, at: pa.Table, followed: Mask, key: Sequence[str], columns: Sequence[str]
) -> list[LastState]:
    wanted = pa.array(np.flatnonzero(followed))
    keys = pa.StructArray.from_arrays([column.combine_chunks() for column in at.take(wanted).columns], list(key))
    chosen = events.select(["op", "position", "unavailable", "before", "after"]).take(pa.array(places[followed]))
    return last_states(key, columns, chosen.append_column("_at", keys).to_pylist())


def _joined(truncated: bool, plain: LastChanges, states: list[LastState], key: Sequence[str]) -> LastChanges:
    """Add the states of keys that were followed."""
    if not states:
        return LastChanges(truncated, plain.rows, plain.positions, plain.deleted, plain.unavailable, plain.held)
    made = []
    for one in states:
        values = dict.fromkeys(plain.rows.column_names) if one.state is None else one.state.values
        made.append({**values, **dict(zip(key, one.key, strict=True))})
    helds = [None if one.state is None or not one.state.unknown else one.state.held for one in states]
    held = [dict(zip(key, at or [None] * len(key), strict=True)) for at in helds]
    unknown = {name: plain.unavailable.get(name) for name in plain.rows.column_names}
    masks: dict[str, Mask] = {}
    for name, mask in unknown.items():
        more = np.array(
            [
                at is not None and one.state is not None and name in one.state.unknown
                for one, at in zip(states, helds, strict=True)
            ],
            np.bool_,
        )
        both = np.concatenate([np.zeros(plain.rows.num_rows, np.bool_) if mask is None else mask, more])
        if both.any():
            masks[name] = both
    return LastChanges(
        truncated,
        pa.concat_tables([plain.rows, pa.Table.from_pylist(made, plain.rows.schema)]),
        pa.chunked_array([*plain.positions.chunks, pa.array([one.position for one in states])]),
        np.concatenate([plain.deleted, np.array([one.state is None for one in states], np.bool_)]),
        masks,
        pa.concat_tables([plain.held, pa.Table.from_pylist(held, plain.held.schema)]),
    )


def _unavailable(lists: pa.ChunkedArray, row: pa.StructType) -> dict[str, Mask]:
    """Return for each column that any row lacks, which rows lack it."""
    array = lists.combine_chunks()
    values, rows = pc.list_flatten(array), _numbers(pc.list_parent_indices(array))
    masks: dict[str, Mask] = {}
    if len(values):
        encoded = values.dictionary_encode()
        numbers = _numbers(encoded.indices)
        for number, name in enumerate(encoded.dictionary.to_pylist()):
            if row.get_field_index(name) >= 0:
                masks[name] = np.zeros(len(array), np.bool_)
                masks[name][rows[numbers == number]] = True
    return masks


def _struct(events: pa.Table, name: str) -> pa.StructArray:
    found = events[name].combine_chunks()
    assert isinstance(found, pa.StructArray)
    # Fields of a struct that is null may hold anything.
    return pa.StructArray.from_arrays(found.flatten(), names=found.type.names, mask=pc.is_null(found))


def _numbers(array: pa.Array | pa.ChunkedArray) -> Numbers:
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return np.asarray(whole.to_numpy(zero_copy_only=False), dtype=np.int64)
