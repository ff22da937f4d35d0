"""Targets in relational databases are rebuilt: a shadow gets what they get, and one transaction takes its rows over."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

import floodmark
from floodmark.errors import ConfigError, TargetBusyError, TargetChangedError, TargetError
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.relational.mysql import session as mysql_session
from floodmark.sinks.relational.rebuilding.target import RebuildableRelation
from floodmark.spark.pipelines.model import Pipeline
from floodmark.verification.progress import QueryProgress
from tests.conftest import Source
from tests.integration.test_jdbc_merge import COLUMNS, IDS, KEY, SEEDS, World, cut
from tests.integration.test_verify import changes, one, running
from tests.integration.test_verify_jdbc import verify
from tests.support.cli import CLI
from tests.support.jdbc import Event, Query, Target, block, pipeline_of, run, source_options, target_on
from tests.support.patience import within
from tests.support.repeating import repeated

SERVERS = ["pg18", "mysql", "mariadb"]
TABLE = "public.t"
LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("mysql", "mariadb")]
MARK = RebuildMark("one", TABLE, "signal", 0)


@pytest.fixture(params=SERVERS)
def query(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Query]:
    with target_on(request.getfixturevalue(request.param)) as target:
        yield Query(target, tmp_path / "state")


def rebuildable(query: Query, table: str = TABLE) -> RebuildableRelation:
    return RebuildableRelation(query.chosen, source_options(query.state, **query.source), table, query.query)


def row(number: int, v: int = 0, big: str | None = "big") -> dict[str, Any]:
    return {"part": "a", "id": number, "v": v, "big": big}


def created(first: int, *numbers: int) -> list[Event]:
    """Return events that insert rows; their positions begin with ``first``."""
    return [{"op": "c", "position": f"{first + at:03}", "after": row(one)} for at, one in enumerate(numbers)]


def read(position: int, *rows: dict[str, Any]) -> list[Event]:
    return [{"op": "r", "position": f"{position:03}", "after": one} for one in rows]


def write(query: Query, batch: int, *tasks: list[Event], columns: Any = COLUMNS) -> None:
    query.write(batch, {TABLE: [block(columns, KEY, one) for one in tasks]} if tasks else {})


def rows(query: Query) -> list[Any]:
    return sorted(query.target.rows("SELECT id, v, big FROM public_t"))


def of_floodmark(query: Query) -> set[str]:
    return {name for name in query.target.tables() if name.startswith("floodmark_shadow")}


def spoil(query: Query, table: str = "public_t") -> None:
    """Let a row be missing, another one differ, and one be there that the source hasn't."""
    query.target.execute(
        f"DELETE FROM {table} WHERE id = 0",
        f"UPDATE {table} SET v = -1",
        f"INSERT INTO {table} (part, id, v, big, _position) VALUES ('a', 77, 7, 'surplus', '0')",
    )


