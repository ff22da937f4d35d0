"""Iceberg tables that Floodmark commits to a catalogue itself, without Spark's runtime."""

from __future__ import annotations

import datetime as dt
import pickle
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.exceptions import CommitFailedException, ForbiddenError

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import ConfigError, TargetChangedError, TargetError, TargetUnfitError
from floodmark.sinks.delta.parts import make_parts
from floodmark.sinks.iceberg.catalogues.table import CatalogueTable
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.iceberg.runtime import require_catalogue
from floodmark.spark.iceberg.tables import catalogue_targets
from tests.support.catalogue_mirror import CatalogueMirror
from tests.support.delta_mirror import EMPTY, follow, in_order, more, typed
from tests.support.iceberg_readers import read_by_duckdb, read_by_pyiceberg
from tests.support.iceberg_rest import running_rest_catalogue
from tests.support.iceberg_spark import catalogue_in
from tests.support.losing_proxy import LosingProxy, Loss, losing_proxy
from tests.support.merging import Target, merge
from tests.unit.test_last_changes import CHANGES, KINDS, Source, schema

KEY = ("id",)
Catalogue = dict[str, str]


@pytest.fixture
def sql(tmp_path: Path) -> Catalogue:
    """Return a catalogue in a file."""
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalogue.db", "warehouse": f"file://{tmp_path}/warehouse"}


@pytest.fixture(scope="module")
def proxy(pg18: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LosingProxy]:
    """Return what is in front of a server with a catalogue."""
    backend = catalogue_in(pg18, tmp_path_factory.mktemp("served"))
    with (
        running_rest_catalogue({**backend, "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog"}) as uri,
        losing_proxy(uri) as found,
    ):
        yield found


def filled(mirror: CatalogueMirror, count: int = 4) -> Source:
    """Write some rows in a first micro-batch."""
    source = Source(mirror.key)
    for number in range(count):
        source.change("insert", number, 0, number, False)
    assert mirror.write(0, source.told)
    return source


@pytest.mark.parametrize(("key", "seed"), [(("id",), 1), (("b", "a"), 2), (("id",), 3)])
@pytest.mark.parametrize("compact", ["0", "2"])
def test_a_table_follows(tmp_path: Path, sql: Catalogue, key: tuple[str, ...], seed: int, compact: str) -> None:
    mirror = CatalogueMirror(tmp_path, key, sql, **{"compact.files": compact})
    expected = follow(mirror, seed)
    location, names = mirror.table.metadata_location, KINDS[key].names
    for read in (read_by_pyiceberg, read_by_duckdb):
        assert in_order(read(location).select(names).to_pylist()) == in_order(expected.values()), read
    assert not list(Path(mirror.path).glob("*.parquet"))
    assert mirror.table.format_version == 2


@pytest.mark.slow
def test_a_table_of_a_server_follows(tmp_path: Path, proxy: LosingProxy) -> None:
    served = {"type": "rest", "uri": proxy.uri, "warehouse": f"file://{tmp_path}/served"}
    mirror = CatalogueMirror(tmp_path, KEY, served, **{"compact.files": "3"})
    follow(mirror, 4)
    mirror.catalogue.drop_table(mirror.identifier)


@given(batches=st.lists(st.lists(CHANGES, max_size=8), min_size=2, max_size=5), compact=st.sampled_from(["0", "2"]))
@settings(max_examples=15)
def test_generated_changes(
    batches: list[list[tuple[Any, ...]]], compact: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("generated")
    catalogue = {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}/w"}
    mirror, source = CatalogueMirror(folder, KEY, catalogue, **{"compact.files": compact}), Source(KEY)
    expected: Target = {}
    for batch, changes in enumerate(batches):
        first = len(source.told)
        for what, one, other, value, large in changes:
            source.change(what, one, other, value, large)
        told = source.told[first:]
        merge(expected, told)
        if told:
            mirror.write(batch, told, 2)
    if source.told:
        assert mirror.rows() == in_order(expected.values())


def test_a_table_without_a_key_gets_each_row_once(tmp_path: Path, sql: Catalogue) -> None:
    mirror, source = CatalogueMirror(tmp_path, KEY, sql), Source(KEY)
    for number in range(4):
        source.change("insert", number, 0, number, False)
    keyless = [{**row, "key": []} for row in source.told]
    for batch in range(2):
        for _ in range(2):
            mirror.writer.write(batch, typed(mirror, keyless[2 * batch : 2 * batch + 2]))
            mirror.start()
    found = mirror.scanned().select(["id", "_op"]).sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in found] == [(number, "c") for number in range(4)]
    # Appends only: no file was written again.
    assert {one.summary.operation.value for one in mirror.table.snapshots() if one.summary} == {"append"}


