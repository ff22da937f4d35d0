"""Soft deletes: turns changes that delete rows into changes that mark them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import repeated

DELETED = "_deleted"
"""The column that says whether the source has deleted the row."""


def marked(events: pa.Table) -> pa.Table:
    """Return rows as ``format=rows`` has them with a column ``_deleted``, and deletes as updates that set it.

    What the log lacks of a deleted row keeps its value, as in any update.
    """
    before, after = (events[side].combine_chunks() for side in ("before", "after"))
    gone = pc.equal(events["op"], "d").combine_chunks()
    fields = [*after.type, pa.field(DELETED, pa.bool_())]
    values = [pc.if_else(gone, was, now) for was, now in zip(before.flatten(), after.flatten(), strict=True)]
    new = pa.StructArray.from_arrays([*values, gone], fields=fields, mask=pc.and_(pc.is_null(after), pc.invert(gone)))
    old = pa.StructArray.from_arrays(
        [*before.flatten(), pa.nulls(len(before), pa.bool_())], fields=fields, mask=pc.is_null(before)
    )
    found = {"op": pc.if_else(gone, "u", events["op"].combine_chunks()), "before": old, "after": new}
    return pa.table({name: found.get(name, events[name]) for name in events.column_names})


def without_truncates(events: pa.Table, held: pa.Table, truncated: str) -> pa.Table:
    """Return marked rows in which updates that mark a row stand for the truncates.

    Args:
        events: rows of a table, marked.
        held: keys of rows that the target has.
        truncated: the position of the last truncate.
    """
    key = held.column_names
    after = events["after"].combine_chunks()
    told = pa.table([after.field(after.type.get_field_index(name)) for name in key], key)
    earlier = pc.and_(pc.less(events["position"], truncated), pc.is_valid(after))
    keys = pa.concat_tables([held, told.filter(earlier)], promote_options="permissive").group_by(key).aggregate([])
    count = keys.num_rows
    lacking = [field.name for field in after.type if field.name not in (*key, DELETED)]
    known: dict[str, pa.Array] = {name: keys[name].combine_chunks() for name in key}
    known[DELETED] = pa.array(np.ones(count, np.bool_))
    values = [
        known[field.name].cast(field.type) if field.name in known else pa.nulls(count, field.type)
        for field in after.type
    ]
    marks = pa.table(
        {
            "op": pa.repeat("u", count),
            "position": pa.repeat(truncated, count),
            "unavailable": repeated(pa.scalar(lacking, pa.list_(pa.field("element", pa.string()))), count),
            "before": pa.nulls(count, after.type),
            "after": pa.StructArray.from_arrays(values, fields=list(after.type)),
        }
    )
    others = events.filter(pc.not_equal(events["op"], "t")).select(marks.column_names)
    return pa.concat_tables([others, marks])
