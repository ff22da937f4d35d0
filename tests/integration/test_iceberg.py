"""Tables of mirrors in Iceberg's format: what every writer must do, and what this one does beside it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import TargetChangedError, TargetError, TargetUnfitError
from floodmark.sinks.delta.parts import Part, make_parts
from tests.support.delta_mirror import EMPTY, WHAT, follow, in_order, more, typed
from tests.support.delta_spark import TABLE, DeltaSpark
from tests.support.iceberg_mirror import IcebergMirror
from tests.support.iceberg_readers import metadata_of, read_by_duckdb, read_by_pyiceberg
from tests.support.iceberg_rest import running_rest_catalogue
from tests.support.iceberg_spark import LAKE, REST, catalogue_in, running_iceberg_spark
from tests.support.losing_proxy import LosingProxy, Loss, losing_proxy
from tests.support.merging import Target, merge
from tests.unit.test_last_changes import KINDS, Source, schema

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
only_floodmark = pytest.mark.parametrize("engine", ["floodmark"], indirect=True)
"""What only its own engine does."""
KEY = ("id",)
V2 = {"table.properties": ".*:format-version=2"}
FULL = bool(os.environ.get("FLOODMARK_FULL_MATRIX"))
WAYS: dict[str, tuple[str, tuple[str, ...], dict[str, str], int]] = {
    "vectors": (LAKE, ("id",), {"compact.files": "3"}, 1),
    "served": (REST, ("b", "a"), {**V2, "compact.files": "2"}, 2),
    "copy on write": (LAKE, ("id",), {"deletion.vectors": "off", "compact.files": "3"}, 3),
    "served vectors": (REST, ("id",), {}, 4),
}


@pytest.fixture(scope="module")
def proxy(pg18: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LosingProxy]:
    """Return what is in front of a server with a catalogue."""
    backend = catalogue_in(pg18, tmp_path_factory.mktemp("served"))
    with (
        running_rest_catalogue({**backend, "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog"}) as uri,
        losing_proxy(uri) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def lake(pg18: EmbeddedPostgres, proxy: LosingProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaSpark]:
    """Return Iceberg's Spark, with a catalogue in PostgreSQL and one behind a server."""
    own = catalogue_in(pg18, tmp_path_factory.mktemp("lake"))
    served = {"type": "rest", "uri": proxy.uri, "cache-enabled": "false"}
    with running_iceberg_spark({LAKE: {"type": "jdbc", **own}, REST: served}) as spark:
        yield spark


def new_schema(lake: DeltaSpark, catalogue: str) -> str:
    name = f"{catalogue}.shop_{uuid4().hex[:8]}"
    lake.run(f"CREATE SCHEMA {name}")
    return name


