"""Plants differences in a mirror's Delta table, as another writer might make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from obstore.store import LocalStore

from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.format.log import DeltaLog, State, commit_info, now_ms
from floodmark.sinks.delta.planning.row_deletions import RowDeletions
from floodmark.sinks.delta.planning.target_rows import KeptRows, TargetRows

Row = dict[str, Any]


class Planter:
    """Changes a table behind the mirror's back; a change is tried again where the mirror was faster.

    Args:
        folder: the table's.
        key: the column of its key.
        partition: the columns by which it is partitioned.
    """

    def __init__(self, folder: Path, key: str = "id", partition: pa.Schema | None = None) -> None:
        self._store = LocalStore(str(folder))
        self._partition = pa.schema([]) if partition is None else partition
        self._files = DataFiles(self._store, folder.name, self._partition.names)
        self._key = key
        # A mirror that goes on is faster than whoever reads large files each time.
        self._keys: dict[str, pa.ChunkedArray] = {}
        self._rows: dict[tuple[str, tuple[int, ...]], pa.Table] = {}

    def lose(self, keys: Sequence[Any]) -> None:
        """Delete rows."""
        self._change(keys, lambda _: [])

    def spoil(self, key: Any, **values: Any) -> None:
        """Change cells of a row, which keeps its position."""
        self._change([key], lambda rows: [{**row, **values} for row in rows])

    def double(self, key: Any) -> None:
        """Add a row once more."""
        self._change([key], lambda rows: [*rows, *rows])

    def add(self, like: Any, **values: Any) -> None:
        """Add a row that is like another one, which stays."""
        self._change([like], lambda rows: [*rows, {**rows[0], **values}])

    def _change(self, keys: Sequence[Any], change: Callable[[list[Row]], list[Row]]) -> None:
        log = DeltaLog(self._store)
        for _ in range(50):
            state = log.state()
            rows, actions = self._taken(state, keys)
            assert rows.num_rows, f"there is no row {keys}"
            made = pa.Table.from_pylist(change(rows.to_pylist()), rows.schema)
            actions += [{"add": add} for add in (self._files.write(made, [self._key]) if made.num_rows else [])]
            if log.commit(state.version + 1, [commit_info("UPDATE", now_ms()), *actions]):
                return
        raise AssertionError("the mirror was faster each time")

    def _taken(self, state: State, keys: Sequence[Any]) -> tuple[pa.Table, list[Mapping[str, Any]]]:
        known = TargetRows(self._files, "planted", KeptRows())
        deletions = RowDeletions(self._files, known, True, [self._key], now_ms())
        found: list[pa.Table] = []
        actions: list[Mapping[str, Any]] = []
        for file in state.files.values():
            if file.path not in self._keys:
                self._keys[file.path] = self._files.read(file, self._partition)[self._key]
            held = self._keys[file.path]
            chosen = pc.is_in(held, pa.array(keys, held.type)).to_numpy()
            wanted = np.setdiff1d(np.flatnonzero(chosen), known.deleted(file).astype(np.int64))
            if len(wanted):
                place = file.path, tuple(wanted.tolist())
                if place not in self._rows:
                    self._rows[place] = self._files.read(file, self._partition).take(pa.array(wanted))
                found.append(self._rows[place])
                actions += deletions.of(file, len(held), wanted.astype(np.uint64))
        deletions.finish()
        return pa.concat_tables(found, promote_options="permissive"), actions