@pytest.mark.parametrize("seed", range(SEEDS // 4))
def test_whatever_the_micro_batches_have(query: Query, seed: int) -> None:
    chance, world, batch = random.Random(seed), World(random.Random(seed)), 0

    def go_on(read_at_least: set[int]) -> None:
        nonlocal batch
        events: list[Event] = []
        reads: list[list[Event]] = []
        for _ in range(chance.randint(1, 3)):
            events += world.changes(chance.randint(1, 8))
            wanted = {chance.randrange(IDS)} if chance.random() < 0.5 else set()
            reads += [found for number in wanted if (found := world.read({number}))]
        reads += [found for number in read_at_least if (found := world.read({number}))]
        query.staged = chance.random() < 0.5
        tasks = [*reads, *cut(chance, events, chance.randint(1, 3))]
        chance.shuffle(tasks)
        blocks = {TABLE: [block(COLUMNS, KEY, some) for some in tasks]}
        query.write(batch, blocks)
        if chance.random() < 0.3:
            query.start()
            query.write(batch, blocks)
        batch += 1

    def prove_equal() -> None:
        found = query.target.rows("SELECT part, id, v, big FROM public_t")
        expected = sorted((one["part"], one["id"], one["v"], one["big"]) for one in world.rows.values())
        assert sorted(found) == expected

    world.changes(6)
    go_on(set(range(IDS)))
    spoil(query)
    target = rebuildable(query)
    assert target.begin(MARK)
    # The shadow has no row yet, as little as a new target.
    world.unread = set(range(IDS))
    for number in chance.sample(range(IDS), IDS):
        go_on({number})
    go_on(world.unread)
    target.attempt(MARK, False)
    prove_equal()
    target.finish(MARK)
    assert of_floodmark(query) == set()
    for _ in range(3):
        go_on(set())
        prove_equal()


def test_the_target_is_as_it_was_until_all_its_rows_are_replaced(query: Query) -> None:
    write(query, 0, created(0, 0, 1, 2))
    spoil(query)
    target = rebuildable(query)
    assert target.mark() is None
    assert target.begin(MARK)
    assert target.mark() == MARK
    assert target.begin(MARK), "the answer to the same call was lost"
    assert not target.begin(replace(MARK, id="two"))
    write(query, 1, [{"op": "d", "position": "010", "before": row(2)}, *created(11, 3)])
    write(query, 2, read(20, row(0), row(1), row(3)))
    before = [(0, 0, "big"), (1, 0, "big"), (3, 0, "big"), (77, -1, "surplus")]
    # Rows that are read again come to the target, too, but none is removed from it.
    assert [(number, big) for number, _, big in rows(query)] == [(number, big) for number, _, big in before]
    assert not target.is_replaced(MARK)
    target.attempt(MARK, False)
    assert rows(query) == [(0, 0, "big"), (1, 0, "big"), (3, 0, "big")]
    # As by a process that was killed before it got the answer.
    assert rebuildable(query).is_replaced(MARK)
    write(query, 3, created(30, 4))
    rebuildable(query).attempt(MARK, False)
    assert [number for number, *_ in rows(query)] == [0, 1, 3, 4]
    rebuildable(query).finish(MARK)
    assert (target.mark(), of_floodmark(query)) == (None, set())
    write(query, 4, created(40, 5))
    assert [number for number, *_ in rows(query)] == [0, 1, 3, 4, 5]


def test_what_others_have_made_of_the_table_stays(query: Query) -> None:
    """Columns with and without defaults, indexes, and tables that refer to it."""
    write(query, 0, created(0, 0, 1, 2))
    query.target.execute(
        "ALTER TABLE public_t ADD COLUMN own varchar(20) DEFAULT 'none' NOT NULL",
        "UPDATE public_t SET own = 'mine' WHERE id = 1",
        "UPDATE public_t SET big = 'x' WHERE big IS NULL",
        "CREATE INDEX by_v ON public_t (v)",
    )
    spoil(query)
    target = rebuildable(query)
    target.begin(MARK)
    # A value that the log lacks, of a row that the shadow hasn't got yet.
    lacking = [{"op": "u", "position": "010", "after": row(1, 5, None), "unavailable": ["big"]}]
    write(query, 1, lacking)
    write(query, 2, read(20, row(0), row(1, 5), row(2)))
    target.attempt(MARK, False)
    found = sorted(query.target.rows("SELECT id, v, big, own FROM public_t"))
    assert found == [(0, 0, "big", "none"), (1, 5, "big", "mine"), (2, 0, "big", "none")]
    target.finish(MARK)
    write(query, 3, created(30, 9))
    assert (9, "none") in query.target.rows("SELECT id, own FROM public_t")


def test_columns_without_nulls_wait_for_the_values_that_the_log_lacks(query: Query) -> None:
    kinds = {"pg18": "text", "mysql": "varchar(100)"}
    kind = kinds["pg18" if query.dialect.kind == "postgres" else "mysql"]
    query.target.execute(
        "CREATE TABLE public_t (part varchar(10) NOT NULL, id int NOT NULL, v bigint NOT NULL, "
        f"big {kind} NOT NULL, PRIMARY KEY (part, id))"
    )
    write(query, 0, created(0, 0, 1))
    target = rebuildable(query)
    target.begin(MARK)
    write(query, 1, [{"op": "u", "position": "010", "after": row(1, 5, None), "unavailable": ["big"]}])
    assert target.mark() == MARK
    write(query, 2, read(20, row(0), row(1, 5)))
    target.attempt(MARK, False)
    assert rows(query) == [(0, 0, "big"), (1, 5, "big")]


def wrecked_shadow(query: Query) -> None:
    query.target.execute(*(f"DROP TABLE {name}" for name in of_floodmark(query)))
    write(query, 1, created(10, 3))


def altered_table(query: Query) -> None:
    write(query, 1, created(10, 3))
    columns = COLUMNS.append(COLUMNS.field("v").with_name("w"))
    write(query, 2, [{"op": "c", "position": "020", "after": {**row(4), "w": 1}}], columns=columns)


def unfit_shadow(query: Query) -> None:
    (shadow,) = of_floodmark(query)
    query.target.execute(f"ALTER TABLE {shadow} ADD CHECK (id <> 3)")
    write(query, 1, created(10, 3))


def target_set_aside(query: Query) -> None:
    query.target.execute("ALTER TABLE public_t ADD CHECK (id <> 3)")
    other = {"public.o": [block(COLUMNS, KEY, created(10, 1))]}
    query.write(1, {TABLE: [block(COLUMNS, KEY, created(10, 3))], **other})


def another_writer(query: Query) -> None:
    """An earlier Floodmark, which knows nothing of shadows, or a backup of the offsets alone."""
    query.target.execute("UPDATE floodmark_rebuilds SET written = written - 1")


def another_query(query: Query) -> None:
    query.target.execute("UPDATE floodmark_tables SET owned = false")


def cancelled(query: Query) -> None:
    rebuildable(query).give_up(MARK)


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        (wrecked_shadow, "is gone"),
        (altered_table, "was altered while it was rebuilt"),
        (unfit_shadow, "couldn't be written"),
        (target_set_aside, "was set aside"),
        (another_writer, "has micro-batch"),
        (another_query, "Another query writes"),
        (cancelled, "was cancelled meanwhile"),
    ],
)
def test_what_lets_a_rebuilding_fail_changes_nothing(query: Query, happens: Any, expected: str) -> None:
    query.source = {"errors_tables": "isolate"}
    query.start()
    write(query, 0, created(0, 0, 1, 2))
    spoil(query)
    target = rebuildable(query)
    target.begin(MARK)
    happens(query)
    before = rows(query)
    assert 77 in {number for number, *_ in before}
    with pytest.raises(TargetChangedError, match=expected):
        target.attempt(MARK, False)
    assert rows(query) == before
    found = target.mark()
    if found is not None:
        target.give_up(found)
    assert (target.mark(), of_floodmark(query)) == (None, set())
    if happens in (target_set_aside, another_query):
        return
    # It can be begun anew, and comes to an end.
    again = replace(MARK, id="two")
    assert target.begin(again)
    write(query, 3 if happens is altered_table else 2 if happens in (wrecked_shadow, unfit_shadow) else 1)
    target.attempt(again, True)
    assert rows(query) == []


