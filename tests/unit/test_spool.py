"""The transaction spool: what is undecided is kept, whatever happens to the process and to its files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.capture.seals import sealed
from floodmark.capture.spool import Piece, TransactionSpool, Undecided
from floodmark.capture.spool_files import SpoolFiles
from floodmark.errors import StateDirError

NAMES = tuple(b"abcdef"[n : n + 1] for n in range(6))


def piece(text: bytes, count: int = 1) -> Piece:
    payload = np.frombuffer(text * count, np.uint8)
    return Piece(payload, (np.arange(count) * len(text)).astype(np.uint32), form=count % 2)


def content(spool: TransactionSpool, name: bytes) -> bytes | None:
    found = spool.get(name)
    return None if found is None else b"".join(part.payload.tobytes() for part in spool.pieces(found))


def files_in(state: Path) -> list[Path]:
    return sorted(path for path in state.rglob("*") if path.is_file())


def prepare(spool: TransactionSpool, name: bytes, position: str, *texts: bytes) -> None:
    for text in texts:
        spool.append(b"open", position, f"token {position}", piece(text, 3))
    spool.complete(b"open", name, name.decode())


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(1, 60))
def test_any_interleaving_with_crashes(data: st.DataObject, memory: int) -> None:
    # Time stands still, since an index that took long to write isn't written again at once.
    with tempfile.TemporaryDirectory() as directory, patch("floodmark.capture.spool.time.monotonic", lambda: 0.0):
        spool = TransactionSpool(SpoolFiles(directory, "owner"), memory)
        held: dict[bytes, tuple[bytes, str]] = {}
        saved: list[tuple[str, Undecided | None, dict[bytes, tuple[bytes, str]]]] = []
        spool.clear("000")
        number = count = 0
        for _ in range(data.draw(st.integers(1, 25))):
            number += 1
            position = f"{number:03d}"
            for name in data.draw(st.lists(st.sampled_from(NAMES), max_size=4)):
                if name in held:
                    assert content(spool, name) == held.pop(name)[0]
                    assert spool.drop(name)
                else:
                    texts = data.draw(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=3))
                    count += 1
                    prepare(spool, name, f"{position}-{count:03d}", *texts)
                    held[name] = b"".join(text * 3 for text in texts), f"{position}-{count:03d}"
            if data.draw(st.booleans()):
                # The end of this one never comes.
                spool.append(b"open", position, "", piece(b"x"))
                spool.abandon()
            saved.append((position, spool.save(position), dict(held)))
            if data.draw(st.integers(0, 3)) == 0:
                first = data.draw(st.integers(0, len(saved) - 1))
                spool.forget(saved[first][0])
                del saved[:first]
            if data.draw(st.integers(0, 3)) == 0:
                # A crash; the query goes on from one of the positions that aren't done, and from no earlier one again.
                index = data.draw(st.integers(0, len(saved) - 1))
                saved = saved[index : index + 1]
                position, undecided, before = saved[0]
                number, held = int(position), dict(before)
                spool = TransactionSpool(SpoolFiles(directory, "owner"), memory)
                if undecided is None:
                    spool.clear(position)
                else:
                    assert undecided.at == position
                    assert undecided.begin == min(begin for _, begin in held.values())
                    assert spool.restore(undecided.index, undecided.at)
            assert {name: content(spool, name) for name in held} == {name: text for name, (text, _) in held.items()}
            assert all(content(spool, name) is None for name in NAMES if name not in held)
        for name in list(held):
            spool.drop(name)
        spool.save("900")
        spool.forget("901")
        spool.save("902")
        assert not files_in(Path(directory))
        assert spool.held_bytes == 0


def test_small_transactions_share_a_file(tmp_path: Path) -> None:
    spool = TransactionSpool(SpoolFiles(str(tmp_path), "owner"))
    spool.clear("0")
    for number in range(200):
        prepare(spool, f"x{number}".encode(), "1", b"row")
    undecided = spool.save("2")
    assert undecided is not None
    assert (undecided.begin, undecided.at) == ("1", "2")
    assert len(files_in(tmp_path)) == 2
    # Nothing changes, so nothing is written; the index holds further on.
    again = spool.save("3")
    assert again is not None
    assert (again.index, again.at) == (undecided.index, "3")
    assert spool.held_bytes == sum(path.stat().st_size for path in files_in(tmp_path))


def test_a_large_transaction_is_not_in_memory(tmp_path: Path) -> None:
    spool = TransactionSpool(SpoolFiles(str(tmp_path), "owner"), memory_bytes=1000)
    spool.clear("0")
    for _ in range(100):
        spool.append(b"open", "1", "", piece(b"0123456789", 30))
        assert spool._in_memory <= 1000
    spool.complete(b"open", b"large", "large")
    assert content(spool, b"large") == b"0123456789" * 3000
    spool.drop(b"large")
    spool.save("2")
    spool.forget("2")
    spool.save("3")
    assert not files_in(tmp_path)


@pytest.mark.parametrize("which", [".records", ".index"])
def test_damage_is_found_at_each_byte(tmp_path: Path, which: str) -> None:
    spool = TransactionSpool(SpoolFiles(str(tmp_path), "owner"))
    spool.clear("0")
    prepare(spool, b"a", "1", b"first", b"second")
    prepare(spool, b"b", "1", b"third")
    undecided = spool.save("2")
    assert undecided is not None
    victim = next(path for path in files_in(tmp_path) if path.suffix == which)
    right = victim.read_bytes()
    for at in range(len(right)):
        wrong = bytearray(right)
        wrong[at] ^= 1 << at % 8
        victim.write_bytes(wrong)
        assert not TransactionSpool(SpoolFiles(str(tmp_path), "owner")).restore(undecided.index, "2")
        victim.write_bytes(right[:at])
        assert not TransactionSpool(SpoolFiles(str(tmp_path), "owner")).restore(undecided.index, "2")
    victim.write_bytes(right)
    restored = TransactionSpool(SpoolFiles(str(tmp_path), "owner"))
    assert restored.restore(undecided.index, "2")
    assert content(restored, b"a") == b"firstfirstfirstsecondsecondsecond"
    victim.unlink()
    assert not TransactionSpool(SpoolFiles(str(tmp_path), "owner")).restore(undecided.index, "2")


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "owner").write_text("a file stands where the directory should be")
    spool = TransactionSpool(SpoolFiles(str(tmp_path), "owner"))
    prepare(spool, b"a", "1", b"row")
    with pytest.raises(StateDirError, match="undecided transactions"):
        spool.save("2")


def test_without_files_it_is_kept_in_memory() -> None:
    spool = TransactionSpool()
    spool.clear("0")
    prepare(spool, b"a", "1", b"row")
    assert spool.save("2") == Undecided("1", "token 1", oldest="a")
    assert not spool.restore("", "2")


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{",
        '{"files": [], "tokens": []}',
        '{"files": [], "tokens": ["t"], "transactions": [["61", "1", 1, "", []]]}',
        '{"files": [], "tokens": ["t"], "transactions": [["61", "1", 0, "", [[0, 0, 5, 1, 0, 0, 0]]]]}',
        '{"files": ["f"], "tokens": ["t"], "transactions": [["61", "1", 0, "", [[0, 0, 5]]]]}',
        '{"files": [], "tokens": ["t"], "transactions": [["no hex", "1", 0, "", []]]}',
        '{"files": [7], "tokens": ["t"], "transactions": []}',
    ],
)
def test_an_index_that_holds_something_else_is_not_used(tmp_path: Path, content: str) -> None:
    files = SpoolFiles(str(tmp_path), "owner")
    name = files.write_index([])
    (path,) = files_in(tmp_path)
    path.write_bytes(sealed(name, content.encode()))
    assert files.read_index(name) is None
