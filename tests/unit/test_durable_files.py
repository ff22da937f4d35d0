"""What a power cut leaves: only what was synced."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from floodmark.capture.files import open_filesystem, write_atomically, write_durably
from floodmark.capture.segment import SegmentData
from floodmark.capture.store import SegmentStore
from floodmark.connectors.contract.decoding import DeadLetter
from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.schema_history.store import SchemaHistory
from floodmark.connectors.schema_history.files import StateDirFiles
from floodmark.errors import StateDirError
from floodmark.signals.files import new_signal, send
from floodmark.snapshots.reports import Report, ReportBox
from floodmark.spark.stream.dead_letters import keep_dead_letters
from tests.support.options import REQUIRED


class Disk:
    """Knows what of a directory would be there after a power cut.

    A file's content is on the disk as it was at its last sync, and a name as its directory had it at that one's. Names
    lead to inodes, so a file that was synced before it got its name has its content under the new one.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.synced = 0
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._sync = os.fsync

    def fsync(self, file: int) -> None:
        self._sync(file)
        self.synced += 1
        path = Path(f"/proc/self/fd/{file}").resolve()
        inode = os.fstat(file).st_ino
        if path.is_dir():
            found = path.iterdir()
            self._names[inode] = {one.name: (one.stat().st_ino, one.is_dir()) for one in found}
        else:
            self._contents[inode] = path.read_bytes()

    def after_power_cut(self) -> dict[str, bytes | None]:
        """Return the files that are left, by path; None: a name without its content."""
        return dict(self._left(self.root.stat().st_ino, ""))

    def _left(self, inode: int, prefix: str) -> Iterator[tuple[str, bytes | None]]:
        for name, (child, is_directory) in self._names.get(inode, {}).items():
            if is_directory:
                yield from self._left(child, f"{prefix}{name}/")
            else:
                yield f"{prefix}{name}", self._contents.get(child)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    found = Disk(tmp_path)
    monkeypatch.setattr(os, "fsync", found.fsync)
    return found


def same_as_now(disk: Disk) -> None:
    """Check that a power cut now would lose nothing."""
    now = {str(path.relative_to(disk.root)): path.read_bytes() for path in disk.root.rglob("*") if path.is_file()}
    assert now
    assert disk.after_power_cut() == now


def test_a_durable_file_and_its_new_directories(tmp_path: Path, disk: Disk) -> None:
    filesystem, _ = open_filesystem(str(tmp_path))
    path = str(tmp_path / "a" / "b" / "file")
    write_durably(filesystem, path, [b"one", memoryview(b" two")])
    assert disk.after_power_cut() == {"a/b/file": b"one two"}
    write_durably(filesystem, path, [b"three"])
    assert disk.after_power_cut() == {"a/b/file": b"three"}
    same_as_now(disk)


def test_at_each_moment_the_file_is_the_old_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem, _ = open_filesystem(str(tmp_path))
    path = tmp_path / "file"
    write_durably(filesystem, str(path), [b"old"])
    disk = Disk(tmp_path)
    seen: list[bytes | None] = []

    def look(sync: Callable[[int], None]) -> Callable[[int], None]:
        def looking(file: int) -> None:
            seen.append(disk.after_power_cut().get("file"))
            sync(file)
            seen.append(disk.after_power_cut().get("file"))

        return looking

    monkeypatch.setattr(os, "fsync", disk.fsync)
    write_durably(filesystem, str(path), [b"old"])
    monkeypatch.setattr(os, "fsync", look(disk.fsync))
    write_durably(filesystem, str(path), [b"new"])
    assert seen == [b"old", b"old", b"old", b"new"]


def test_what_the_resume_state_needs_is_durable(tmp_path: Path, disk: Disk) -> None:
    history = SchemaHistory(StateDirFiles(str(tmp_path / "state"), "owner"), "prefix")
    history.begin("0-1", Schema({"d": Charset("utf8mb4", "utf8mb4_bin")}))
    same_as_now(disk)
    # Files that a new history takes the place of don't come back.
    history.begin("0-0", Schema())
    history.begin("0-2", Schema())
    (left,) = [name for name in disk.after_power_cut() if "0-2" in name]
    assert left.endswith("0-2.image")


@pytest.mark.parametrize("kind", ["signal", "dead letter", "report of the log"])
def test_what_is_nowhere_else_is_durable(tmp_path: Path, disk: Disk, kind: str) -> None:
    options = load_options({**REQUIRED, "state.dir": str(tmp_path / "state")})
    if kind == "signal":
        send(options, options.owner, new_signal("pause-snapshot"))
    elif kind == "dead letter":
        keep_dead_letters(options.state_dir, "owner", "d1", [DeadLetter("0", "public.t", "c", "wrong", b"row")])
    else:
        ReportBox(options.state_dir, "owner").write("b1", [Report("log", (), "failed")])
    same_as_now(disk)


def test_what_can_be_read_again_is_not_synced(tmp_path: Path, disk: Disk) -> None:
    ReportBox(str(tmp_path), "owner").write("b1", [Report("incremental", (1,), "complete")])
    assert disk.synced == 0


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    filesystem, _ = open_filesystem(str(tmp_path))
    (tmp_path / "name").mkdir()
    (tmp_path / "name" / "inside").write_text("")
    for write in (write_atomically, write_durably):
        with pytest.raises(OSError, match="name"):
            write(filesystem, str(tmp_path / "name"), [b"text"])
        assert [path.name for path in tmp_path.iterdir()] == ["name"]
    shutil.rmtree(tmp_path / "name")


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond a few bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("kind", ["segment", "history", "report", "report of the log", "signal", "dead letter"])
def test_a_full_disk_is_one_error_and_leaves_what_was_there(tmp_path: Path, kind: str) -> None:
    options = load_options({**REQUIRED, "state.dir": str(tmp_path)})
    store = SegmentStore(str(tmp_path), "owner", "run")
    store.create()
    history = SchemaHistory(StateDirFiles(str(tmp_path), "owner"), "prefix")
    schema = Schema({"d": Charset("utf8mb4", "utf8mb4_bin")})
    history.begin("0-1", schema)
    segment = SegmentData(np.zeros(100, np.uint8), np.zeros(1, np.uint32))
    letters = [DeadLetter("0", "public.t", "c", "wrong", b"row")]
    write: dict[str, Callable[[], None]] = {
        "segment": lambda: store.write("1.seg", segment),
        "history": lambda: history.begin("0-1", Schema({"e": Charset("latin1", "latin1_bin")})),
        "report": lambda: ReportBox(str(tmp_path), "owner").write("b1", [Report("lane", (1,), "complete")]),
        "report of the log": lambda: ReportBox(str(tmp_path), "owner").write("b1", [Report("log", (), "failed")]),
        "signal": lambda: send(options, options.owner, new_signal("pause-snapshot")),
        "dead letter": lambda: keep_dead_letters(str(tmp_path), "owner", "d1", letters),
    }
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    with full_disk(), pytest.raises(StateDirError, match=r"state\.dir.*space"):
        write[kind]()
    left = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert [path for path in left if path.suffix != ".seg"] == before
    assert SchemaHistory(StateDirFiles(str(tmp_path), "owner"), "prefix").load("0-1", "0-1") == schema
    write[kind]()
    if kind == "segment":
        assert len(store.read("1.seg").payload) == 100
