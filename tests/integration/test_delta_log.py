"""The log of Delta tables, beside delta-rs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from obstore.store import LocalStore

from floodmark.errors import TargetChangedError, TargetDamagedError
from floodmark.sinks.delta.format import log
from floodmark.sinks.delta.format.log import NO_TABLE, DeltaLog, State
from floodmark.sinks.delta.format.log_files import Action, commit_path
from floodmark.sinks.delta.format.vectors import VectorFile, read_vector

VECTORS = {"delta.enableDeletionVectors": "true"}


class Table:
    """A table in a folder, which delta-rs and the log's own reader read."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder)
        folder.mkdir()
        self.store = LocalStore(self.path)
        self.log = DeltaLog(self.store)

    def append(self, *ids: int, app: int | None = None) -> None:
        properties = None if app is None else CommitProperties(app_transactions=[Transaction("app", app)])
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        write_deltalake(self.path, rows, mode="append", configuration=VECTORS, commit_properties=properties)

    def delete(self, state: State, rows: dict[str, list[int]]) -> bool:
        """Commit deletion vectors for files."""
        file, actions, now = VectorFile(), [], int(time.time() * 1000)
        for data in state.files.values():
            if data.path in rows:
                before = [] if data.vector is None else read_vector(data.vector, self.read).rows.tolist()
                vector = file.add(np.array(sorted({*before, *rows[data.path]}), np.uint64))
                actions += data.added(vector, now, pq.read_metadata(f"{self.path}/{data.path}").num_rows)
        obstore.put(self.store, file.path, file.content)
        transaction: Action = {"txn": {"appId": "own", "version": state.version, "lastUpdated": now}}
        return self.log.commit(state.version + 1, [{"commitInfo": {"operation": "MERGE"}}, *actions, transaction])

    def read(self, path: str, offset: int, size: int) -> bytes:
        return bytes(obstore.get_range(self.store, path, start=offset, length=size))

    def ids(self) -> list[int]:
        """Return the rows as delta-rs reads them."""
        from deltalake import QueryBuilder

        found = pa.table(QueryBuilder().register("t", DeltaTable(self.path)).execute("select id from t").read_all())
        return sorted(found["id"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "table")


def same(table: Table, state: State) -> None:
    """Compare a state with what delta-rs makes of the log."""
    other = DeltaTable(table.path)
    assert state.version == other.version()
    assert sorted(path for path, _ in state.files) == sorted(os.path.basename(uri) for uri in other.file_uris())
    seen: dict[str, Any] = {
        os.path.basename(one["filepath"]): np.flatnonzero(~np.array(one["selection_vector"])).tolist()
        for one in pa.table(other.deletion_vectors().read_all()).to_pylist()
    }
    own = {
        file.path: read_vector(file.vector, table.read).rows.tolist()
        for file in state.files.values()
        if file.vector is not None
    }
    assert own == seen
    for app, version in state.transactions.items():
        assert other.transaction_version(app) == version


def test_states_are_followed(table: Table) -> None:
    assert table.log.state() == NO_TABLE
    table.append(1, 2, 3, 4, app=1)
    first = table.log.state()
    same(table, first)
    table.append(5, 6, app=2)
    second = table.log.state(first)
    same(table, second)
    assert second == table.log.state()
    one = next(path for path, _ in first.files)
    assert table.delete(second, {one: [0]})
    third = table.log.state(second)
    assert table.delete(third, {one: [2]})
    last = table.log.state(third)
    same(table, last)
    assert table.ids() == [2, 4, 5, 6]
    assert table.log.state() == last
    assert last.transactions == {"app": 2, "own": third.version}


def test_a_checkpoint_is_read(table: Table) -> None:
    for number in range(4):
        table.append(2 * number, 2 * number + 1, app=number)
    before = table.log.state()
    table.delete(before, {path: [0] for path, _ in list(before.files)[:2]})
    known = table.log.state()
    DeltaTable(table.path).create_checkpoint()
    for version in range(known.version):
        (Path(table.path) / commit_path(version)).unlink()
    state = table.log.state()
    same(table, state)
    assert set(state.files) == set(known.files)
    assert state.transactions == known.transactions
    for identity, file in state.files.items():
        stats = json.loads(str(file.add["stats"]))
        assert stats["numRecords"] == 2, identity
        assert file.add["partitionValues"] == {}
    table.append(100)
    same(table, table.log.state(state))
    (Path(table.path) / "_delta_log" / "_last_checkpoint").unlink()
    same(table, table.log.state())


def test_only_one_commit_of_a_version_is_written(table: Table) -> None:
    table.append(1)
    state = table.log.state()
    assert table.log.commit(state.version + 1, [{"commitInfo": {}}])
    assert not table.log.commit(state.version + 1, [{"commitInfo": {}}])


def test_files_that_others_rewrite(table: Table) -> None:
    table.append(1, 2, 3)
    table.append(4, 5, 6)
    state = table.log.state()
    table.delete(state, {path: [1] for path, _ in state.files})
    known = table.log.state(state)
    DeltaTable(table.path).optimize.compact()
    after = table.log.state(known)
    same(table, after)
    assert not any(file.vector for file in after.files.values())
    DeltaTable(table.path).delete("id = 1")
    same(table, table.log.state(after))
    assert table.ids() == [3, 4, 6]


def test_a_log_that_was_cleaned_up_is_told(table: Table) -> None:
    for number in range(3):
        table.append(number)
    first = table.log.state()
    table.append(4)
    table.append(5)
    (Path(table.path) / commit_path(first.version + 1)).unlink()
    with pytest.raises(TargetChangedError, match=r"goes on with version 4, but this query knows version 2\. .*again"):
        DeltaLog(table.store).state(first)
    with pytest.raises(TargetDamagedError, match="lacks a version between 0 and 4"):
        table.log.state()


def test_a_log_with_many_files_is_not_listed_each_time(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(1)
    state = table.log.state()
    with monkeypatch.context() as patches:
        patches.delattr(obstore, "list")
        for number in range(3):
            table.append(number)
            table.append(number)
            state = table.log.state(state)
            same(table, state)
            assert table.log.state(state) == state
        assert table.log.commit(state.version + 1, [{"commitInfo": {}}])
        state = table.log.state(state)
        (Path(table.path) / commit_path(state.version)).unlink()
        with pytest.raises(TargetChangedError, match=r"has no version 7 any more"):
            table.log.state(state)
    for version in range(7):
        (Path(table.path) / commit_path(version)).unlink()
    monkeypatch.setattr(log, "_LISTED_EVERY_S", 0.0)
    with pytest.raises(TargetChangedError, match=r"has no version 7 any more"):
        table.log.state(state)


@pytest.mark.parametrize("text", ["{", "[]", '{"add":{"path":5}}', '{"add":5}', '{"txn":{"appId":"a"}}'])
def test_a_damaged_commit_is_refused(table: Table, text: str) -> None:
    table.append(1)
    obstore.put(table.store, commit_path(1), text.encode())
    with pytest.raises(TargetDamagedError, match="Restore the table"):
        table.log.state()
