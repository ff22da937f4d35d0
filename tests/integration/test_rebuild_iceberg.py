"""Iceberg tables are rebuilt: a shadow gets what they get, and one commit puts its files in their place."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import load_catalog

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import TargetChangedError, TargetDamagedError
from floodmark.sinks.delta.protocols import TableWriter
from floodmark.sinks.delta.rebuilding.marks import RebuildMarks
from floodmark.sinks.delta.rebuilding.shadows import ShadowedWriter
from floodmark.sinks.delta.tables import application_of
from floodmark.sinks.iceberg.rebuilding.target import RebuildableIcebergTable
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.rebuilds.mark import RebuildMark
from floodmark.sinks.rebuilds.target import Replaced
from floodmark.spark.iceberg.tables import rebuildable_table
from tests.conftest import drop, make_source
from tests.integration.test_verify import changes
from tests.support import quick_start
from tests.support.catalogue_mirror import CatalogueMirror
from tests.support.cli import CLI
from tests.support.delta_mirror import WHAT, in_order, more
from tests.support.delta_spark import TABLE
from tests.support.iceberg_spark import LAKE, catalogue_in, iceberg_environment, properties, running_iceberg_spark
from tests.support.merging import Target, merge
from tests.support.patience import within
from tests.unit.test_last_changes import Source

KEY, QUERY = ("id",), "query"
MARK = RebuildMark("one", TABLE, "signal", -1)


class Mirror(CatalogueMirror):
    """A table with the rows of a source, and the query that writes it."""

    def __init__(self, folder: Path, **options: str) -> None:
        catalogue = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalogue.db",
            "warehouse": f"file://{folder}/warehouse",
        }
        super().__init__(folder, KEY, catalogue, **options)
        self.source = Source(KEY)
        self.expected: Target = {}

    def another(self, application: str, **options: str) -> TableWriter:
        return super().another(application_of(QUERY), **options)

    def change(self, batch: int, *changes: tuple[str, int], reads: bool = False, again: bool = False) -> None:
        """Write a micro-batch with changes, after all rows as a snapshot reads them."""
        first = len(self.source.told)
        if reads:
            for row in list(self.source.rows.values()):
                self.source.tell("r", None, row, [])
        for what, number in changes:
            self.source.change(what, number, number + 50, len(self.source.told), what == "update")
        told = self.source.told[first:]
        merge(self.expected, told)
        self.write(batch, told, 3)
        if again:
            self.start()
            self.write(batch, told, 3)

    def spoil(self) -> None:
        """Let a row be missing, another one differ, and one be there that the source hasn't."""
        table = self.table
        kept = table.scan().to_arrow()
        other = kept.slice(0, 1).to_pylist()[0]
        table.delete("id = 1 or id = 2")
        names = kept.schema.names
        rows = [{**other, "id": 2, "v": -1}, {**other, "id": -7, "v": -1}]
        table.append(pa.Table.from_pylist([{name: row[name] for name in names} for row in rows], kept.schema))

    @property
    def marks(self) -> RebuildMarks:
        return RebuildMarks(str(Path(self.path).parent))

    @property
    def logs(self) -> list[str]:
        return [path.name for path in Path(self.path).glob("_floodmark/*")]

    def files(self) -> set[str]:
        return {path.name for path in Path(self.path).rglob("*.parquet")}

    def rebuildable(self) -> RebuildableIcebergTable:
        options = MirrorOptions.parse(self.options)
        return rebuildable_table(str(Path(self.path).parent), options, TABLE, QUERY, None)


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    """Return a mirror whose table doesn't equal its source."""
    made = Mirror(tmp_path)
    made.change(0, *(("insert", number) for number in range(5)))
    made.spoil()
    return made