def test_soft_deletes(tmp_path: Path, sql: Catalogue) -> None:
    mirror = CatalogueMirror(tmp_path, KEY, sql, deletes="soft")
    source = filled(mirror)
    first = len(source.told)
    source.change("delete", 1, 0, 0, False)
    source.change("update", 2, 0, 5, True)
    assert mirror.write(1, source.told[first:])
    found = mirror.scanned().select(["id", "v", "_is_deleted"]).sort_by("id").to_pylist()
    assert [(row["id"], row["v"], bool(row["_is_deleted"])) for row in found] == [
        (0, 0, False),
        (1, 1, True),
        (2, 5, False),
        (3, 3, False),
    ]


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, None]),
    "tiny": (pa.int16(), [-(2**15), None]),
    "whole": (pa.int32(), [-(2**31), None]),
    "large": (pa.int64(), [2**63 - 1, None]),
    "single": (pa.float32(), [1.5, None]),
    "double": (pa.float64(), [float("inf"), None]),
    "small decimal": (pa.decimal128(7, 2), [Decimal("-12345.67"), None]),
    "middle decimal": (pa.decimal128(18, 6), [Decimal("999999999999.999999"), None]),
    "decimal": (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789"), None]),
    "text": (pa.string(), ["a\x00\U0010ffffé" * 9, None]),
    "bytes": (pa.binary(), [b"\x00\xff" * 20, None]),
    "day": (pa.date32(), [date(1, 1, 1), None]),
    "moment": (pa.timestamp("us"), [datetime(9999, 12, 31, 23, 59, 59, 999999), None]),
    "instant": (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC), None]),
    "list.of numbers": (pa.list_(pa.int16()), [[1, None], None]),
}


def test_values_of_all_types(tmp_path: Path, sql: Catalogue) -> None:
    """Written by a task that doesn't know the table, and by one that does; then written again as one file."""
    mirror, source = CatalogueMirror(tmp_path, KEY, sql, **{"compact.files": "3"}), Source(KEY)
    row = pa.struct([("id", pa.int64()), *((name, kind) for name, (kind, _) in VALUES.items())])
    columns = [pa.field(one.name, row) if one.name in ("before", "after") else one for one in schema(KEY)]
    expected = []
    for batch in range(3):
        told = []
        for place in range(2):
            first = len(source.told)
            source.change("insert", 2 * batch + place, 0, 0, False)
            (event,) = source.told[first:]
            values = {"id": 2 * batch + place, **{name: held[place] for name, (_, held) in VALUES.items()}}
            told.append({**event, "after": values})
            expected.append(values)
        parts = make_parts(mirror.task_files(), [pa.Table.from_pylist(told, pa.schema(columns))])
        assert mirror.writer.write(batch, parts)
    assert mirror.scanned().select([*expected[0]]).sort_by("id").to_pylist() == expected
    found = read_by_duckdb(mirror.table.metadata_location).select([*expected[0]]).sort_by("id").to_pylist()
    assert [row["decimal"] for row in found] == [row["decimal"] for row in expected]
    assert len(mirror.table.inspect.files()) == 1


@pytest.mark.parametrize("loss", ["request", "answer"])
@pytest.mark.slow
def test_the_answer_of_the_server_is_lost(tmp_path: Path, proxy: LosingProxy, loss: Loss) -> None:
    served = {"type": "rest", "uri": proxy.uri, "warehouse": f"file://{tmp_path}/served"}
    mirror = CatalogueMirror(tmp_path, KEY, served)
    source = filled(mirror)
    before = len(mirror.table.snapshots())
    source.change("update", 1, 0, 9, True)
    proxy.losses = [loss]
    mirror.write(1, source.told[4:])
    assert not proxy.losses
    assert len(mirror.table.snapshots()) == before + 1
    assert mirror.rows() == in_order(source.rows.values())
    mirror.catalogue.drop_table(mirror.identifier)


