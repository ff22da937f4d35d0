"""What a task makes of the rows that it has of a table: data files, and which keys are changed.

Tasks write in parallel and see only their own rows. The commit (:mod:`.writer`) decides which of them are the last.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.changes.arrow_tables import packed, unpacked
from floodmark.codecs.arrays import repeated
from floodmark.errors import FloodmarkError, TargetError, TargetUnfitError
from floodmark.json_data import Json
from floodmark.sinks.blocks import together
from floodmark.sinks.delta.format.data_files import POSITION, DataFiles
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.statistics import bounds
from floodmark.sinks.delta.format.vectors import Rows
from floodmark.sinks.history import TIME, VALID_TO, VALIDITY
from floodmark.sinks.keys import row_codes
from floodmark.sinks.last_changes import LastChanges, last_changes
from floodmark.sinks.micro_batches import NOTHING, Extent
from floodmark.sinks.options import Mode
from floodmark.sinks.soft_deletes import DELETED, marked

OPERATION = "_op"
"""The column of a table without a key that says what each change does."""
_OWN: Mapping[Mode, Sequence[str]] = {"hard": (), "soft": (DELETED,), "history": tuple(VALIDITY.names)}
"""Columns of a target with a key that the source's table doesn't have, besides the positions."""
MESSAGE = pa.schema(
    [
        ("table", pa.string()),
        ("key", pa.list_(pa.field("element", pa.string()))),
        ("columns", pa.binary()),
        ("changes", pa.binary()),
        ("truncated", pa.string()),
        ("logged", pa.string()),
        ("read", pa.string()),
        ("adds", pa.list_(pa.field("element", pa.string()))),
        ("open", pa.binary()),
        ("unrepresentable", pa.list_(pa.field("element", pa.string()))),
        ("error", pa.string()),
    ]
)
"""The columns in which tasks send parts to the driver; ``error`` is what a part could not be made for."""
_UNFIT = "unfit"
"""Tells an error that stays from one that may pass."""


@dataclass(frozen=True)
class Part:
    """What a task has made of its rows of a table.

    Attributes:
        key: the columns of the table's key; empty if it has none.
        columns: the table's columns, as the source has them.
        changes: keys and positions (``_position``) of its last changes: those of the data files' rows in their order,
            then those of rows that are deleted. Without columns for a table without a key.
        truncated: the position of its last truncate; empty without one.
        extent: how far its rows go.
        adds: the contents of the actions that add the data files, one for each partition that has rows.
        open: its rows as they came, because some need values that only the target or another task has. Nothing of
            them is written.
        unrepresentable: columns with values that Spark's types don't hold, and which are null therefore.
    """

    key: Sequence[str]
    columns: pa.Schema
    changes: pa.Table
    truncated: str = ""
    extent: Extent = NOTHING
    adds: Sequence[Mapping[str, Json]] = field(default=())
    open: pa.Table | None = None
    unrepresentable: Sequence[str] = field(default=())

    @property
    def last(self) -> str:
        """The position of its last change."""
        if self.key:
            return max(self.truncated, pc.max(self.changes[POSITION]).as_py() or "")
        known = [bounds(file, POSITION) for file in self.files]
        return max((str(one[1]) for one in known if one is not None), default="")

    @property
    def files(self) -> list[DataFile]:
        """Its data files."""
        return [DataFile.from_json(dict(add)) for add in self.adds]

    @property
    def rows(self) -> int:
        """How many rows the data files have."""
        return sum(map(_count, self.adds))

    def to_message(self, table: str) -> dict[str, Any]:
        """Return it as a row of ``MESSAGE``."""
        return {
            "table": table,
            "key": list(self.key),
            "columns": self.columns.serialize().to_pybytes(),
            "changes": packed(self.changes),
            "truncated": self.truncated,
            **self.extent._asdict(),
            "adds": [json.dumps(add) for add in self.adds],
            "open": None if self.open is None else packed(self.open),
            "unrepresentable": list(self.unrepresentable),
        }

    @classmethod
    def from_message(cls, row: Mapping[str, Any]) -> Part:
        """Return the part of a row of ``MESSAGE``.

        Raises:
            TargetError: the task could not make it.
        """
        if row["error"] is not None:
            kind, what, cure = json.loads(row["error"])
            raise (TargetUnfitError if kind == _UNFIT else TargetError)(what, cure)
        return cls(
            row["key"],
            pa.ipc.read_schema(pa.py_buffer(row["columns"])),
            unpacked(row["changes"]),
            row["truncated"],
            Extent(row["logged"], row["read"]),
            [json.loads(add) for add in row["adds"]],
            None if row["open"] is None else unpacked(row["open"]),
            row["unrepresentable"],
        )


def failed(table: str, key: Sequence[str], error: FloodmarkError) -> dict[str, Any]:
    """Return a row of ``MESSAGE`` for a table whose part can't be made.

    Args:
        key: the columns of its key.
    """
    kind = _UNFIT if isinstance(error, TargetUnfitError) else ""
    return {
        **dict.fromkeys(MESSAGE.names),
        "table": table,
        "key": list(key),
        "error": json.dumps([kind, error.what, error.cure]),
    }


def by_file(adds: Sequence[Mapping[str, Json]], lost: Rows) -> Iterator[tuple[Mapping[str, Json], int, Rows]]:
    """Yield data files, with how many rows each has, and which of these are lost.

    Args:
        adds: the contents of the actions that add them.
        lost: numbers of rows, counted through all files, ascending.
    """
    begin = 0
    for add in adds:
        count = _count(add)
        first, behind = np.searchsorted(lost, [begin, begin + count])
        yield add, count, lost[first:behind] - np.uint64(begin)
        begin += count


def _count(add: Mapping[str, Json]) -> int:
    return int(json.loads(str(add["stats"]))["numRecords"])


def make_parts(files: DataFiles, rows: Sequence[pa.Table], mode: Mode = "hard") -> list[Part]:
    """Write the last changes of a task's rows of a table: one part, or several that can't be together.

    Args:
        files: those of the target.
        rows: blocks of rows as ``format=rows`` has them, in any order.
        mode: what becomes of rows that are changed or deleted.

    Raises:
        TargetUnfitError: a column can't be in a target, or a row in a partition.
        TargetError: the rows can't be partitioned so.
    """
    parts = []
    for events in together(rows):
        names = pc.binary_join(events["key"].combine_chunks(), "\0")
        keys = pc.unique(names).to_pylist()
        for key in keys:
            chosen = events if len(keys) == 1 else events.filter(pc.equal(names, key))
            part = _part(files, chosen, key.split("\0") if key else [], mode)
            parts.append(replace(part, extent=Extent.of(chosen)))
    return parts


def _part(files: DataFiles, events: pa.Table, key: Sequence[str], mode: Mode) -> Part:
    own = _OWN[mode] if key else ()
    _prove_names(files.table, events.schema.field("after").type.names, {POSITION, OPERATION, *own})
    soft = mode == "soft" and bool(key)
    events = marked(events) if soft else events
    columns = pa.schema(list(events.schema.field("after").type))
    lost = pc.unique(pc.list_flatten(events["unrepresentable"].combine_chunks())).to_pylist()
    if not key:
        return _appended(files, events, columns, lost)
    if mode == "history":
        return _versions(files, events, key, lost)
    changes = last_changes(events, key)
    truncated = _last_truncate(events) if changes.truncated else ""
    if changes.unavailable or (soft and truncated):
        return Part(key, columns, _changes(changes, key), truncated, open=events, unrepresentable=lost)
    return written(files, changes, key, columns, truncated, lost)


def _versions(files: DataFiles, events: pa.Table, key: Sequence[str], lost: Sequence[str]) -> Part:
    """Write rows that begin versions, if they do nothing else; the others need what the target has."""
    row, ops = events.schema.field("after").type, events["op"]
    columns = pa.schema([*row, *VALIDITY])
    changed = events.filter(pc.not_equal(ops, "t"))
    before, after = (changed[side].combine_chunks() for side in ("before", "after"))
    gone = pc.equal(changed["op"], "d").combine_chunks()
    places = [row.get_field_index(name) for name in key]
    flat = [pc.if_else(gone, was, now) for was, now in zip(before.flatten(), after.flatten(), strict=True)]
    changes = pa.table({name: flat[at] for name, at in zip(key, places, strict=True)})
    begins = pc.and_(pc.is_in(ops, pa.array(["r", "c"])), pc.is_null(events["before"]))
    whole = pc.and_(begins, pc.equal(pc.fill_null(pc.list_value_length(events["unavailable"]), 0), 0))
    if not pc.all(whole).as_py() or len(np.unique(row_codes(changes))) < changes.num_rows:
        truncated = _last_truncate(events) if changed.num_rows < events.num_rows else ""
        positions = changes.append_column(POSITION, changed["position"])
        return Part(key, columns, positions, truncated, open=events, unrepresentable=lost)
    none, true = pa.nulls(events.num_rows, TIME), pa.repeat(True, events.num_rows)
    rows = pa.table([*flat, events["source_ts"].cast(TIME), none, true], schema=columns)
    rows = files.in_order(rows.append_column(POSITION, events["position"]), key)
    adds = files.write(rows, [*key, VALID_TO])
    return Part(key, columns, rows.select([*key, POSITION]), adds=adds, unrepresentable=lost)


def written(
    files: DataFiles,
    changes: LastChanges,
    key: Sequence[str],
    columns: pa.Schema,
    truncated: str = "",
    unrepresentable: Sequence[str] = (),
) -> Part:
    """Write last changes that have all values."""
    rows = changes.rows.append_column(POSITION, changes.positions)
    kept, gone = np.flatnonzero(~changes.deleted), np.flatnonzero(changes.deleted)
    by = files.sorting(key, rows.column_names)
    # The other columns are copied once.
    order = pc.sort_indices(rows.select([name for name, _ in by]).take(pa.array(kept)), sort_keys=by)
    live = rows.take(pa.array(kept[order.to_numpy()]))
    every = pa.concat_tables([part.select([*key, POSITION]) for part in (live, rows.take(pa.array(gone)))])
    adds = files.write(live, key) if live.num_rows else []
    return Part(key, columns, every.combine_chunks(), truncated, adds=adds, unrepresentable=unrepresentable)


def fitting(files: DataFiles, part: Part, columns: pa.Schema) -> Part:
    """Return a part whose columns have the types that they have in the target; its data files are written again.

    Args:
        columns: the source's columns, with those types; the part may lack some.
    """
    wanted = pa.schema([columns.field(name) for name in part.columns.names])
    if wanted.types == part.columns.types:
        return part
    adds, opened = part.adds, part.open
    changes = part.changes.cast(
        pa.schema([wanted.field(one.name) if one.name in part.key else one for one in part.changes.schema])
    )
    if adds:
        rows = rows_in(files, part)
        kinds = [wanted.field(one.name) if one.name in wanted.names else one for one in rows.schema]
        described = [*part.key, VALID_TO] if VALID_TO in rows.column_names else part.key
        adds = files.write(rows.cast(pa.schema(kinds)), described)
    if opened is not None:
        row = pa.struct([wanted.field(name) for name in opened.schema.field("after").type.names])
        kinds = [one.with_type(row) if one.name in ("before", "after") else one for one in opened.schema]
        opened = opened.cast(pa.schema(kinds))
    return replace(part, columns=wanted, changes=changes, adds=adds, open=opened)


def rows_in(files: DataFiles, part: Part) -> pa.Table:
    """Return the rows of a part's data files, in the order of its changes.

    Args:
        files: those of the target.
        part: one with data files.
    """
    return pa.concat_tables([files.read(file, part.columns) for file in part.files])


def events_of(files: DataFiles, part: Part) -> pa.Table:
    """Return the rows that a part stands for, so that they can be reduced together with others.

    The rows of its data files come back as rows that were read, which hold all values.
    """
    if part.open is not None:
        return part.open
    rows, names = part.rows, part.columns.names
    deleted = part.changes.slice(rows)
    parts = []
    if part.adds:
        live = rows_in(files, part)
        parts.append(_as_events("r", live[POSITION], None, live.select(names).cast(part.columns), part.columns))
    if deleted.num_rows:
        parts.append(_as_events("d", deleted[POSITION], deleted, None, part.columns))
    if part.truncated:
        parts.append(_as_events("t", pa.chunked_array([[part.truncated]]), None, None, part.columns))
    return pa.concat_tables(parts)


def _as_events(
    op: str, positions: pa.ChunkedArray, before: pa.Table | None, after: pa.Table | None, columns: pa.Schema
) -> pa.Table:
    count = len(positions)
    row = pa.struct(list(columns))

    def side(rows: pa.Table | None) -> pa.Array:
        if rows is None:
            return pa.nulls(count, row)
        given = set(rows.column_names)
        values = [rows[one.name].combine_chunks() if one.name in given else pa.nulls(count, one.type) for one in row]
        return pa.StructArray.from_arrays(values, fields=list(row))

    names = pa.list_(pa.field("element", pa.string()))
    return pa.table(
        {
            "op": pa.repeat(op, count),
            "position": positions,
            "unavailable": repeated(pa.scalar([], names), count),
            "before": side(before),
            "after": side(after),
        }
    )


def _appended(files: DataFiles, events: pa.Table, columns: pa.Schema, lost: Sequence[str]) -> Part:
    """Write all changes of a table without a key."""
    before, after = events["before"].combine_chunks(), events["after"].combine_chunks()
    old, new = before.flatten(), after.flatten()
    gone = pc.is_null(after)
    rows = pa.table([pc.if_else(gone, was, now) for was, now in zip(old, new, strict=True)], schema=columns)
    rows = rows.append_column(OPERATION, events["op"]).append_column(POSITION, events["position"])
    adds = files.write(files.in_order(rows, [POSITION]), [])
    return Part([], columns, pa.table({}), adds=adds, unrepresentable=lost)


def _changes(changes: LastChanges, key: Sequence[str]) -> pa.Table:
    return changes.rows.select(list(key)).append_column(POSITION, changes.positions)


def _last_truncate(events: pa.Table) -> str:
    return str(pc.max(events["position"].filter(pc.equal(events["op"], "t"))).as_py())


def _prove_names(table: str, columns: Sequence[str], taken: Set[str]) -> None:
    """Refuse names that a Delta table can't have.

    Args:
        columns: the names of the source's columns.
        taken: names of the mirror's own columns.
    """
    seen: dict[str, str] = {}
    for name in columns:
        other = seen.setdefault(name.casefold(), name)
        if name.casefold() in taken or other != name:
            why = "a column of the mirror's own has that name" if other == name else f"there is '{other}', too"
            raise TargetUnfitError(
                f"The column '{name}' of the table '{table}' can't be in a mirror: {why}.",
                "Leave it out with column.exclude.list, or rename it.",
            )
