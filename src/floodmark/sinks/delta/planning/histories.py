"""Finds which versions of rows a micro-batch ends in a Delta table, and turns that into actions of the log.

Versions that have ended are in files of their own, which no later micro-batch needs to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import repeated
from floodmark.sinks.delta.format.data_files import POSITION, DataFiles
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.statistics import may_hold, null_share
from floodmark.sinks.delta.parts import Part, rows_in
from floodmark.sinks.delta.planning.row_deletions import RowDeletions
from floodmark.sinks.delta.planning.target_rows import TargetRows
from floodmark.sinks.history import CURRENT, TIME, VALID_FROM, VALID_TO, VALIDITY, versions_of
from floodmark.sinks.keys import KeyIndex, row_codes

Numbers = npt.NDArray[np.int64]
_ENDS = pa.schema([(VALID_TO, TIME)])


def has_ended(file: DataFile) -> bool:
    """Return whether all versions of a data file are known to have ended."""
    return null_share(file, VALID_TO) == 0


@dataclass(frozen=True)
class _Held:
    """Current versions of the target.

    Attributes:
        rows: all columns that the target has of them.
        files: the file of each, shape (versions,), as numbers of ``sources``.
        numbers: the row of each in its file, shape (versions,).
        sources: the files.
    """

    rows: pa.Table
    files: Numbers
    numbers: Numbers
    sources: Sequence[DataFile]


class Histories:
    """Plans what the parts of a micro-batch make of the versions of a table's rows.

    Args:
        files: the table's.
        rows: their rows.
        vectors: whether versions are replaced in deletion vectors; otherwise their files are written again.
    """

    def __init__(self, files: DataFiles, rows: TargetRows, vectors: bool) -> None:
        self._files = files
        self._rows = rows
        self._vectors = vectors

    def actions(
        self, parts: Sequence[Part], files: list[DataFile], key: Sequence[str], columns: pa.Schema, at_ms: int
    ) -> list[Action]:
        """Return the actions that add new versions and end those before them (``Planner``)."""
        keys = pa.schema([columns.field(name) for name in key])
        files = [file for file in files if not has_ended(file)]
        truncates = any(part.truncated for part in parts)
        # A truncate ends the versions of other parts, too.
        alone = [False] * len(parts) if truncates else self._alone(parts, files, keys)
        actions: list[Action] = [
            {"add": add} for part, chosen in zip(parts, alone, strict=True) if chosen for add in part.adds
        ]
        others = [part for part, chosen in zip(parts, alone, strict=True) if not chosen]
        if not others:
            return actions
        events = pa.concat_tables([self._events(part) for part in others], promote_options="permissive")
        wanted = None if truncates else _keys_of(events, keys)
        held = self._held(files, columns, keys, wanted)
        found = versions_of(events, _as_known(held.rows, events), key, POSITION)
        deletions = RowDeletions(self._files, self._rows, self._vectors, [*key, VALID_TO], at_ms)
        by_file = [(file, found.ended[held.files[found.ended] == at]) for at, file in enumerate(held.sources)]
        actions += deletions.of_files(
            by_file,
            lambda one: deletions.of(
                one[0], self._rows.keys(one[0], keys).columns.num_rows, np.sort(held.numbers[one[1]]).astype(np.uint64)
            ),
        )
        deletions.finish()
        ended = held.rows.take(pa.array(found.ended))
        for name, values in ((VALID_TO, found.until), (CURRENT, pa.repeat(False, len(found.until)))):
            ended = ended.set_column(ended.column_names.index(name), name, values)
        current = found.rows[CURRENT]
        for rows in (found.rows.filter(current), _together(found.rows.filter(pc.invert(current)), ended)):
            if rows.num_rows:
                order = [*key, VALID_TO]
                actions += [{"add": add} for add in self._files.write(self._files.in_order(rows, order), order)]
        return actions

    def _alone(self, parts: Sequence[Part], files: Sequence[DataFile], keys: pa.Schema) -> list[bool]:
        """Return whose data files can be added as they are: no other part, nor the target, has their keys."""
        codes = row_codes(pa.concat_tables([part.changes.select(keys.names).cast(keys) for part in parts]))
        _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
        ends = np.cumsum([part.changes.num_rows for part in parts])
        return [
            bool(part.adds)
            and bool((counts[inverse[end - part.changes.num_rows : end]] == 1).all())
            and not self._has_any(files, part.changes.select(keys.names).cast(keys))
            for part, end in zip(parts, ends, strict=True)
        ]

    def _has_any(self, files: Sequence[DataFile], wanted: pa.Table) -> bool:
        """Return whether any of the keys has a current version."""
        index = KeyIndex(wanted)
        return any(len(self._current(file, wanted.schema, index)) for file in files if may_hold(file, index))

    def _events(self, part: Part) -> pa.Table:
        """Return the rows that a part stands for; those of its data files as rows that were read."""
        names = ["op", "position", "source_ts", "unavailable", "before", "after"]
        if part.open is not None:
            return part.open.select(names)
        rows = rows_in(self._files, part)
        own = [field for field in part.columns if field.name not in VALIDITY.names]
        after = pa.StructArray.from_arrays(
            [rows[field.name].cast(field.type).combine_chunks() for field in own], fields=own
        )
        count, texts = rows.num_rows, pa.list_(pa.field("element", pa.string()))
        lacks, before = repeated(pa.scalar([], texts), count), pa.nulls(count, after.type)
        values = [pa.repeat("r", count), rows[POSITION], rows[VALID_FROM].cast(TIME), lacks, before, after]
        return pa.table(dict(zip(names, values, strict=True)))

    def _held(self, files: Sequence[DataFile], columns: pa.Schema, keys: pa.Schema, wanted: pa.Table | None) -> _Held:
        """Read current versions.

        Args:
            columns: the source's columns, with the types that they have in the table.
            keys: those of the key.
            wanted: their keys, each at least once; None: all.
        """
        empty = pa.schema([*keys, *VALIDITY, (POSITION, pa.string())]).empty_table()
        if wanted is not None and not wanted.num_rows:
            return _Held(empty, np.zeros(0, np.int64), np.zeros(0, np.int64), [])
        index = None if wanted is None else KeyIndex(wanted.group_by(keys.names).aggregate([]))
        parts, numbers, sources = [empty], [], []
        for file in files:
            if index is not None and not may_hold(file, index):
                continue
            rows = self._current(file, keys, index)
            if len(rows):
                parts.append(self._files.read(file, columns).take(pa.array(rows)))
                numbers.append(rows)
                sources.append(file)
        places = np.repeat(np.arange(len(sources)), [len(rows) for rows in numbers])
        whole = pa.concat_tables(parts, promote_options="permissive")
        return _Held(whole, places, np.concatenate([np.zeros(0, np.int64), *numbers]), sources)

    def _current(self, file: DataFile, keys: pa.Schema, index: KeyIndex | None) -> Numbers:
        """Return the rows of a file that are current versions, ascending.

        Args:
            index: of which keys; None: of all.
        """
        if index is None:
            every = np.arange(self._rows.keys(file, keys).columns.num_rows)
            rows = np.setdiff1d(every, self._rows.deleted(file).astype(np.int64), assume_unique=True)
        else:
            rows, _ = self._rows.find(file, keys, index)
        if not len(rows) or null_share(file, VALID_TO) == 1:
            return rows
        ends = self._rows.read(file, _ENDS)[VALID_TO].take(pa.array(rows))
        current: Numbers = rows[np.asarray(pc.is_null(ends).combine_chunks().to_numpy(zero_copy_only=False))]
        return current


def _keys_of(events: pa.Table, keys: pa.Schema) -> pa.Table:
    """Return the keys of the rows that events change, and those that they had before they got another one."""
    sides = []
    for side in ("before", "after"):
        rows = events[side].combine_chunks()
        rows = rows.filter(pc.is_valid(rows))
        fields = dict(zip(rows.type.names, rows.flatten(), strict=True))
        sides.append(pa.table([fields[one.name].cast(one.type) for one in keys], keys))
    return pa.concat_tables(sides)


def _as_known(held: pa.Table, events: pa.Table) -> pa.Table:
    """Return the columns of held versions that events have, too; null where the target has no such column yet."""
    wanted = [*events.schema.field("after").type, VALIDITY.field(VALID_FROM), pa.field(POSITION, pa.string())]
    columns = [
        held[one.name].cast(one.type) if one.name in held.column_names else pa.nulls(held.num_rows, one.type)
        for one in wanted
    ]
    return pa.table(columns, schema=pa.schema(wanted))


def _together(new: pa.Table, ended: pa.Table) -> pa.Table:
    return pa.concat_tables([new, ended], promote_options="permissive")