def test_a_table_is_replaced_by_one_commit(mirror: Mirror) -> None:
    target = mirror.rebuildable()
    assert target.mark() is None
    assert target.begin(MARK)
    assert not target.begin(MARK)
    mirror.change(1, ("update", 0), ("delete", 3))
    before, snapshot = mirror.rows(), mirror.table.current_snapshot()
    assert before != in_order(mirror.expected.values())
    mirror.change(2, ("update", 1), ("insert", 7), reads=True)
    assert not target.is_replaced(MARK)
    assert snapshot is not None
    seen = len(mirror.table.snapshots())
    assert target.attempt(MARK, False) is Replaced.DONE
    assert mirror.rows() == in_order(mirror.expected.values())
    assert len(mirror.table.snapshots()) == seen + 1
    earlier = mirror.table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().select(list(before[0]))
    assert in_order(earlier.to_pylist()) == before
    # As by a process that was killed before it knew that.
    again = mirror.rebuildable()
    assert again.is_replaced(MARK)
    assert again.attempt(MARK, False) is Replaced.DONE
    assert len(mirror.table.snapshots()) == seen + 1
    # The query goes on, with a process that was there before, and without the mark.
    mirror.change(3, ("update", 0), ("delete", 7), ("insert", 9))
    again.finish(MARK)
    assert (again.mark(), mirror.logs) == (None, [])
    mirror.change(4, ("update", 9), ("insert", 10), again=True)
    assert mirror.rows() == in_order(mirror.expected.values())
    assert again.view().version == str(mirror.table.metadata.current_snapshot_id)


@pytest.mark.parametrize("compact", ["0", "2"])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_meanwhile(tmp_path: Path, seed: int, compact: str) -> None:
    chance, mirror = random.Random(seed), Mirror(tmp_path, **{"compact.files": compact})
    mirror.change(0, *(("insert", number) for number in range(20)))
    mirror.spoil()
    target = mirror.rebuildable()
    target.begin(MARK)
    reads_at = chance.randrange(1, 6)
    for batch in range(1, 8):
        kinds = [*WHAT, "truncate"] if chance.random() < 0.2 else WHAT
        changes = [(chance.choice(kinds), chance.randrange(40)) for _ in range(chance.randrange(1, 12))]
        mirror.change(batch, *changes, reads=batch == reads_at, again=chance.random() < 0.4)
        if chance.random() < 0.3:
            mirror.start()
    assert target.attempt(MARK, not mirror.source.rows) is Replaced.DONE
    assert mirror.rows() == in_order(mirror.expected.values())
    target.finish(MARK)
    for batch in range(8, 12):
        changes = [(chance.choice(WHAT), chance.randrange(40)) for _ in range(8)]
        mirror.change(batch, *changes)
        assert mirror.rows() == in_order(mirror.expected.values())


class Death(BaseException):
    """The query's process dies."""


