"""A Delta table whose files can't be written, as on a full disk: nothing is lost, and the next try succeeds."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from obstore.exceptions import AlreadyExistsError, BaseError

from tests.support.delta_mirror import Mirror, in_order
from tests.support.merging import Target, merge
from tests.unit.test_last_changes import KINDS, Source

FEW_BYTES = 16


@pytest.mark.parametrize("vectors", ["on", "off"])
@pytest.mark.parametrize("place", range(3))
def test_a_file_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: str, place: int) -> None:
    key = ("id",)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, **{"deletion.vectors": vectors})
    expected: Target = {}
    for number in range(20):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told)
    merge(expected, source.told)
    before, first = mirror.rows(), len(source.told)
    for number in range(0, 20, 3):
        source.change("update" if number % 2 else "delete", number, 0, 7, True)
    told = source.told[first:]
    put, limits, puts = obstore.put, resource.getrlimit(resource.RLIMIT_FSIZE), 0

    def limited(*args: Any, **options: Any) -> Any:
        nonlocal puts
        puts += 1
        if puts == place + 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (FEW_BYTES, limits[1]))
        try:
            return put(*args, **options)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    monkeypatch.setattr(obstore, "put", limited)
    with pytest.raises((BaseError, OSError), match="File too large"):
        mirror.write(2, told)
    monkeypatch.undo()
    assert mirror.rows() == before
    mirror.start()
    assert mirror.write(2, told)
    merge(expected, told)
    assert mirror.rows() == in_order(expected.values())
    assert DeltaTable(mirror.path).version() == 2


@pytest.mark.parametrize("operation", ["CREATE TABLE", "MERGE", "OPTIMIZE", "CHANGE COLUMN"])
@pytest.mark.parametrize("told_as", [AlreadyExistsError, OSError])
def test_a_commit_that_was_written_is_told_as_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, told_as: type[Exception]
) -> None:
    """A client that gets no answer sends its request again, and is told then that the file exists."""
    monkeypatch.setitem(KINDS, ("id",), pa.struct([("id", pa.int32()), ("v", pa.int32()), ("big", pa.string())]))
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **{"compact.files": "2"})
    expected: Target = {}
    put, lost = obstore.put, 0

    def without_answer(store: Any, path: str, content: bytes, **options: Any) -> Any:
        nonlocal lost
        found = put(store, path, content, **options)
        if path.startswith("_delta_log/") and f'"operation":"{operation}"'.encode() in content and not lost:
            lost += 1
            raise told_as("no answer")
        return found

    monkeypatch.setattr(obstore, "put", without_answer)
    for batch in range(5):
        first = len(source.told)
        if batch == 3:
            wider = pa.struct([("id", pa.int64()), ("v", pa.int64()), ("big", pa.string())])
            monkeypatch.setitem(KINDS, ("id",), wider)
        for number in range(6):
            source.change("insert", batch * 10 + number, 0, number, False)
            source.change("update", batch * 10 - 10 + number, 0, batch, True)
        told = source.told[first:]
        try:
            mirror.write(batch, told)
        except (BaseError, OSError):
            # Spark delivers the micro-batch again, to another process.
            mirror.start()
            mirror.write(batch, told)
        merge(expected, told)
    assert lost == 1
    monkeypatch.setattr(obstore, "put", put)
    assert mirror.rows() == in_order(expected.values())
    transactions = [one for one in DeltaTable(mirror.path).history() if one["operation"] == "MERGE"]
    assert len(transactions) == 5
