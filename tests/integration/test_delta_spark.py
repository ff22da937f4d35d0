"""Tables that Floodmark writes, read and changed by Delta's own Spark in between."""

from __future__ import annotations

import datetime as dt
import os
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from obstore.store import LocalStore

from floodmark.errors import TargetError
from floodmark.sinks.delta import upkeep
from floodmark.sinks.delta.format.data_files import POSITION, DataFiles
from floodmark.sinks.delta.format.log import DeltaLog
from floodmark.sinks.delta.parts import make_parts
from tests.support.delta_mirror import WHAT, Mirror, in_order
from tests.support.delta_spark import DeltaSpark
from tests.support.merging import Target, merge
from tests.support.readers import read_by_all
from tests.unit.test_last_changes import KINDS, Source, schema

FOREIGN = (
    "OPTIMIZE {t}",
    "OPTIMIZE {t} ZORDER BY (v)",
    "REORG TABLE {t} APPLY (PURGE)",
    "VACUUM {t} RETAIN 0 HOURS",
    "MERGE INTO {t} AS t USING (SELECT * FROM {t}) AS s ON {on} WHEN MATCHED AND s.v % 2 = 0 THEN UPDATE SET v = s.v",
    "UPDATE {t} SET v = v WHERE v % 3 = 0",
    "ALTER TABLE {t} ADD COLUMN (other_{n} INT)",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')",
    "DELETE FROM {t} WHERE v % 5 = 0",
)


TABLES = list(zip(KINDS, ["0", "3"], strict=True))
AGAIN = 3
"""How many statements are run a second time."""
if not os.environ.get("FLOODMARK_FULL_MATRIX"):
    # The other one has nothing that this one lacks but its simpler key.
    TABLES, AGAIN = TABLES[1:], 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("key", "compact"), TABLES)
def test_a_table_that_spark_changes_too(
    tmp_path: Path, delta_spark: DeltaSpark, key: tuple[str, ...], compact: str
) -> None:
    chance = random.Random(compact)
    source, mirror = Source(key), Mirror(tmp_path / "t", key, **{"compact.files": compact})
    table, on = f"delta.`{mirror.path}`", " AND ".join(f"t.{name} = s.{name}" for name in key)
    expected: Target = {}
    for batch, foreign in enumerate([None, *FOREIGN, *chance.sample(FOREIGN, AGAIN)]):
        if foreign is not None:
            delta_spark.run(foreign.format(t=table, on=on, n=batch))
            if foreign.startswith("DELETE"):
                for row in [row for row in expected.values() if row["v"] % 5 == 0]:
                    del expected[tuple(row[name] for name in key)]
        first = len(source.told)
        for _ in range(30):
            what = chance.choice(WHAT)
            source.change(what, chance.randrange(60), chance.randrange(60), chance.randrange(100), False)
        told = source.told[first:]
        merge(expected, told)
        assert mirror.write(batch, told, tasks=chance.choice([1, 3]))
        names = ", ".join(KINDS[key].names)
        assert in_order(delta_spark.rows(f"SELECT {names} FROM {table}").to_pylist()) == in_order(expected.values())
        assert mirror.rows() == in_order(expected.values())