def test_the_shadow_has_what_the_table_is_about_to_get(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    target = mirror.rebuildable()
    target.begin(MARK)
    mirror.change(1, reads=True)
    write_shadow = ShadowedWriter._write_shadow

    def dies(writer: Any, *args: Any) -> None:
        write_shadow(writer, *args)
        raise Death

    with monkeypatch.context() as patch:
        patch.setattr(ShadowedWriter, "_write_shadow", dies)
        with pytest.raises(Death):
            mirror.change(2, ("insert", 8))
    assert target.attempt(MARK, False) is Replaced.LATER
    mirror.start()
    mirror.write(2, mirror.source.told[-1:], 1)
    assert target.attempt(MARK, False) is Replaced.DONE
    assert mirror.rows() == in_order(mirror.expected.values())


def test_others_who_write_at_the_same_time(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    target = mirror.rebuildable()
    target.begin(MARK)
    mirror.change(1, reads=True)
    prove = target._prove_complete

    def meanwhile(wanted: Any) -> None:
        prove(wanted)
        mirror.change(2, ("update", 0), ("insert", 8))

    with monkeypatch.context() as patch:
        patch.setattr(target, "_prove_complete", meanwhile)
        assert target.attempt(MARK, False) is Replaced.LATER
    assert target.attempt(MARK, False) is Replaced.DONE
    assert mirror.rows() == in_order(mirror.expected.values())


def lost_file(mirror: Mirror) -> None:
    (file, *_) = mirror.rebuildable()._shadow(MARK).state().files.values()
    (Path(mirror.path) / file.path).unlink()


def altered(mirror: Mirror) -> None:
    first = len(mirror.source.told)
    mirror.source.change("insert", 30, 0, 0, False)
    mirror.writer.write(2, more(mirror, mirror.source.told[first:]))


def cancelled(mirror: Mirror) -> None:
    mirror.rebuildable().give_up(MARK)


def another_floodmark(mirror: Mirror) -> None:
    """One that knows nothing of shadows."""
    mirror.marks.remove(TABLE)
    mirror.start()
    mirror.change(2, ("insert", 8))
    mirror.marks.add(MARK)


def brought_back(mirror: Mirror) -> None:
    table = mirror.table
    first = table.metadata.snapshots[1].snapshot_id
    table.manage_snapshots().set_current_snapshot(first).commit()


def dropped(mirror: Mirror) -> None:
    mirror.catalogue.drop_table(mirror.identifier)


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        (lost_file, "lacks the file"),
        (altered, "was altered while it was rebuilt"),
        (cancelled, "was cancelled meanwhile"),
        (another_floodmark, "has other micro-batches than its shadow"),
        (brought_back, "brought back to an earlier snapshot"),
        (dropped, "is gone"),
    ],
)
def test_what_lets_a_rebuilding_fail_changes_nothing(
    mirror: Mirror, happens: Callable[[Mirror], None], expected: str
) -> None:
    target = mirror.rebuildable()
    target.begin(MARK)
    mirror.change(1, reads=True)
    happens(mirror)
    before = [] if happens is dropped else mirror.rows()
    with pytest.raises((TargetChangedError, TargetDamagedError), match=expected):
        target.attempt(MARK, False)
    if happens is not dropped:
        assert mirror.rows() == before


def test_a_rebuilding_that_is_given_up_leaves_nothing(mirror: Mirror) -> None:
    files = mirror.files()
    target = mirror.rebuildable()
    target.begin(MARK)
    mirror.change(1, reads=True)
    shadow = mirror.files() - files
    assert shadow
    rows = mirror.rows()
    target.give_up(MARK)
    named = {Path(row["file_path"]).name for row in mirror.table.inspect.all_data_files().to_pylist()}
    assert mirror.rows() == rows
    assert (target.mark(), mirror.logs) == (None, [])
    assert mirror.files() <= named | files
    # Another one can be begun.
    assert target.begin(replace(MARK, id="two"))
    mirror.change(2, reads=True)
    assert target.attempt(replace(MARK, id="two"), False) is Replaced.DONE
    assert mirror.rows() == in_order(mirror.expected.values())


def test_a_query_that_writes_no_shadow(mirror: Mirror) -> None:
    mirror.change(1, reads=True)
    target = mirror.rebuildable()
    target.begin(MARK)
    with pytest.raises(TargetChangedError, match="has written no shadow"):
        target.attempt(MARK, False)


