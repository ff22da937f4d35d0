"""Files that a target doesn't need any more are removed, and no others."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

from floodmark.errors import ConfigError
from floodmark.sinks.delta import upkeep
from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.options import MirrorOptions
from tests.support.delta_mirror import WHAT, Mirror, in_order
from tests.support.merging import Target, merge
from tests.support.readers import read_by_duckdb
from tests.unit.test_last_changes import Source

KEY = ("id",)
MINUTE = 60.0


class Clock:
    """Lets time pass for what is written in a folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._known = folder, set(folder.rglob("*"))
        # delta-rs, which has a clock of its own, forgets in checkpoints what was removed a week ago.
        self.now = time.time() - 100_000
        monkeypatch.setattr(time, "time", lambda: self.now)

    def passes(self, minutes: float) -> None:
        """Date the files that are new, and go on."""
        for path in set(self._folder.rglob("*")) - self._known:
            os.utime(path, (self.now, self.now))
            self._known.add(path)
        self.now += minutes * MINUTE


@pytest.mark.parametrize(("vectors", "compact"), [("on", "0"), ("on", "3"), ("off", "3")])
def test_a_table_is_vacuumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: str, compact: str) -> None:
    monkeypatch.setattr(upkeep, "_CHECKPOINT_EVERY", 7)
    chance = random.Random(compact + vectors)
    options = {"vacuum.hours": "2", "compact.files": compact, "deletion.vectors": vectors}
    source, mirror = Source(KEY), Mirror(tmp_path / "t", KEY, **options)
    folder = tmp_path / "t"
    foreign = [folder / "_floodmark" / "set_aside.json", folder / "notes.txt", folder / ".hidden" / "a.parquet"]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
        os.utime(path, (0, 0))
    orphan = folder / "part-orphan.parquet"
    clock = Clock(folder, monkeypatch)
    orphan.write_bytes(b"")
    expected: Target = {}
    seen: list[tuple[float, int, list[dict[str, Any]]]] = []
    counts = []
    for batch in range(90):
        first = len(source.told)
        for _ in range(8):
            source.change(chance.choice(WHAT), chance.randrange(60), chance.randrange(60), batch, chance.random() < 0.5)
        merge(expected, source.told[first:])
        assert mirror.write(batch, source.told[first:], tasks=2)
        seen.append((clock.now, DeltaTable(mirror.path).version(), in_order(expected.values())))
        clock.passes(10)
        if chance.random() < 0.2:
            mirror.start()
        counts.append(len(list(folder.glob("*.parquet"))) + len(list(folder.glob("*.bin"))))
    assert not orphan.exists()
    assert all(path.exists() for path in foreign)
    assert max(counts[60:]) <= max(counts[30:60]) * 1.2
    for at, version, rows in seen:
        if at >= clock.now - 120 * MINUTE:
            assert in_order(pl.read_delta(mirror.path, version=version).drop(POSITION).to_dicts()) == rows
    assert mirror.rows() == in_order(expected.values())
    assert in_order(read_by_duckdb(folder).drop_columns([POSITION]).to_pylist()) == in_order(expected.values())


def test_young_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may belong to a commit that is about to be written."""
    monkeypatch.setattr(upkeep, "_CHECKPOINT_EVERY", 1)
    source, mirror = Source(KEY), Mirror(tmp_path / "t", KEY, **{"vacuum.hours": "1"})
    clock = Clock(tmp_path / "t", monkeypatch)
    young, old = tmp_path / "t" / "part-1.parquet", tmp_path / "t" / "deletion_vector_1.bin"
    old.write_bytes(b"")
    clock.passes(30)
    young.write_bytes(b"")
    clock.passes(31)
    source.change("insert", 1, 0, 1, False)
    assert mirror.write(1, source.told)
    assert (young.exists(), old.exists()) == (True, False)


@pytest.mark.parametrize("hours", ["-1", "169", "0.5"])
def test_hours_that_are_not_allowed(hours: str) -> None:
    with pytest.raises(ConfigError, match=r"vacuum\.hours"):
        MirrorOptions.parse({"vacuum.hours": hours})
