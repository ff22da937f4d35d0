"""Who may read what is written below ``state.dir``."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from floodmark.capture.files import open_filesystem
from floodmark.capture.segment import Segment, SegmentData
from floodmark.capture.store import SegmentStore
from floodmark.cli.checks.environment import _writable
from floodmark.connectors.contract.decoding import DeadLetter
from floodmark.connectors.load import load_options
from floodmark.connectors.schema_history.files import StateDirFiles
from floodmark.signals.files import new_signal, send
from floodmark.snapshots.reports import Report, ReportBox
from floodmark.spark.stream.dead_letters import keep_dead_letters
from tests.support.options import REQUIRED


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    """Return the modes of a directory and of all below it, by their paths."""
    found = {".": directory, **{str(path.relative_to(directory)): path for path in directory.rglob("*")}}
    return {name: stat.S_IMODE(path.lstat().st_mode) for name, path in found.items()}


def current_umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


def assert_private(directory: Path) -> None:
    for name, mode in modes(directory).items():
        assert mode == (0o700 if (directory / name).is_dir() else 0o600), name


@pytest.mark.parametrize("by_uri", [False, True])
def test_all_that_is_written_is_private(tmp_path: Path, umask: int, by_uri: bool) -> None:
    directory = tmp_path / "deep" / "state"
    uri = directory.as_uri() if by_uri else str(directory)
    options = load_options({**REQUIRED, "state.dir": uri})
    store = SegmentStore(uri, options.owner, "run")
    store.create()
    store.write("s1", SegmentData(np.zeros(5, np.uint8), np.zeros(1, np.uint32)))
    ReportBox(uri, options.owner).write("b1", [Report("log", (), "failed")])
    keep_dead_letters(uri, options.owner, "d1", [DeadLetter("0", "public.t", "c", "wrong", b"row")])
    StateDirFiles(uri, options.owner).write("h1", [b"line"])
    send(options, options.owner, new_signal("pause-snapshot"))
    assert len([path for path in directory.rglob("*") if path.is_file()]) == 6
    assert_private(directory)
    assert store.exists(Segment("s1", "0", "1", 1, 5))
    assert store.read("s1").payload.tolist() == [0] * 5


def test_check_makes_the_state_directory_private_and_no_other(tmp_path: Path) -> None:
    for check in ("state.dir", "checkpoint"):
        assert _writable(check, str(tmp_path / check)).status == "ok"
    found = modes(tmp_path)
    assert (found["state.dir"], found["checkpoint"]) == (0o700, 0o777 & ~current_umask())


def test_what_an_earlier_version_made_is_made_private_and_what_is_not_ours_is_left(tmp_path: Path) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    for path in (state, state / "owner", state / "owner" / "signals", elsewhere):
        path.mkdir()
        path.chmod(0o755)
    for path in (state / "owner" / "signals" / "1.json", state / "notes.txt", elsewhere / "notes.txt"):
        path.write_text("text")
        path.chmod(0o644)
    (state / "owner" / "link").symlink_to(elsewhere)
    (state / "owner" / "signals" / "link").symlink_to(elsewhere / "notes.txt")
    SegmentStore(str(state), "owner", "run").create()
    found = modes(state)
    assert (found["owner"], found["owner/signals"], found["owner/signals/1.json"]) == (0o700, 0o700, 0o600)
    assert found["owner/run"] == 0o700
    # The directory was there before, and holds what isn't Floodmark's.
    assert (found["."], found["notes.txt"]) == (0o755, 0o644)
    assert modes(elsewhere) == {".": 0o755, "notes.txt": 0o644}


def test_a_file_that_another_version_began_is_private_when_it_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("a longer text from before")
    path.chmod(0o644)
    filesystem, _ = open_filesystem(str(tmp_path))
    with filesystem.open_output_stream(str(path)) as out:
        out.write(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