INSTANT = dt.datetime(1883, 11, 18, 17, 0, 0, 1, dt.UTC)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "id": (pa.int64(), [1, 2, 3]),
    "flag": (pa.bool_(), [True, False, None]),
    "small": (pa.int16(), [-(2**15), 2**15 - 1, None]),
    "whole": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "single": (pa.float32(), [float("inf"), -0.0, None]),
    "double": (pa.float64(), [5e-324, -1.7976931348623157e308, None]),
    "exact": (
        pa.decimal128(38, 9),
        [Decimal("12345678901234567890123456789.123456789"), Decimal("-1e-9"), None],
    ),
    "short_exact": (pa.decimal128(9, 2), [Decimal("9999999.99"), Decimal("-9999999.99"), None]),
    "text": (pa.string(), ["", "a\0b\U0001f600", None]),
    "raw": (pa.binary(), [b"", bytes(range(256)), None]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "instant": (pa.timestamp("us", "UTC"), [INSTANT, dt.datetime(9999, 12, 31, 23, 59, 59, 999999, dt.UTC), None]),
    "local": (pa.timestamp("us"), [dt.datetime(1, 1, 1), dt.datetime(1582, 10, 10, 0, 0, 0, 1), None]),
    "texts": (pa.list_(pa.field("element", pa.string())), [["a", None], [], None]),
    "nested": (
        pa.list_(pa.field("element", pa.list_(pa.field("element", pa.decimal128(5, 1))))),
        [[[Decimal("1.5")], None], [[]], None],
    ),
    "Odd name, of all": (pa.string(), ["x", "y", None]),
}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_values_of_all_types(tmp_path: Path, delta_spark: DeltaSpark) -> None:
    row = pa.struct([(name, kind) for name, (kind, _) in VALUES.items()])
    told = [
        {
            "op": "c",
            "position": str(number),
            "key": ["id"],
            "after": {name: values[number] for name, (_, values) in VALUES.items()},
        }
        for number in range(3)
    ]
    kinds = [field.with_type(row) if field.name in ("before", "after") else field for field in schema(("id",))]
    parts = make_parts(
        DataFiles(LocalStore(tmp_path / "t", mkdir=True), "db.t"), [pa.Table.from_pylist(told, pa.schema(kinds))]
    )
    mirror = Mirror(tmp_path / "t", ("id",))
    assert mirror.writer.write(1, parts)
    for reader, found in read_by_all(Path(mirror.path), delta_spark).items():
        rows = sorted(found.drop_columns([POSITION]).to_pylist(), key=lambda row: row["id"])
        assert rows == [one["after"] for one in told], reader


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_clustered_table(tmp_path: Path, delta_spark: DeltaSpark) -> None:
    source = Source(("id",))
    mirror = Mirror(tmp_path / "t", ("id",), **{"cluster.by": r"db\.t:v,big", "compact.files": "0"})
    expected: Target = {}
    for batch in range(4):
        first = len(source.told)
        for number in range(20):
            source.change("insert", 20 * batch + number, 0, (number * 7) % 20, False)
            source.change("update", 20 * batch - 20 + number, 0, batch, False)
        merge(expected, source.told[first:])
        assert mirror.write(batch, source.told[first:])
        if batch == 2:
            found = delta_spark.rows(f"DESCRIBE DETAIL delta.`{mirror.path}`").to_pylist()
            assert found[0]["clusteringColumns"] == ["v", "big"]
            delta_spark.run(f"OPTIMIZE delta.`{mirror.path}`")
            assert "clustering" in mirror.own._log.state().protocol["writerFeatures"]  # type: ignore[operator]
    assert mirror.rows() == in_order(expected.values())


@pytest.mark.parametrize(
    ("columns", "message"), [("V", "no such column. Did you mean 'v'"), ("exact", "by which no table can be clustered")]
)
def test_columns_that_no_table_can_be_clustered_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str, message: str
) -> None:
    kind = pa.struct([*KINDS["id",], pa.field("exact", pa.decimal128(5, 2))])
    monkeypatch.setitem(KINDS, ("id",), kind)
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **{"cluster.by": f".*:id,{columns}"})
    source.change("insert", 1, 0, 5, False)
    with pytest.raises(TargetError, match=message):
        mirror.write(1, source.told)
    assert not DeltaTable.is_deltatable(mirror.path)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("options", [("on", "off", "on"), ("off", "on")])
def test_deletion_vectors_are_switched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_spark: DeltaSpark, options: tuple[str, ...]
) -> None:
    """The statements that the error names work, and the table goes on as it was."""
    monkeypatch.setattr(upkeep, "_CHECKPOINT_EVERY", 2)
    chance = random.Random(str(options))
    source, mirror = Source(("id",)), Mirror(tmp_path / "t", ("id",), **{"deletion.vectors": options[0]})
    expected: Target = {}
    batch = 0
    for option in options:
        if batch:
            mirror.options = {"deletion.vectors": option}
            mirror.start()
            with pytest.raises(TargetError, match="deletion vectors") as told:
                mirror.write(batch, source.told[-1:])
            for statement in re.findall(r"ALTER TABLE … (?:SET[^)]*\)|DROP FEATURE \w+)", told.value.cure):
                delta_spark.run(statement.replace("…", f"delta.`{mirror.path}`"))
        for _ in range(4):
            first = len(source.told)
            for _ in range(30):
                source.change(chance.choice(WHAT), chance.randrange(60), chance.randrange(60), batch, False)
            assert mirror.write(batch, source.told[first:], tasks=2)
            merge(expected, source.told[first:])
            assert mirror.rows() == in_order(expected.values())
            batch += 1
        state = DeltaLog(LocalStore(mirror.path)).state()
        assert any(file.vector is not None for file in state.files.values()) == (option == "on")
        assert (Path(mirror.path) / "_delta_log" / f"{state.version // 2 * 2:020d}.checkpoint.parquet").exists()
        if option == "off":
            assert DeltaTable(mirror.path).to_pyarrow_table().num_rows == len(expected)
    for reader, found in read_by_all(Path(mirror.path), delta_spark).items():
        assert in_order(found.drop_columns([POSITION]).to_pylist()) == in_order(expected.values()), reader
