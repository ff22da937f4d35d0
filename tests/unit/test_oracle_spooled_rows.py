"""How rows of open transactions of Oracle are kept in files."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import fs

from floodmark.capture.mapped_files import map_file
from floodmark.capture.spool_files import SpoolFiles
from floodmark.connectors.oracle.mining.spooling import spooled_rows
from floodmark.connectors.oracle.mining.spooling.spooled_rows import SpooledRows
from floodmark.connectors.oracle.mining.transactions import MemoryStore
from floodmark.errors import StateDirError

SCHEMA = pa.schema([("SCN", pa.int64()), ("SQL_REDO", pa.string()), ("INFO", pa.string())])
ROW_BYTES = 100
XIDS = [f"{number:016x}" for number in range(1, 6)]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), st.lists(st.integers(0, 4), min_size=1, max_size=12)),
        st.tuples(st.just("drop"), st.integers(0, 4)),
        st.tuples(st.just("read"), st.lists(st.integers(0, 4), max_size=5, unique=True)),
        st.tuples(st.just("tidy"), st.none()),
    ),
    max_size=30,
)


def rows(numbers: list[int], first: int) -> tuple[pa.Table, list[str], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return rows of transactions, sorted by them but in no order of their numbers, as ``keep`` takes them."""
    owners = sorted(numbers, key=lambda number: (number * 3) % 5)
    texts = [None if (first + place) % 7 == 0 else "é" * ((first + place) % 50) for place in range(len(owners))]
    table = pa.table([range(first, first + len(owners)), texts, [None] * len(owners)], schema=SCHEMA)
    names = list(dict.fromkeys(owners))
    bounds = np.append(0, np.cumsum([owners.count(name) for name in names]))
    return table, [XIDS[name] for name in names], bounds


def content(store: SpooledRows | MemoryStore, xid: str) -> list[dict[str, object]]:
    return [row for piece in store.pieces(xid) for row in piece.to_pylist()]


@settings(deadline=None, max_examples=150)
@given(STEPS, st.sampled_from([0, 30_000, 1 << 20]), st.sampled_from([50, 1 << 20]))
def test_rows_are_those_that_were_added(
    steps: list[tuple[str, list[int] | int | None]], memory_bytes: int, read_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as directory:
        patch.setattr(spooled_rows, "_READ_BYTES", read_bytes)
        patch.setattr(spooled_rows, "_MOST_MAPPED", 2)
        patch.setattr(spooled_rows, "_MOST_SMALL", 2)
        store, plain = SpooledRows(SpoolFiles(directory, "owner"), SCHEMA, memory_bytes), MemoryStore()
        count = 0
        for step, what in steps:
            if step == "keep":
                assert isinstance(what, list)
                for one in (store, plain):
                    one.keep(*rows(what, count))
                count += len(what)
            elif step == "drop":
                assert isinstance(what, int)
                for one in (store, plain):
                    one.drop(XIDS[what])
            elif step == "read":
                assert isinstance(what, list)
                store.expect([XIDS[number] for number in what])
                for number in what:
                    assert content(store, XIDS[number]) == content(plain, XIDS[number])
            else:
                store.tidy()
        for xid in XIDS:
            assert content(store, xid) == content(plain, xid)
            store.drop(xid)
        store.tidy()
        assert store.held_bytes == 0
        assert not list(Path(directory).rglob("*.rows"))


def filled(directory: str, fetches: int = 20) -> SpooledRows:
    """Return a store with two transactions, each of which has ten rows in each of so many files."""
    store = SpooledRows(SpoolFiles(directory, "owner"), SCHEMA, memory_bytes=0)
    for fetch in range(fetches):
        table = pa.table([range(20), [str(fetch) * ROW_BYTES] * 20, [None] * 20], schema=SCHEMA)
        store.keep(table, XIDS[:2], np.array([0, 10, 20]))
    return store


def files_in(directory: str) -> list[Path]:
    return list(Path(directory).rglob("*.rows"))


def test_files_take_no_more_than_twice_what_is_needed(tmp_path: Path) -> None:
    store = filled(str(tmp_path))
    before = sum(path.stat().st_size for path in files_in(str(tmp_path)))
    store.drop(XIDS[0])
    store.tidy()
    after = sum(path.stat().st_size for path in files_in(str(tmp_path)))
    assert after < 0.7 * before
    assert store.held_bytes == after
    assert len(content(store, XIDS[1])) == 200


def test_small_files_that_follow_each_other_become_one(tmp_path: Path) -> None:
    store = filled(str(tmp_path))
    assert len(files_in(str(tmp_path))) == 20
    store._memory_bytes = 1 << 20
    store.drop(XIDS[0])
    store.tidy()
    assert len(files_in(str(tmp_path))) == 1
    assert [row["SQL_REDO"] for row in content(store, XIDS[1])] == [str(n // 10) * ROW_BYTES for n in range(200)]


def test_what_an_earlier_process_left_is_removed(tmp_path: Path) -> None:
    filled(str(tmp_path))
    store = SpooledRows(SpoolFiles(str(tmp_path), "owner"), SCHEMA)
    assert files_in(str(tmp_path)) == []
    assert store.held_bytes == 0
    assert store.pieces(XIDS[0]) == []


def test_a_damaged_or_missing_file_is_an_error(tmp_path: Path) -> None:
    store = filled(str(tmp_path), fetches=1)
    (path,) = files_in(str(tmp_path))
    whole = path.read_bytes()
    path.write_bytes(whole[:-200] + bytes([whole[-200] ^ 1]) + whole[-199:])
    with pytest.raises(StateDirError, match="checksum is wrong"):
        content(store, XIDS[0])
    path.unlink()
    with pytest.raises(StateDirError, match=path.name):
        content(store, XIDS[0])


def test_a_file_of_another_size_is_an_error_even_when_it_was_read_before(tmp_path: Path) -> None:
    store = filled(str(tmp_path), fetches=1)
    assert len(content(store, XIDS[0])) == 10
    (path,) = files_in(str(tmp_path))
    path.write_bytes(path.read_bytes() + b"\0")
    store._mapped.clear()
    with pytest.raises(StateDirError, match="checksum is wrong"):
        content(store, XIDS[1])


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "owner").write_text("not a directory")
    store = SpooledRows(SpoolFiles(str(tmp_path), "owner"), SCHEMA, memory_bytes=0)
    table, xids, bounds = rows([0, 1], 0)
    with pytest.raises(StateDirError, match="undecided transactions cannot be written"):
        store.keep(table, xids, bounds)


@pytest.mark.parametrize("expected", [b"content", b""])
def test_a_file_of_any_filesystem_is_read(tmp_path: Path, expected: bytes) -> None:
    (tmp_path / "a").write_bytes(expected)
    local = fs.LocalFileSystem()
    for filesystem, path in ((local, f"{tmp_path}/a"), (fs.SubTreeFileSystem(str(tmp_path), local), "a")):
        found = map_file(filesystem, path)
        found.release()
        assert found.content.to_pybytes() == expected
