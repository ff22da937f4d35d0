"""A Delta table whose files can't be written, as on a full disk: nothing is lost, and the next try succeeds."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import obstore
import pytest
from deltalake import DeltaTable
from obstore.exceptions import BaseError

from tests.integration.test_delta_writer import Mirror, in_order
from tests.support.merging import Target, merge
from tests.unit.test_last_changes import Source

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