def test_a_shadow_of_a_process_that_was_killed_is_dropped(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    write(query, 0, created(0, 0))
    target = rebuildable(query)

    def killed(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(target._rebuilt, "add", killed)
        with pytest.raises(SystemExit):
            target.begin(MARK)
    left = of_floodmark(query)
    assert target.mark() is None
    assert target.begin(replace(MARK, id="two"))
    assert len(of_floodmark(query)) == 1
    assert not left & of_floodmark(query) or not left


def test_a_damaged_mark(query: Query) -> None:
    write(query, 0, created(0, 0))
    target = rebuildable(query)
    target.begin(MARK)
    query.target.execute("UPDATE floodmark_rebuilds SET mark = 'x'")
    with pytest.raises(TargetError, match=r"row of 'public_t' in floodmark_rebuilds, is damaged"):
        target.mark()
    # The query goes on without the shadow.
    write(query, 1, created(10, 1))
    assert [number for number, *_ in rows(query)] == [0, 1]
    assert query.target.rows("SELECT written FROM floodmark_rebuilds")[0][0] == 0


@pytest.mark.parametrize("query", ["mysql", "mariadb"], indirect=True)
def test_the_query_waits_for_as_long_as_rows_are_replaced(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than locks are waited for, and more often than the sink's retries."""
    settings = tuple(one.replace("lock_wait_timeout = 30", "lock_wait_timeout = 1") for one in mysql_session._SETTINGS)
    monkeypatch.setattr(mysql_session, "_SETTINGS", settings)
    query.options = {"flush_max_retries": "0"}
    query.__post_init__()
    write(query, 0, created(0, 0))
    target = rebuildable(query)
    target.begin(MARK)
    other = query.dialect.connect()
    waits = threading.Event()
    exist = query.targets._shadows.exist

    def told(session: Any) -> bool:
        found = exist(session)
        waits.set()
        return found

    monkeypatch.setattr(query.targets._shadows, "exist", told)
    with ThreadPoolExecutor(1) as pool:
        other.begin()
        query.targets.books.offset(other, lock=True)
        writing = pool.submit(write, query, 1, created(10, 1))
        for _ in range(3):
            assert waits.wait(within(60))
            waits.clear()
        assert not writing.done()
        other.rollback()
        writing.result(within(60))
    # Without a target that is rebuilt, whatever holds the lock is an error.
    target.give_up(MARK)
    other.begin()
    query.targets.books.offset(other, lock=True)
    with pytest.raises(TargetBusyError):
        write(query, 2, created(20, 2))
    other.close()


def rebuild(pipeline: Pipeline, table: str = "public.a", **wanted: Any) -> floodmark.Rebuilt:
    options = {"wait_s": within(60.0), **wanted}
    return floodmark.rebuild(pipeline.source, pipeline.sink.options, pipeline.checkpoint, table, **options)


def readers(target: Target) -> AbstractContextManager[list[tuple[bool, int]]]:
    """Read a table all the time: whether it has the row that only the old one has, and how many rows."""

    def read() -> tuple[bool, int]:
        ids = [number for (number,) in target.rows("SELECT id FROM public_a")]
        assert len(ids) == len(set(ids))
        return -1 in ids, len(ids)

    return repeated(read, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["pg18", *LONG], indirect=True)
def test_a_table_is_rebuilt_while_the_stream_goes_on(
    spark: SparkSession, source: Source, target: Target, tmp_path: Path
) -> None:
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, big text)",
        "ALTER TABLE a ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO a SELECT g, 'v' || g, repeat('b' || g, 900) FROM generate_series(1, 3000) g",
    )
    pipeline = pipeline_of(source, target, tmp_path)
    run(spark, pipeline)
    surplus = "SELECT -1, v, big, _position FROM public_a WHERE id = 5"
    target.execute("DELETE FROM public_a WHERE id IN (1, 2)", f"INSERT INTO public_a (id, v, big, _position) {surplus}")
    lines: list[str] = []
    moving = "UPDATE a SET v = v || '.' WHERE id > 10 AND id % 97 = <n>"
    with running(spark, pipeline), changes(source, moving), readers(target) as seen:
        done = rebuild(pipeline, tell=lines.append)
        assert (done.table, done.replaced) == ("public.a", True)
        assert done.version is not None
        assert done.version.startswith("micro-batch ")
        deadline = time.monotonic() + within(30)
        while not seen or seen[-1][0]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert len({surplus for surplus, _ in seen}) == 2
    first = next(number for number, (surplus, _) in enumerate(seen) if not surplus)
    # The new rows are there all at once, with none of the old ones.
    assert all((surplus, count) == (False, 3000) for surplus, count in seen[first:])
    assert any("rows are read" in line for line in lines)
    with running(spark, pipeline):
        assert one(verify(pipeline)).status == "equal"
    assert not [name for name in target.tables() if "shadow" in name]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["pg18"], indirect=True)