@pytest.fixture(autouse=True, params=["floodmark", pytest.param("spark", marks=pytest.mark.long)])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what writes the tables."""
    name: str = request.param
    monkeypatch.setattr(IcebergMirror, "engine", name)
    return name


@pytest.fixture
def shop(lake: DeltaSpark) -> str:
    """Return a schema of the catalogue in PostgreSQL without tables."""
    return new_schema(lake, LAKE)


@pytest.mark.parametrize("engine", ["floodmark", "spark"], indirect=True)
@pytest.mark.parametrize(
    ("catalogue", "key", "options", "seed"),
    [pytest.param(*WAYS[name], id=name) for name in list(WAYS)[: 4 if FULL else 2]],
)
def test_a_table_follows(
    tmp_path: Path, lake: DeltaSpark, catalogue: str, key: tuple[str, ...], options: dict[str, str], seed: int
) -> None:
    mirror = IcebergMirror(tmp_path / TABLE, key, lake, new_schema(lake, catalogue), **options)
    expected = follow(mirror, seed, 6)
    assert not list(Path(mirror.path).glob("*.parquet"))
    metadata, names = metadata_of(lake, mirror.table), KINDS[key].names
    for read in (read_by_pyiceberg, read_by_duckdb):
        assert in_order(read(metadata).select(names).to_pylist()) == in_order(expected.values()), read


def test_a_table_without_a_key_gets_each_row_once(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    for number in range(4):
        source.change("insert", number, 0, number, False)
    keyless = [{**row, "key": []} for row in source.told]
    for batch in range(2):
        for _ in range(2):
            mirror.writer.write(batch, typed(mirror, keyless[2 * batch : 2 * batch + 2]))
            mirror.start()
    found = lake.rows(f"SELECT id, _op FROM {mirror.table} ORDER BY id").to_pylist()
    assert [tuple(row.values()) for row in found] == [(number, "c") for number in range(4)]


def test_soft_deletes(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop, deletes="soft")
    for number in range(4):
        source.change("insert", number, 0, number, False)
    assert mirror.write(0, source.told)
    first = len(source.told)
    source.change("delete", 1, 0, 0, False)
    source.change("update", 2, 0, 5, True)
    assert mirror.write(1, source.told[first:])
    found = lake.rows(f"SELECT id, v, big FROM {mirror.table} WHERE NOT _is_deleted").to_pylist()
    assert in_order(found) == in_order(source.rows.values())
    assert len(mirror.rows()) == 4
    source.change("truncate", 0, 0, 0, False)
    source.change("insert", 7, 0, 7, False)
    assert mirror.write(2, source.told[-2:])
    found = lake.rows(f"SELECT id FROM {mirror.table} WHERE NOT _is_deleted").to_pylist()
    assert found == [{"id": 7}]
    assert len(mirror.rows()) == 5
    mirror.writer = mirror.another("test")
    with pytest.raises(TargetError, match="was made with the mirror's option deletes=soft, but now it is hard"):
        mirror.write(3, source.told[-1:])


@pytest.mark.parametrize("losses", [["answer"] * 2, ["request", None, "answer"], [None, "answer"], [None, "request"]])
def test_commits_whose_outcome_is_not_known(
    tmp_path: Path, lake: DeltaSpark, engine: str, proxy: LosingProxy, losses: list[Loss | None]
) -> None:
    if engine == "floodmark":
        # It needs one commit, not two, and none after one whose answer was lost.
        losses = [loss for loss in losses if loss is not None]
        losses = losses[: losses.index("answer") + 1] if "answer" in losses else losses
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, new_schema(lake, REST))
    for batch in range(3):
        source.change("insert", batch, 0, batch, False)
        proxy.losses[:] = losses if batch else []
        mirror.writer.write(batch, typed(mirror, [{**source.told[-1], "key": []}]))
        assert not proxy.losses
    found = lake.rows(f"SELECT id FROM {mirror.table} ORDER BY id").to_pylist()
    assert [row["id"] for row in found] == [0, 1, 2]


def test_two_drivers_of_one_query(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    told = []
    for number in range(6):
        source.change("insert", number, 0, number, False)
        told.append([{**source.told[-1], "key": []}])
    first, second = mirror.writer, mirror.another("test")
    assert first.write(0, typed(mirror, told[0]))
    assert not second.write(0, typed(mirror, told[0]))
    assert second.write(1, typed(mirror, told[1]))
    assert not first.write(1, typed(mirror, told[1]))
    assert first.write(2, typed(mirror, told[2]))
    for writer in (second, first):
        with pytest.raises(TargetChangedError, match="The checkpoint is older than the Iceberg table"):
            writer.write(1, typed(mirror, told[1]))
    assert second.write(3, typed(mirror, told[3]))
    found = lake.rows(f"SELECT id FROM {mirror.table} ORDER BY id").to_pylist()
    assert [row["id"] for row in found] == [0, 1, 2, 3]


def test_a_label_outlives_compaction_and_expiry(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    """What tells a repeated micro-batch must be there when its snapshot is not."""
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    keyless = []
    for batch in range(3):
        source.change("insert", batch, 0, batch, False)
        keyless = [{**row, "key": []} for row in source.told]
        assert mirror.writer.write(batch, typed(mirror, keyless[-1:]))
    lake.run(f"CALL {LAKE}.system.rewrite_data_files(table => '{shop}.db_t', options => map('rewrite-all', 'true'))")
    lake.run(
        f"CALL {LAKE}.system.expire_snapshots(table => '{shop}.db_t', older_than => TIMESTAMP '2100-01-01', "
        "retain_last => 1)"
    )
    mirror.start()
    assert not mirror.writer.write(2, typed(mirror, keyless[-1:]))
    source.change("insert", 3, 0, 3, False)
    assert mirror.writer.write(3, typed(mirror, [{**source.told[-1], "key": []}]))
    (found,) = lake.rows(f"SELECT count(*) AS n FROM {mirror.table}").to_pylist()
    assert found["n"] == 4


def test_a_checkpoint_that_is_older_than_the_table(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    for number in range(4):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told[:1])
    assert mirror.write(2, source.told[1:2])
    for batch, told in [(1, source.told[:1]), (2, source.told[1:3])]:
        mirror.start()
        with pytest.raises(TargetChangedError, match="The checkpoint is older than the Iceberg table"):
            mirror.write(batch, told)
    assert not mirror.write(2, source.told[1:2])
    assert mirror.write(3, source.told[2:])
    assert len(mirror.rows()) == 4


def test_two_queries_with_one_table(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    for number in range(4):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told[:1])
    first, mirror.writer = mirror.writer, mirror.another("other")
    with pytest.raises(TargetChangedError, match="has rows that this query has not written"):
        mirror.write(0, source.told[1:2])
    second = mirror.writer = mirror.another("other", **EMPTY)
    assert mirror.write(0, source.told[1:2])
    assert [row["id"] for row in mirror.rows()] == [1]
    for writer in (first, mirror.another("test", **EMPTY)):
        mirror.writer = writer
        with pytest.raises(TargetChangedError, match="Another query has emptied the Iceberg table"):
            mirror.write(3, source.told[2:3])
    mirror.writer = second
    assert mirror.write(1, source.told[3:4])
    assert [row["id"] for row in mirror.rows()] == [1, 3]


@pytest.mark.parametrize("then", ["nothing", "append", "expire"])
def test_a_table_that_is_rolled_back(tmp_path: Path, lake: DeltaSpark, shop: str, then: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    for number in range(4):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told[:1])
    before = mirror.snapshots()[-1]["snapshot_id"]
    assert mirror.write(2, source.told[1:2])
    lake.run(f"CALL {LAKE}.system.rollback_to_snapshot('{shop}.db_t', {before})")
    if then != "nothing":
        lake.run(f"INSERT INTO {mirror.table} SELECT * FROM {mirror.table} WHERE id < 0")
        lake.run(f"DELETE FROM {mirror.table} WHERE id = 0 AND v > 5")
    if then == "expire":
        mirror.start()
    for batch, told in ((2, source.told[1:2]), (3, source.told[2:3])):
        with pytest.raises(TargetChangedError, match="was brought back to an earlier snapshot or replaced"):
            mirror.write(batch, told)
    mirror.writer = mirror.another("new", **EMPTY)
    assert mirror.write(0, source.told)
    assert len(mirror.rows()) == 4


def test_others_write_in_between(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    for number in range(4):
        source.change("insert", number, 0, number, False)
    assert mirror.write(0, source.told)
    statements = [
        f"DELETE FROM {mirror.table} WHERE id = 0",
        f"ALTER TABLE {mirror.table} ADD COLUMN theirs string",
        f"UPDATE {mirror.table} SET theirs = 'x' WHERE id = 1",
        f"ALTER TABLE {mirror.table} CREATE TAG kept",
        f"ALTER TABLE {mirror.table} CREATE BRANCH apart",
        f"INSERT INTO {mirror.table}.branch_apart SELECT * FROM {mirror.table}",
    ]
    for batch, statement in enumerate(statements, start=1):
        lake.run(statement)
        source.change("update", 2, 0, batch, False)
        assert mirror.write(batch, source.told[-1:])
        assert {"id": 2, "v": batch, "big": f"big{batch}"} in mirror.rows()
    assert sorted(row["id"] for row in mirror.rows()) == [1, 2, 3]


def test_a_table_that_is_dropped(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    source.change("insert", 1, 0, 1, False)
    assert mirror.write(0, source.told)
    assert mirror.listener.told == [("missing", "db.t", "True"), ("exists", "db.t")]
    lake.run(f"DROP TABLE {mirror.table}")
    source.change("insert", 2, 0, 2, False)
    assert mirror.write(1, source.told[-1:])
    assert mirror.listener.told[2:] == [("missing", "db.t", "True")]
    # Another tool makes it again, without rows.
    lake.run(f"DROP TABLE {mirror.table}")
    lake.run(f"CREATE TABLE {mirror.table} (id bigint, v int, theirs string) USING iceberg")
    source.change("insert", 3, 0, 3, False)
    assert mirror.write(2, source.told[-1:])
    assert mirror.listener.told[3:] == [("missing", "db.t", "True")]
    assert [row["id"] for row in mirror.rows()] == [3]


def test_a_column_is_added(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    for number in range(3):
        source.change("insert", number, 0, number, False)
    assert mirror.write(1, source.told)
    first = len(source.told)
    source.change("update", 1, 0, 5, True)
    source.change("delete", 2, 0, 0, False)
    told = source.told[first:]
    told[0]["after"]["more"] = 7
    assert mirror.writer.write(2, more(mirror, told))
    assert mirror.listener.told[2:] == [("columns", "db.t", "more")]
    found = lake.rows(f"SELECT id, v, big, more FROM {mirror.table} ORDER BY id").to_pylist()
    assert found == [
        {"id": 0, "v": 0, "big": "big0", "more": None},
        {"id": 1, "v": 5, "big": "big1", "more": 7},
    ]
    with pytest.raises(TargetUnfitError, match=r"'MORE' can't be added to the Iceberg table 'db\.t', which has 'more'"):
        mirror.writer.write(3, more(mirror, told, name="MORE"))


def test_types_get_wider(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    expected: Target = {}
    kinds = [pa.int16(), pa.int32(), pa.int64(), pa.int16()]
    for batch, kind in enumerate(kinds):
        first = len(source.told)
        source.change("insert", batch, 0, batch, False)
        source.change("update", 0, 0, 10 * batch, True)
        merge(expected, source.told[first:])
        assert mirror.writer.write(batch, typed(mirror, source.told[first:], v=kind))
        assert mirror.rows() == in_order(expected.values())
    source.change("insert", 9, 0, 9, False)
    with pytest.raises(TargetUnfitError, match=r"'v' of the Iceberg table 'db\.t' is long, but the source's is dec"):
        mirror.writer.write(9, typed(mirror, source.told[-1:], v=pa.decimal128(25, 2)))


@pytest.mark.parametrize("name", ["_pos", "_Deleted"])
def test_names_that_no_column_can_have(tmp_path: Path, lake: DeltaSpark, shop: str, name: str) -> None:
    mirror = IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    columns = pa.schema([("id", pa.int64()), (name, pa.int64())])
    part = Part(list(KEY), columns, pa.table({"id": [1], "_position": ["1"]}))
    with pytest.raises(TargetUnfitError, match=f"The column '{name}' of the table .* can't be in an Iceberg table"):
        mirror.writer.write(0, [part])


def test_odd_names(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    for batch, name in enumerate(["a.b", "`", "é;--'", '"{x}', "a\nb"]):
        source.change("insert", batch, 0, batch, False)
        row = {**source.told[-1], "after": {**source.told[-1]["after"], name: batch}}
        assert mirror.writer.write(batch, more(mirror, [row], name=name))
        quoted = "`" + name.replace("`", "``") + "`"
        (found,) = lake.rows(f"SELECT {quoted} AS n FROM {mirror.table} WHERE id = {batch}").to_pylist()
        assert found["n"] == batch


def test_another_key(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    source.change("insert", 1, 0, 1, False)
    source.change("insert", 2, 0, 2, False)
    assert mirror.write(1, source.told[:1])
    with pytest.raises(TargetUnfitError, match=r"was made for the key \(id\), but the source's is \(v\)"):
        mirror.writer.write(2, typed(mirror, [{**source.told[1], "key": ["v"]}]))


def test_another_tables_name(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    source.change("insert", 1, 0, 1, False)
    lake.run(f"CREATE TABLE {mirror.table} (id bigint) USING iceberg TBLPROPERTIES ('floodmark.table' = 'db_t')")
    with pytest.raises(TargetError, match=r"The Iceberg table for 'db\.t' has the name of the one for 'db_t'"):
        mirror.write(1, source.told)


def test_values_of_all_types(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    values: dict[str, tuple[pa.DataType, Any]] = {
        "yes": (pa.bool_(), True),
        "tiny": (pa.int8(), -128),
        "small": (pa.int16(), -32768),
        "whole": (pa.int64(), -(2**63)),
        "real": (pa.float32(), 0.5),
        "double": (pa.float64(), float("-inf")),
        "few": (pa.decimal128(9, 2), Decimal("-1234567.89")),
        "more": (pa.decimal128(18, 0), Decimal("999999999999999999")),
        "most": (pa.decimal128(38, 10), Decimal("-9999999999999999999999999999.0123456789")),
        "day": (pa.date32(), date(1, 1, 1)),
        "plain": (pa.timestamp("us"), datetime(1500, 2, 3, 4, 5, 6, 7)),
        "moment": (pa.timestamp("us", "UTC"), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
        "text": (pa.string(), "é\U0001f600\0'"),
        "bytes": (pa.binary(), b"\x00\xff"),
        "numbers": (pa.list_(pa.field("element", pa.int16())), [1, None, -3]),
        "texts": (pa.list_(pa.field("element", pa.string())), []),
    }
    row = pa.struct([*KINDS[KEY], *((name, kind) for name, (kind, _) in values.items())])
    columns = [one.with_type(row) if one.name in ("before", "after") else one for one in schema(KEY)]
    for number in range(3):
        source.change("insert", number, 0, number, False)
    source.change("update", 1, 0, 7, False)
    given = [{name: value for name, (_, value) in values.items()}, {}, {}, {}]
    given[3] = given[0]
    told = [
        {**row, "after": {**row["after"], **dict.fromkeys(values), **more}}
        for row, more in zip(source.told, given, strict=True)
    ]
    for batch, part in enumerate((told[:3], told[3:])):
        rows = [pa.Table.from_pylist(part, pa.schema(columns))]
        assert mirror.writer.write(batch, make_parts(mirror.task_files(), rows))
    full = {name: value for name, (_, value) in values.items()}
    expected = [full, full, dict.fromkeys(values)]
    # PySpark itself has no moments so late.
    chosen = ", ".join(name if name != "moment" else "CAST(moment AS string) AS moment" for name in values)
    found = lake.rows(f"SELECT {chosen} FROM {mirror.table} ORDER BY id").to_pylist()
    assert [row | {"moment": None} for row in found] == [row | {"moment": None} for row in expected]
    metadata = metadata_of(lake, mirror.table)
    for read in (read_by_pyiceberg, read_by_duckdb):
        assert read(metadata).sort_by("id").select(list(values)).to_pylist() == expected, read


@only_floodmark
def test_tables_that_only_spark_writes(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source = Source(KEY)
    source.change("insert", 1, 0, 1, False)
    columns = "id bigint, v int, big string, _position string"
    mirror = IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    lake.run(f"CREATE TABLE {mirror.table} ({columns}) USING iceberg PARTITIONED BY (bucket(4, id))")
    with pytest.raises(TargetUnfitError, match=r"The Iceberg table 'db\.t' has partitions"):
        mirror.write(0, source.told)
    lake.run(f"DROP TABLE {mirror.table}")
    lake.run(f"CREATE TABLE {mirror.table} (theirs string NOT NULL, {columns}) USING iceberg")
    with pytest.raises(TargetUnfitError, match=r"The column 'theirs' of the Iceberg table 'db\.t' can't be null"):
        mirror.write(0, source.told)


@only_floodmark
def test_a_data_file_is_missing(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    for number in range(2):
        source.change("insert", number, 0, number, False)
    assert mirror.write(0, source.told)
    (file,) = (tmp_path / TABLE / "data").glob("*.parquet")
    away = file.rename(tmp_path / "away")
    mirror.start()
    source.change("update", 1, 0, 5, False)
    with pytest.raises(RuntimeError, match=file.name):
        mirror.write(1, source.told[-1:])
    away.rename(file)
    assert mirror.write(1, source.told[-1:])
    assert mirror.rows() == in_order(source.rows.values())


@only_floodmark
@pytest.mark.parametrize("options", [V2, {}])
def test_engines_change(tmp_path: Path, lake: DeltaSpark, shop: str, options: dict[str, str]) -> None:
    chance, source, expected, batch = random.Random(5), Source(KEY), Target(), 0
    mirror = IcebergMirror(tmp_path / TABLE, KEY, lake, shop, **options)
    for engine in ("floodmark", "spark", "floodmark", "spark", "floodmark"):
        mirror.engine = engine
        mirror.start()
        for _ in range(2):
            first = len(source.told)
            for _ in range(12):
                source.change(
                    chance.choice(WHAT), chance.randrange(9), chance.randrange(9), chance.randrange(99), False
                )
            told = source.told[first:]
            merge(expected, told)
            if options and engine == "floodmark" and batch in (4, 8):
                with pytest.raises(TargetUnfitError, match="has delete files that aren't deletion vectors"):
                    mirror.write(batch, told)
                for what in ("rewrite_data_files", "rewrite_position_delete_files"):
                    lake.run(
                        f"CALL {LAKE}.system.{what}(table => '{shop}.db_t', options => map('rewrite-all', 'true'))"
                    )
            assert mirror.write(batch, told)
            batch += 1
            assert mirror.rows() == in_order(expected.values())


@only_floodmark
def test_columns_are_renamed_by_others(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop)
    for number in range(3):
        source.change("insert", number, 0, number, False)
    assert mirror.write(0, source.told)
    lake.run(f"ALTER TABLE {mirror.table} RENAME COLUMN v TO w")
    lake.run(f"ALTER TABLE {mirror.table} DROP COLUMN big")
    source.change("update", 1, 0, 5, False)
    assert mirror.write(1, source.told[-1:])
    found = lake.rows(f"SELECT id, w, v, big FROM {mirror.table} ORDER BY id").to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (0, 0, None, None),
        (1, None, 5, "big5"),
        (2, 2, None, None),
    ]


@only_floodmark
def test_where_files_are(tmp_path: Path, lake: DeltaSpark, shop: str) -> None:
    source, mirror = Source(KEY), IcebergMirror(tmp_path / TABLE, KEY, lake, shop, **{"compact.files": "2"})
    for number in range(6):
        source.change("insert", number, 0, number, False)
        if number:
            source.change("update", number - 1, 0, 50, False)
    for batch in range(4):
        assert mirror.write(batch, source.told[3 * batch : 3 * batch + 3])
    lake.run(f"INSERT INTO {mirror.table} SELECT id + 100, v, big, _position FROM {mirror.table}")
    files = lake.rows(f"SELECT file_path FROM {mirror.table}.all_files").to_pylist()
    folder = f"{tmp_path / TABLE / 'data'}/"
    assert files
    assert all(row["file_path"].removeprefix("file://").removeprefix("file:").startswith(folder) for row in files)
    assert not list((tmp_path / TABLE).glob("*.parquet"))
    lake.run(
        f"CALL {LAKE}.system.expire_snapshots(table => '{shop}.db_t', older_than => TIMESTAMP '2100-01-01', "
        "retain_last => 1)"
    )
    place = f"file://{folder}"
    lake.run(
        f"CALL {LAKE}.system.remove_orphan_files(table => '{shop}.db_t', location => '{place}', "
        "older_than => TIMESTAMP '2020-01-01')"
    )
    left = {row["file_path"] for row in lake.rows(f"SELECT file_path FROM {mirror.table}.files").to_pylist()}
    assert {Path(path.removeprefix("file://").removeprefix("file:")) for path in left} == set(
        Path(folder).glob("[!.]*")
    )
    assert len(mirror.rows()) == 12