def test_another_writer_commits_just_before(tmp_path: Path, sql: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    """The micro-batch is planned again on what that one has left."""
    mirror = CatalogueMirror(tmp_path, KEY, sql)
    source = filled(mirror)
    source.change("update", 1, 0, 9, True)
    source.change("delete", 2, 0, 0, False)
    changed, others = CatalogueTable._changed, iter((1,))

    def meanwhile(table: CatalogueTable, *given: Any) -> Any:
        for _ in others:
            mirror.table.delete("id = 3")
        return changed(table, *given)

    monkeypatch.setattr(CatalogueTable, "_changed", meanwhile)
    assert mirror.write(1, source.told[4:])
    expected = [row for row in source.rows.values() if row["id"] != 3]
    assert mirror.rows() == in_order(expected)


def test_two_drivers_of_a_query(tmp_path: Path, sql: Catalogue) -> None:
    """Both write the same micro-batches at the same time: each is in the table once."""
    mirror = CatalogueMirror(tmp_path, KEY, sql)
    source, drivers = filled(mirror), 2
    barrier, failed = Barrier(drivers), list[BaseException]()

    def work() -> None:
        own = CatalogueMirror(tmp_path, KEY, sql)
        for batch in range(1, 6):
            barrier.wait(60)
            try:
                own.write(batch, told[batch])
            except BaseException as error:
                failed.append(error)
                raise

    told = {}
    for batch in range(1, 6):
        first = len(source.told)
        source.change("insert", 10 + batch, 0, batch, False)
        source.change("update", 1, 0, 100 + batch, True)
        told[batch] = source.told[first:]
    threads = [Thread(target=work) for _ in range(drivers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed
    assert mirror.rows() == in_order(source.rows.values())
    assert len(mirror.scanned()) == len(source.rows)


def test_a_table_is_brought_back_or_dropped(tmp_path: Path, sql: Catalogue) -> None:
    mirror = CatalogueMirror(tmp_path, KEY, sql)
    source = filled(mirror)
    before = mirror.table.metadata.current_snapshot_id
    source.change("update", 1, 0, 9, True)
    assert mirror.write(1, source.told[4:])
    assert before is not None
    mirror.table.manage_snapshots().create_tag(before, "kept").commit()
    mirror.table.manage_snapshots().rollback_to_snapshot(before).commit()
    source.change("update", 2, 0, 9, True)
    with pytest.raises(TargetChangedError, match="was brought back to an earlier snapshot or replaced"):
        mirror.write(2, source.told[5:])
    mirror.catalogue.drop_table(mirror.identifier)
    mirror.written = 1
    mirror.start()
    mirror.listener.told.clear()
    assert mirror.write(2, source.told)
    assert mirror.listener.told == [("missing", "db.t", "True"), ("exists", "db.t")]


def test_another_query_and_an_older_checkpoint(tmp_path: Path, sql: Catalogue) -> None:
    mirror = CatalogueMirror(tmp_path, KEY, sql)
    source = filled(mirror)
    other = mirror.another("other")
    with pytest.raises(TargetChangedError, match="has rows that this query has not written"):
        other.write(0, typed(mirror, source.told[:2]))
    with pytest.raises(TargetChangedError, match="The checkpoint is older than the Iceberg table"):
        mirror.write(0, source.told[:2])
    assert mirror.another("other", **EMPTY).write(0, typed(mirror, source.told[:2]))
    assert [row["id"] for row in mirror.rows()] == [0, 1]
    with pytest.raises(TargetChangedError, match=r"Another query has emptied|rows that this query"):
        mirror.write(1, source.told[2:])


def test_a_micro_batch_that_comes_again_without_rows_that_a_snapshot_has_read(tmp_path: Path, sql: Catalogue) -> None:
    mirror, source = CatalogueMirror(tmp_path, KEY, sql), Source(KEY)
    for what, number in [("insert", 1), ("read", 2), ("read", 3), ("read", 4)]:
        source.change(what, number, 0, number, False)
    source.told[2]["position"] = source.told[1]["position"]
    assert mirror.write(0, source.told[:2])
    assert not mirror.write(0, source.told[:1])
    assert mirror.write(1, source.told[1:3])
    assert not mirror.write(1, source.told[2:3])
    with pytest.raises(TargetChangedError, match="The checkpoint is older than the Iceberg table"):
        mirror.write(1, source.told[3:])
    assert len(mirror.rows()) == 3
    # A checkpoint that was restored in the middle of a snapshot: the log goes as far, but other rows were read.
    for number in (5, 6, 7):
        source.change("insert" if number == 5 else "read", number, 0, number, False)
    change, read, other = source.told[4:]
    assert mirror.write(2, [change, read])
    for rows in ([change, other], [other]):
        with pytest.raises(TargetChangedError, match="The checkpoint is older than the Iceberg table"):
            mirror.write(2, rows)


def test_columns_are_added_and_widened(tmp_path: Path, sql: Catalogue) -> None:
    mirror, source = CatalogueMirror(tmp_path, KEY, sql), Source(KEY)
    source.change("insert", 1, 0, 1, False)
    mirror.writer.write(0, typed(mirror, source.told, id=pa.int32()))
    source.change("insert", 2, 0, 2, False)
    mirror.writer.write(1, typed(mirror, source.told[1:], id=pa.int64()))
    source.change("insert", 3, 0, 3, False)
    rows = [{**source.told[2], "after": {**source.told[2]["after"], "more.of it": 7}}]
    mirror.writer.write(2, more(mirror, rows, name="more.of it"))
    assert mirror.listener.told[2:] == [("columns", "db.t", "more.of it")]
    found = mirror.scanned()
    assert found.schema.field("id").type == pa.int64()
    assert found.sort_by("id").select(["id", "more.of it"]).to_pylist() == [
        {"id": number, "more.of it": 7 if number == 3 else None} for number in (1, 2, 3)
    ]
    with pytest.raises(TargetUnfitError, match=r"'v' of the Iceberg table 'db\.t' is int, but the source's is dec"):
        mirror.writer.write(3, typed(mirror, source.told, v=pa.decimal128(10, 2)))


def test_old_snapshots_are_removed_with_their_files(
    tmp_path: Path, sql: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"compact.files": "2", "vacuum.hours": "1"}
    mirror = CatalogueMirror(tmp_path, KEY, sql, **options)
    source = filled(mirror)
    for batch in range(1, 6):
        first = len(source.told)
        source.change("update", batch % 4, 0, batch, True)
        assert mirror.write(batch, source.told[first:])
    assert len(mirror.table.snapshots()) > 5
    ahead = time.time() + 7200
    later = datetime.fromtimestamp(ahead, UTC)

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return later.astimezone(tz)

    monkeypatch.setattr(dt, "datetime", Later)
    mirror.start()
    first = len(source.told)
    for batch in (6, 7):
        source.change("update", 1, 0, batch, True)
        assert mirror.write(batch, source.told[first:])
        first = len(source.told)
    assert len(mirror.table.snapshots()) == 1
    named = {Path(row["file_path"].removeprefix("file://")) for row in mirror.table.inspect.files().to_pylist()}
    assert set((Path(mirror.path) / "data").glob("*.parquet")) == named
    assert mirror.rows() == in_order(source.rows.values())


def test_tables_that_cannot_be_written(tmp_path: Path, sql: Catalogue) -> None:
    mirror, source = CatalogueMirror(tmp_path, KEY, sql), Source(KEY)
    source.change("insert", 1, 0, 1, False)
    columns = pa.schema([*KINDS[KEY], ("_position", pa.string())])
    mirror.catalogue.create_table(mirror.identifier, columns, properties={"encryption.key-id": "x"})
    with pytest.raises(TargetUnfitError, match=r"The Iceberg table 'db\.t' has encrypted files"):
        mirror.write(0, source.told)
    mirror.catalogue.drop_table(mirror.identifier)
    mirror.catalogue.create_table(mirror.identifier, columns, properties={"format-version": "1"})
    with pytest.raises(TargetUnfitError, match=r"'db\.t' has format version 1; pyiceberg writes 2"):
        mirror.write(0, source.told)


def options(**given: str) -> MirrorOptions:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return MirrorOptions.parse({"format": "iceberg", "catalog.schema": "lake.shop", **named})


def test_catalogues_that_cannot_be_used(sql: Catalogue) -> None:
    given = {f"catalog.{name}": value for name, value in sql.items()}
    with pytest.raises(ConfigError, match=r"catalog\.schema is 'lake\.shop', which the catalogue doesn't have"):
        require_catalogue(options(**given))
    with pytest.raises(ConfigError, match=r"The Iceberg catalogue 'lake' can't be used: ") as raised:
        require_catalogue(
            options(catalog_type="rest", catalog_uri="http://me:hidden@127.0.0.1:9", catalog_token="mine")
        )
    assert "hidden" not in str(raised.value)
    assert "mine" not in str(raised.value)
    with pytest.raises(ConfigError, match="can't be used"):
        require_catalogue(options(catalog_type="res"))


def test_the_catalogue_goes_away_and_comes_back(tmp_path: Path, sql: Catalogue) -> None:
    mirror = CatalogueMirror(tmp_path, KEY, sql)
    source = filled(mirror)
    source.change("update", 1, 0, 9, True)
    file = tmp_path / "catalogue.db"
    file.rename(tmp_path / "away")
    mirror.start()
    file.write_text("this is no database")
    with pytest.raises(TargetError, match=r"The Iceberg table 'db\.t' can't be written: "):
        mirror.write(1, source.told[4:])
    (tmp_path / "away").replace(file)
    assert mirror.write(1, source.told[4:])
    assert mirror.rows() == in_order(source.rows.values())


def test_differences_are_found_and_repaired(tmp_path: Path, sql: Catalogue) -> None:
    """What ``floodmark verify`` asks of a target; ``test_iceberg_without_jars.py`` runs the command."""
    mirror = CatalogueMirror(tmp_path, KEY, sql, deletes="soft")
    source = filled(mirror, 6)
    source.change("delete", 5, 0, 0, False)
    assert mirror.write(1, source.told[6:])
    target = catalogue_targets(str(tmp_path), MirrorOptions.parse({**mirror.given, "deletes": "soft"}))("db.t")
    assert target.exists()
    view = target.view()
    assert (list(view.key), view.mode, view.row_estimate) == (["id"], "soft", 6)
    assert view.names() == KINDS[KEY].names
    columns = view.fitted(KINDS[KEY])
    found = pa.concat_tables([rows for part in view.parts() for rows in pickle.loads(pickle.dumps(part)).rows(columns)])
    assert in_order(found.to_pylist()) == in_order(source.rows.values())
    keys = pa.table({"id": pa.array([2, 5, 77], columns.field("id").type)})
    chosen = view.with_keys(keys, columns)
    assert chosen["id"].to_pylist() == [2]
    assert target.delete(chosen.select(["id", "_position"])) == 1
    assert target.delete(keys.append_column("_position", pa.repeat("0", 3))) == 0
    assert {row["id"] for row in mirror.scanned().to_pylist() if row["_is_deleted"]} == {2, 5}
    # The query goes on with what that has left.
    first = len(source.told)
    source.change("update", 1, 0, 9, True)
    assert mirror.write(2, source.told[first:])


def test_a_commit_that_the_catalogue_forbids(tmp_path: Path, sql: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told at once and with its reason, and nothing is lost."""
    mirror = CatalogueMirror(tmp_path, KEY, sql)
    source = filled(mirror)
    source.change("update", 1, 0, 9, True)
    calls = []

    def forbids(*given: Any) -> Any:
        calls.append(given)
        raise ForbiddenError("no rights on shop.db_t; token=hidden")

    with monkeypatch.context() as patch:
        patch.setattr(type(mirror.catalogue), "commit_table", forbids)
        with pytest.raises(TargetError, match=r"can't be written: ForbiddenError: no rights on shop\.db_t; token=…"):
            mirror.write(1, source.told[4:])
    assert len(calls) == 1
    assert mirror.write(1, source.told[4:])
    assert mirror.rows() == in_order(source.rows.values())


def test_a_commit_that_is_refused_keeps_what_others_may_have(
    tmp_path: Path, sql: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalogue says that a commit has failed, though it was done: no file of it is removed."""
    mirror = CatalogueMirror(tmp_path, KEY, sql)
    source = filled(mirror)
    source.change("update", 1, 0, 9, True)
    commit, lies = type(mirror.catalogue).commit_table, iter((True,))

    def commits(catalogue: Any, *given: Any) -> Any:
        done = commit(catalogue, *given)
        if next(lies, False):
            raise CommitFailedException("somebody was faster")
        return done

    monkeypatch.setattr(type(mirror.catalogue), "commit_table", commits)
    mirror.write(1, source.told[4:])
    assert mirror.rows() == in_order(source.rows.values())
