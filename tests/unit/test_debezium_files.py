"""Debezium's files are copied before they are replaced, and Debezium can read them afterwards."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from floodmark.debezium.file_store import FileOffsets
from floodmark.debezium.history import FileHistory


@pytest.mark.parametrize("kind", ["offsets", "history"])
def test_a_replaced_file_keeps_its_mode(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write(stamp: str) -> str:
        if kind == "offsets":
            return FileOffsets(path, stamp).write(b"key", stamp.encode())
        return FileHistory(path, stamp).write([{"source": {}, "position": {"stamp": stamp}}])

    assert write("1") == ""
    path.chmod(0o664)
    before = path.read_bytes()
    copy = Path(write("2"))
    assert copy.name == "file.backup-2"
    assert copy.read_bytes() == before != path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
