"""What a mirror remembers of its micro-batches: never more than its tables have, whatever is set back or lost."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from floodmark.connectors.load import load_options
from floodmark.sinks.state.written_batches import WrittenBatches
from tests.support.options import REQUIRED

TABLES = ("s.a", "s.b", "s.c")


def begun(folder: Path, batch: int) -> WrittenBatches:
    made = WrittenBatches(load_options({**REQUIRED, "state.dir": str(folder)}), "query")
    made.begin(batch)
    return made


def test_what_is_remembered(tmp_path: Path) -> None:
    first = begun(tmp_path, 0)
    assert first.last("s.a") is None
    for batch in (0, 1, 2, 3):
        first.begin(batch)
        if batch != 1:
            first.add("s.a", batch)
        assert first.last("s.a") == (0 if batch == 1 else batch)
    assert begun(tmp_path, 4).last("s.a") == 3
    # The last micro-batch comes again, which may as well be another one after an older checkpoint.
    assert begun(tmp_path, 4).last("s.a") == 3
    again = begun(tmp_path, 5)
    again.add("s.a", 5)
    assert begun(tmp_path, 5).last("s.a") == 3
    again = begun(tmp_path, 5)
    again.add("s.a", 5)
    assert begun(tmp_path, 6).last("s.a") == 5
    # A table that doesn't get the last micro-batch again may not have it, whatever comes next.
    again.begin(6)
    again.add("s.b", 6)
    assert begun(tmp_path, 6).last("s.b") is None
    assert begun(tmp_path, 7).last("s.b") is None
    assert begun(tmp_path, 8).last("s.a") == 5
    again.forget("s.a")
    assert begun(tmp_path, 9).last("s.a") is None


@pytest.mark.parametrize("batch", [0, 1, 2, 5, 9])
def test_a_query_that_goes_on_elsewhere(tmp_path: Path, batch: int) -> None:
    first = begun(tmp_path, 0)
    for number in range(4):
        first.begin(number)
        first.add("s.a", number)
    for other in (batch, batch + 1):
        assert begun(tmp_path, other).last("s.a") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'[["a", 1]]', b"{}", b"null", b"\xff", None])
def test_files_that_are_damaged(tmp_path: Path, content: bytes | None) -> None:
    begun(tmp_path, 0).add("s.a", 0)
    for path in tmp_path.rglob("written/*"):
        if content is None:
            stored = bytearray(path.read_bytes())
            stored[stored.rindex(b", 0]") + 2] ^= 1
            path.write_bytes(stored)
        else:
            path.write_bytes(content)
    made = begun(tmp_path, 1)
    assert made.last("s.a") is None
    made.add("s.a", 1)
    assert begun(tmp_path, 2).last("s.a") == 1


@dataclass(frozen=True)
class Backup:
    """A checkpoint and tables of the same time; after those that it comes from."""

    batch: int
    tables: Mapping[str, int]
    earlier: tuple[Backup, ...] = ()


@pytest.mark.parametrize("seed", range(40))
def test_it_is_never_more_than_a_table_has(tmp_path: Path, seed: int) -> None:
    """A checkpoint is set back with the tables; ``state.dir`` isn't, but may be lost, in part or as a whole."""
    chance = random.Random(seed)
    now = Backup(0, {})
    backups, useful = [now], 0
    for _ in range(60):
        what = chance.random()
        if what < 0.15:
            before, now = now, chance.choice(backups)
            if now not in (before, *before.earlier) and abs(now.batch - before.batch) < 2:
                # Another line of micro-batches that goes on with just this number can't be told from the last one.
                now = Backup(now.batch + 1000, now.tables, now.earlier)
        elif what < 0.2:
            shutil.rmtree(tmp_path)
            tmp_path.mkdir()
        elif what < 0.25:
            chance.choice([*tmp_path.rglob("written/*"), tmp_path / "none"]).unlink(missing_ok=True)
        run = WrittenBatches(load_options({**REQUIRED, "state.dir": str(tmp_path)}), "query")
        for _ in range(chance.randrange(5)):
            batch, tables = now.batch, dict(now.tables)
            run.begin(batch)
            for table in TABLES:
                known = run.last(table)
                useful += known is not None and known == tables.get(table)
                assert known is None or known <= tables.get(table, -1), (table, batch)
                if chance.random() < 0.4:
                    tables[table] = batch
                    # The driver may die before it is remembered.
                    if chance.random() < 0.9:
                        run.add(table, batch)
            # The driver may die before Spark's commit, too.
            dies = chance.random() < 0.1
            now = Backup(batch if dies else batch + 1, tables, (*now.earlier, now))
            backups.append(now)
            if dies:
                break
    assert useful > 20