def test_a_table_without_rows(mirror: Mirror) -> None:
    mirror.change(1, *(("delete", number) for number in range(5)))
    assert mirror.rows() != []
    target = mirror.rebuildable()
    target.begin(MARK)
    assert target.attempt(MARK, True) is Replaced.DONE
    assert mirror.rows() == []


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["v3", "v2", "without the runtime"])
def test_the_command_rebuilds_a_table_while_the_stream_goes_on(
    tmp_path: Path, pg18: EmbeddedPostgres, kind: str
) -> None:
    """Readers see the old table or the new one: the row that only the old one has, or the one that it lacks."""
    source = make_source(pg18, tmp_path / "state", **{"signal.poll.interval.ms": "200"})
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text, big text)",
        "ALTER TABLE a ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO a SELECT g, 'v' || g, repeat('b' || g, 900) FROM generate_series(1, 3000) g",
    )
    backend = catalogue_in(pg18, tmp_path / "lake")
    catalogues = {LAKE: {"type": "jdbc", **backend}}
    options: dict[str, str] = {"catalog.schema": f"{LAKE}.shop"}
    own = {**os.environ, quick_start.OPTIONS: quick_start.FLAGS}
    spark = {"spark.master": "local[2]"}
    if kind == "without the runtime":
        catalogue = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalogue.db", "warehouse": f"file://{tmp_path}/w"}
        options |= {f"catalog.{name}": value for name, value in catalogue.items()}
        load_catalog(LAKE, **catalogue).create_namespace("shop")
    else:
        options |= {"deletion.vectors": "on" if kind == "v3" else "off"}
        own, spark = {**own, **iceberg_environment()}, {**spark, **properties(catalogues)}
        with running_iceberg_spark(catalogues) as lake:
            lake.run(f"CREATE SCHEMA {LAKE}.shop")
    content = {
        "source": source.options,
        "sink": {"type": "mirror", "format": "iceberg", "path": str(tmp_path / "out"), "options": options},
        "checkpoint": str(tmp_path / "checkpoint"),
        "trigger": {"availableNow": "true"},
        "spark": spark,
    }
    file = tmp_path / "shop.yaml"

    def call(*arguments: str, code: int = 0) -> str:
        command = [*CLI, arguments[0], str(file), *arguments[1:]]
        done = subprocess.run(command, capture_output=True, text=True, env=own, check=False, timeout=within(240))
        assert done.returncode == code, (done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout

    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    call("run")
    target = rebuilt_by_command(kind, catalogues, options)
    with target as (execute, ids):
        execute("DELETE", 1)
        execute("INSERT", -7)
        assert {-7, 2} <= ids()
        assert 1 not in ids()
        file.write_text(yaml.safe_dump({**content, "trigger": {"processingTime": "1 second"}}), encoding="utf-8")
        running = subprocess.Popen([*CLI, "run", str(file)], env=own, stderr=subprocess.DEVNULL)
        moving = "UPDATE a SET v = v || '.' WHERE id > 10 AND id % 97 = <n>"
        try:
            with changes(source, moving):
                told = call("rebuild", "--table", "public.a", "--wait", str(int(within(90))))
        finally:
            running.terminate()
            running.wait(within(60))
        assert "public.a: is rebuilt, as of version" in told
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        call("run")
        assert ids() == set(range(1, 3001))
    assert "equal" in call("verify", "--at-rest")
    drop(source)


@contextmanager
def rebuilt_by_command(
    kind: str, catalogues: dict[str, dict[str, str]], options: dict[str, str]
) -> Iterator[tuple[Callable[[str, int], None], Callable[[], set[int]]]]:
    """Yield what removes or adds a row of the target, and what returns its keys."""
    if kind == "without the runtime":
        catalogue = {
            name.removeprefix("catalog."): value for name, value in options.items() if name != "catalog.schema"
        }
        lake = load_catalog(LAKE, **catalogue)

        def change(what: str, number: int) -> None:
            table = lake.load_table(("shop", "public_a"))
            if what == "DELETE":
                table.delete(f"id = {number}")
                return
            rows = table.scan().to_arrow().slice(0, 1)
            kind = rows.schema.field("id").type
            table.append(rows.set_column(rows.schema.get_field_index("id"), "id", pa.array([number], kind)))

        yield change, lambda: set(lake.load_table(("shop", "public_a")).scan().to_arrow()["id"].to_pylist())
        return
    full = f"{LAKE}.shop.public_a"
    with running_iceberg_spark(catalogues) as spark:

        def by_spark(what: str, number: int) -> None:
            if what == "DELETE":
                spark.run(f"DELETE FROM {full} WHERE id = {number}")
            else:
                spark.run(f"INSERT INTO {full} SELECT {number}, v, big, _position FROM {full} WHERE id = 5")

        yield by_spark, lambda: set(spark.rows(f"SELECT id FROM {full}")["id"].to_pylist())
