"""What a task makes of the rows that it has of a table: their last changes, as rows of a staging table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.changes.arrow_tables import packed, unpacked
from floodmark.errors import FloodmarkError, TargetBusyError, TargetError, TargetUnfitError
from floodmark.sinks.blocks import together
from floodmark.sinks.last_changes import LastChanges, last_changes
from floodmark.sinks.micro_batches import Extent

POSITION = "_position"
"""The column of a target with the position of the row's last change."""
OPERATION = "_op"
"""The column of a target without a key that says what each change does."""
_NAMES = pa.list_(pa.field("element", pa.string()))
MESSAGE = pa.schema(
    [
        ("table", pa.string()),
        ("key", _NAMES),
        ("columns", pa.binary()),
        ("lacking", _NAMES),
        ("truncated", pa.string()),
        ("first", pa.string()),
        ("last", pa.string()),
        ("read", pa.string()),
        ("count", pa.int64()),
        ("rows", pa.binary()),
        ("staged", pa.string()),
        ("unrepresentable", _NAMES),
        ("error", pa.string()),
    ]
)
"""The columns in which tasks send parts to the driver; ``error`` is what a part could not be made for."""
_ERRORS = {"unfit": TargetUnfitError, "busy": TargetBusyError, "": TargetError}


@dataclass(frozen=True)
class Part:
    """What a task has made of its rows of a table.

    Attributes:
        key: the columns of the table's key; empty if it has none.
        columns: the table's columns, as the source has them.
        lacking: the columns of which some row has no value, since only the target has it.
        truncated: the position of its last truncate; empty without one.
        first: the position of its first change in the log; empty if all rows come from a snapshot.
        last: that of its last one.
        read: the position of its last row that a snapshot has read; empty if there is none.
        count: how many rows it has.
        rows: these, as a staging table has them; None: they are in one.
        staged: the name of the staging table; empty if they are in none.
        unrepresentable: columns with values that the types of typed rows don't hold, and which are null therefore.
    """

    key: Sequence[str]
    columns: pa.Schema
    lacking: Sequence[str]
    truncated: str
    first: str
    last: str
    read: str
    count: int
    rows: pa.Table | None
    staged: str = ""
    unrepresentable: Sequence[str] = ()

    @property
    def extent(self) -> Extent:
        """How far its rows go."""
        return Extent(self.last, self.read)

    @property
    def end(self) -> str:
        """The position of its last row."""
        return max(self.extent)

    @property
    def is_read(self) -> bool:
        """Whether all its rows come from a snapshot."""
        return not self.first

    def in_stage(self, name: str) -> Part:
        """Return it with its rows in a staging table."""
        return replace(self, rows=None, staged=name)

    def to_message(self, table: str) -> dict[str, Any]:
        """Return it as a row of ``MESSAGE``."""
        return {
            "table": table,
            "key": list(self.key),
            "columns": self.columns.serialize().to_pybytes(),
            "lacking": list(self.lacking),
            "truncated": self.truncated,
            "first": self.first,
            "last": self.last,
            "read": self.read,
            "count": self.count,
            "rows": None if self.rows is None else packed(self.rows),
            "staged": self.staged,
            "unrepresentable": list(self.unrepresentable),
            "error": None,
        }

    @classmethod
    def from_message(cls, row: Mapping[str, Any]) -> Part:
        """Return the part of a row of ``MESSAGE``.

        Raises:
            TargetError: the task could not make it.
        """
        if row["error"] is not None:
            kind, what, cure = json.loads(row["error"])
            raise _ERRORS[kind](what, cure)
        return cls(
            row["key"],
            pa.ipc.read_schema(pa.py_buffer(row["columns"])),
            row["lacking"],
            row["truncated"],
            row["first"],
            row["last"],
            row["read"],
            row["count"],
            None if row["rows"] is None else unpacked(row["rows"]),
            row["staged"],
            row["unrepresentable"],
        )


def failed(table: str, key: Sequence[str], error: FloodmarkError) -> dict[str, Any]:
    """Return a row of ``MESSAGE`` for a table whose part can't be made.

    Args:
        key: the columns of its key.
    """
    kind = next((name for name, made in _ERRORS.items() if isinstance(error, made)), "")
    return {
        **dict.fromkeys(MESSAGE.names),
        "table": table,
        "key": list(key),
        "error": json.dumps([kind, error.what, error.cure]),
    }