def test_the_command(spark: SparkSession, source: Source, target: Target, tmp_path: Path) -> None:
    source.execute("CREATE TABLE a (id integer PRIMARY KEY, v text)", "INSERT INTO a VALUES (1, 'one'), (2, 'two')")
    pipeline = pipeline_of(source, target, tmp_path)
    run(spark, pipeline)
    target.execute("DELETE FROM public_a WHERE id = 1")
    file = tmp_path / "pipeline.yaml"
    sink = {"type": "jdbc", "options": pipeline.sink.options}
    file.write_text(yaml.safe_dump({"source": source.options, "sink": sink, "checkpoint": pipeline.checkpoint}))

    def command(*arguments: str) -> tuple[int, str]:
        found = subprocess.run([*CLI, *arguments], capture_output=True, text=True, check=False, timeout=within(120))
        return found.returncode, found.stdout + found.stderr

    mark = RebuildMark("one", "public.a", "signal", 0)
    query = QueryProgress(pipeline.checkpoint).query
    options = source_options(tmp_path / "other")
    assert query is not None
    from floodmark.sinks.relational.options import JdbcOptions

    waiting = RebuildableRelation(JdbcOptions.parse(pipeline.sink.options), options, "public.a", query)
    assert waiting.begin(mark)
    code, shown = command("status", str(file))
    assert code == 0, shown
    assert "public.a is being rebuilt" in shown
    code, shown = command("rebuild", str(file), "--table", "public.a", "--cancel")
    assert (code, "public.a: is left as it is" in shown) == (0, True), shown
    with running(spark, pipeline):
        code, shown = command("rebuild", str(file), "--table", "public.a")
    assert (code, "public.a: is rebuilt, as of micro-batch" in shown) == (0, True), shown
    assert sorted(target.rows("SELECT id, v FROM public_a")) == [(1, "one"), (2, "two")]
    with pytest.raises(ConfigError, match="is not being rebuilt"):
        rebuild(pipeline, cancel=True)
