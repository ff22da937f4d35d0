"""Files that are rewritten while micro-batches go on."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from deltalake import DeltaTable

from floodmark.sinks.delta import compaction, upkeep
from floodmark.sinks.delta.compaction import Rewritten
from floodmark.sinks.delta.upkeep import AtOnce
from tests.integration import test_histories
from tests.support.delta_mirror import WHAT, Mirror, in_order
from tests.support.merging import Target, merge
from tests.support.readers import read_by_duckdb
from tests.unit.test_history import follow, timed
from tests.unit.test_last_changes import KINDS, Row, Source

COMPACT = {"compact.files": "2"}


class OneAtATime(AtOnce):
    """Does what is submitted, but nothing while that goes on."""

    def __init__(self) -> None:
        self.busy = False

    def submit(self, fn: Callable[..., Any], /, *args: object, **kwargs: object) -> Future[Any]:
        if self.busy:
            done: Future[Any] = Future()
            done.set_result(None)
            return done
        self.busy = True
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            self.busy = False


def beside(pool: Executor, mirror: Mirror) -> Mirror:
    """Let files be rewritten in a pool."""
    mirror.pool = pool
    mirror.start()
    return mirror


class Stream:
    """Writes micro-batches of random changes."""

    def __init__(self, folder: Path, key: tuple[str, ...], seed: str, **options: str) -> None:
        self.chance = random.Random(seed)
        self.source = Source(key)
        self.mirror = beside(OneAtATime(), Mirror(folder, key, **options))
        self.batch = 0
        self.told: list[Row] = []

    def write(self) -> None:
        chance, first = self.chance, len(self.source.told)
        for _ in range(chance.randrange(1, 20)):
            what = chance.choice(WHAT if chance.random() < 0.98 else ["truncate"])
            keeps = chance.random() < 0.5
            self.source.change(what, chance.randrange(30), chance.randrange(30), chance.randrange(3), keeps)
        told = timed(self.source.told[first:])
        self.told += told
        self.batch += 1
        assert self.mirror.write(self.batch, told, chance.choice([1, 3]))


@pytest.fixture
def rewritings(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """Return what is called each time after files were rewritten, and before that is committed."""
    called: list[Callable[[], object]] = []

    def rewritten(*args: Any) -> Rewritten:
        made = real(*args)
        for one in called:
            one()
        return made

    real = compaction.rewritten
    monkeypatch.setattr(upkeep, "rewritten", rewritten)
    return called


@pytest.mark.parametrize("key", list(KINDS))
@pytest.mark.parametrize("options", [{}, {"partition.by": ".*:v"}, {"history": "on"}])
@pytest.mark.parametrize("seed", range(3))
def test_micro_batches_between_rewriting_and_commit(
    tmp_path: Path, rewritings: list[Callable[[], object]], key: tuple[str, ...], options: dict[str, str], seed: int
) -> None:
    stream = Stream(tmp_path / "t", key, f"{key}{seed}", **{"compact.files": "2", **options})

    def meanwhile() -> None:
        for _ in range(stream.chance.randrange(3)):
            stream.write()
        if stream.chance.random() < 0.2:
            DeltaTable(stream.mirror.path).optimize.compact()

    rewritings.append(meanwhile)
    versions: list[Row] = []
    rows: Target = {}
    for _ in range(10):
        seen = len(stream.told)
        stream.write()
        if "history" in options:
            follow(versions, stream.told[seen:])
            assert test_histories.rows_of(stream.mirror) == test_histories.in_order(versions)
        else:
            merge(rows, stream.told[seen:])
            assert stream.mirror.rows() == in_order(rows.values())
    assert read_by_duckdb(Path(stream.mirror.path)).num_rows == len(versions or rows)
    assert "OPTIMIZE" in [entry["operation"] for entry in DeltaTable(stream.mirror.path).history()]


@pytest.mark.parametrize("deleted", [[0], [0, 1], [0, 1, 2, 3]])
def test_rows_that_are_deleted_between_rewriting_and_commit(
    tmp_path: Path, rewritings: list[Callable[[], object]], deleted: Sequence[int]
) -> None:
    source, mirror = Source(("id",)), beside(OneAtATime(), Mirror(tmp_path / "t", ("id",), **COMPACT))
    for number in (3, 1, 2, 0):
        source.change("insert", number, 0, number, False)

    def meanwhile() -> None:
        first = len(source.told)
        for number in deleted:
            source.change("delete", number, 0, 0, False)
        assert mirror.write(3, source.told[first:])

    rewritings.append(meanwhile)
    assert mirror.write(1, source.told[:2])
    assert mirror.write(2, source.told[2:4])
    assert mirror.rows() == in_order(source.rows.values())
    files = mirror.own._log.state().files.values()
    assert [file.statistics["numRecords"] for file in files] == ([] if len(deleted) == 4 else [4])


def test_a_table_that_is_emptied_between_rewriting_and_commit(
    tmp_path: Path, rewritings: list[Callable[[], object]]
) -> None:
    source, mirror = Source(("id",)), beside(OneAtATime(), Mirror(tmp_path / "t", ("id",), **COMPACT))
    for number in range(4):
        source.change("insert", number, 0, number, False)
    source.change("truncate", 0, 0, 0, False)
    source.change("insert", 7, 0, 7, False)
    rewritings.append(lambda: mirror.write(3, source.told[4:]))
    assert mirror.write(1, source.told[:2])
    assert mirror.write(2, source.told[2:4])
    assert [row["id"] for row in mirror.rows()] == [7]
    # What was rewritten for nothing is removed.
    assert len(list(tmp_path.glob("t/part-*.parquet"))) == 3


class Watched(ThreadPoolExecutor):
    """Calls a function when a result is waited for."""

    def __init__(self, waits: Callable[[], object]) -> None:
        super().__init__(1)
        self._waits = waits

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        result = future.result

        def watched(timeout: float | None = None) -> Any:
            if not future.done():
                self._waits()
            return result(timeout)

        future.result = watched  # type: ignore[method-assign]
        return future


def test_a_micro_batch_waits_where_rewriting_falls_behind(
    tmp_path: Path, rewritings: list[Callable[[], object]]
) -> None:
    resumed = Event()
    waits: list[int] = []
    rewritings.append(resumed.wait)
    batch = 0

    def waited() -> None:
        waits.append(batch)
        resumed.set()

    with Watched(waited) as pool:
        source, mirror = Source(("id",)), beside(pool, Mirror(tmp_path / "t", ("id",), **COMPACT))
        while not waits:
            source.change("insert", batch, 0, batch, False)
            assert mirror.write(batch, source.told[-1:])
            batch += 1
        assert 6 <= waits[0] <= 12
    assert mirror.rows() == in_order(source.rows.values())


def test_an_error_that_nobody_expects_is_not_lost(tmp_path: Path, rewritings: list[Callable[[], object]]) -> None:
    with ThreadPoolExecutor(1) as pool:
        source, mirror = Source(("id",)), beside(pool, Mirror(tmp_path / "t", ("id",), **COMPACT))
        rewritings.append(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            for batch in range(20):
                source.change("insert", batch, 0, batch, False)
                assert mirror.write(batch, source.told[-1:])
    assert mirror.rows() == in_order(source.rows.values())


def test_without_compaction_nothing_is_done_before_a_checkpoint_is_due(tmp_path: Path) -> None:
    begun: list[int] = []

    class Counted(AtOnce):
        def submit(self, fn: Callable[..., Any], /, *args: object, **kwargs: object) -> Future[Any]:
            begun.append(batch)
            return super().submit(fn, *args, **kwargs)

    source, mirror = Source(("id",)), beside(Counted(), Mirror(tmp_path / "t", ("id",), **{"compact.files": "0"}))
    for batch in range(1, 105):
        source.change("insert", batch, 0, batch, False)
        assert mirror.write(batch, source.told[-1:])
        if batch == 75:
            mirror.start()
    assert begun == [50, 100]
    checkpoints = sorted(path.name for path in tmp_path.glob("t/_delta_log/*.checkpoint.parquet"))
    assert [int(name.partition(".")[0]) for name in checkpoints] == [50, 100]
    assert mirror.rows() == in_order(source.rows.values())