def make_parts(table: str, rows: Sequence[pa.Table]) -> list[Part]:
    """Return the last changes of a task's rows of a table: one part, or several that can't be together.

    Args:
        table: the source's name of the table, for errors.
        rows: blocks of rows as ``format=rows`` has them, in any order.

    Raises:
        TargetUnfitError: a column can't be in a target.
    """
    parts = []
    for events in together(rows):
        names = pc.binary_join(events["key"].combine_chunks(), "\0")
        keys = pc.unique(names).to_pylist()
        for key in keys:
            chosen = events if len(keys) == 1 else events.filter(pc.equal(names, key))
            parts.append(_part(table, chosen, key.split("\0") if key else []))
    return parts


def _part(table: str, events: pa.Table, key: Sequence[str]) -> Part:
    columns = pa.schema(list(events.schema.field("after").type))
    for name in (POSITION, *(() if key else (OPERATION,))):
        if name in columns.names:
            raise TargetUnfitError(
                f"The column '{name}' of the table '{table}' can't be in a target, which has one of its own with that "
                "name.",
                "Leave it out with column.exclude.list, or rename it.",
            )
    lost = pc.unique(pc.list_flatten(events["unrepresentable"].combine_chunks())).to_pylist()
    first = pc.min(events["position"].filter(pc.not_equal(events["op"], "r"))).as_py() or ""
    last, read = Extent.of(events)
    if not key:
        staged = _appended(events, columns)
        return Part([], columns, [], "", first, last, read, staged.num_rows, staged, unrepresentable=lost)
    changes = last_changes(events, key)
    truncated = ""
    if changes.truncated:
        truncated = pc.max(events["position"].filter(pc.equal(events["op"], "t"))).as_py()
    lacking = [name for name in columns.names if name in changes.unavailable]
    staged = _staged(changes, columns, key, lacking)
    return Part(key, columns, lacking, truncated, first, last, read, staged.num_rows, staged, unrepresentable=lost)


def stage_schema(columns: pa.Schema, key: Sequence[str], lacking: Sequence[str]) -> pa.Schema:
    """Return the columns of a staging table: names that can't be those of a hostile source.

    ``c0``, ``c1`` … are the table's columns, ``p`` the position, ``d`` whether the row is deleted or, without a key,
    ``o`` the operation; ``u1`` whether ``c1`` has the value that the target has, and ``h0``, ``h1`` … the key under
    which the target has it.

    Args:
        columns: the table's columns.
        key: those of its key.
        lacking: those of which some row has no value.
    """
    kinds = [(f"c{number}", field.type) for number, field in enumerate(columns)]
    kinds += [("p", pa.string()), ("d", pa.bool_()) if key else ("o", pa.string())]
    kinds += [(f"u{columns.get_field_index(name)}", pa.bool_()) for name in lacking]
    if lacking:
        kinds += [(f"h{number}", columns.field(name).type) for number, name in enumerate(key)]
    return pa.schema(kinds)


def _staged(changes: LastChanges, columns: pa.Schema, key: Sequence[str], lacking: Sequence[str]) -> pa.Table:
    values = [changes.rows[name] for name in columns.names]
    values += [changes.positions, pa.array(changes.deleted)]
    values += [pa.array(changes.unavailable[name]) for name in lacking]
    if lacking:
        some = np.logical_or.reduce([changes.unavailable[name] for name in lacking])
        values += [pc.if_else(pa.array(some), changes.held[name].combine_chunks(), None) for name in key]
    return pa.table(values, schema=stage_schema(columns, key, lacking))


def _appended(events: pa.Table, columns: pa.Schema) -> pa.Table:
    """Return all changes of a table without a key."""
    before, after = events["before"].combine_chunks(), events["after"].combine_chunks()
    gone = pc.is_null(after)
    values = [pc.if_else(gone, was, now) for was, now in zip(before.flatten(), after.flatten(), strict=True)]
    return pa.table([*values, events["position"], events["op"]], schema=stage_schema(columns, [], []))
