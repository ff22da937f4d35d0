"""A query that keeps Delta tables is killed at random points, while tables get and lose columns and are emptied."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.folders import folder_name
from floodmark.sinks.history import CURRENT, VALID_FROM, VALID_TO, VALIDITY
from floodmark.sinks.soft_deletes import DELETED
from tests.chaos.killing import ALTERATIONS, COMPARED, SPARE, Place, alter, judge, kill_and_end
from tests.support import tpcc
from tests.support.databases import Postgres
from tests.support.delta_spark import DeltaSpark
from tests.support.driver import Driver
from tests.support.readers import read_by_all
from tests.support.tpcc import Terminal
from tests.support.workload import KEYS, Workload, held_rows

KILLS = int(os.environ.get("FLOODMARK_MIRROR_KILLS", "2"))
SOFT, COPIED = {"deletes": "soft"}, {"deletion.vectors": "off"}
HISTORY = {"history": "on"}
_PARTITIONS = r"Mixed Case:part; .*\.orders:o_carrier_id; .*\.customer:c_delivery_cnt,c_d_id; .*\.history:h_d_id"
PARTITIONED = {"partition.by": rf".*\.{_PARTITIONS}"}
SPARK = {"engine": "spark"}
CASES: list[Any] = [("pg18", SOFT), pytest.param("mysql", COPIED, marks=pytest.mark.long)]
ORDERS: list[Any] = [pytest.param("pg18", HISTORY, marks=pytest.mark.long)]
if os.environ.get("FLOODMARK_FULL_MATRIX"):
    servers = ("pg18", "mysql", "mariadb")
    modes: tuple[dict[str, str], ...] = ({}, SOFT, COPIED, HISTORY, PARTITIONED, SPARK, SPARK | COPIED, SPARK | SOFT)
    CASES = ORDERS = list(product(servers, modes))
Mirrors = dict[str, str]


@pytest.mark.timeout(max(900, 40 * KILLS))
@pytest.mark.parametrize(("place", "mirrors"), CASES, indirect=["place"])
def test_mirrors_survive_kills(place: Place, mirrors: Mirrors, tmp_path: Path, delta_spark: DeltaSpark) -> None:
    database, options = place
    compared = dict(COMPARED)
    if SPARK.items() <= mirrors.items():
        # Spark takes no spaces in names of a Delta table's columns.
        del compared["Mixed Case"]
        tables = ", ".join(rf"{database.schema}\.{table}" for table in compared)
        place = database, {**options, "table.include.list": tables}
    workload = Workload(database, 1, alters=False)
    workload.create(6000)
    alter(database, (SPARE,))
    kill_and_end(place, partial(Driver, work=tmp_path, mirrors=mirrors), KILLS, [workload], ALTERATIONS)
    judge(place, str(tmp_path / "out"), tmp_path)
    for table, columns in compared.items():
        name = next(name for name in KEYS if name.strip('"') == table)
        chosen = [one.strip('"') for one in (*KEYS[name], *columns)]
        expected = [(*key, *values) for key, values in held_rows(database, table, columns).items()]
        target = tmp_path / "out" / folder_name(f"{database.schema}.{table}")
        for reader, rows in read_by_all(target, delta_spark).items():
            living = living_of(rows, chosen[: len(KEYS[name])])
            assert (len(living) < rows.num_rows) == (SOFT.items() <= mirrors.items() or mirrors == HISTORY), (
                reader,
                table,
            )
            found = sorted((tuple(row[one] for one in chosen) for row in living), key=str)
            assert found == sorted(expected, key=str), (reader, table)


@pytest.mark.timeout(max(900, 40 * KILLS))
@pytest.mark.parametrize(("place", "mirrors"), ORDERS, indirect=["place"])
def test_orders_survive_kills(place: Place, mirrors: Mirrors, tmp_path: Path, delta_spark: DeltaSpark) -> None:
    database, _ = place
    terminals = [Terminal(database, seed) for seed in (1, 2)]
    terminals[0].create()
    kill_and_end(place, partial(Driver, work=tmp_path, mirrors=mirrors), KILLS, terminals)
    judge(place, str(tmp_path / "out"), tmp_path)
    for table, key in tpcc.KEYS.items():
        expected = sorted((tuple(row.values()) for row in tpcc.held_by(database, table)), key=str)
        for reader, rows in read_by_all(tmp_path / "out" / f"{database.schema}.{table}", delta_spark).items():
            own = [name for name in rows.column_names if name[0] != "_" and name not in VALIDITY.names]
            living = living_of(rows, key)
            found = sorted((tuple(row[name] for name in own) for row in living), key=str)
            if key or isinstance(database, Postgres):
                assert found == expected, (reader, table)
            else:
                # A snapshot that goes on after a restart reads rows again (docs/limits.md).
                assert list(dict.fromkeys(found)) == expected, (reader, table)
                inserted = [row["h_number"] for row in living if row["_op"] == "c"]
                assert len(inserted) == len(set(inserted)), (reader, table)
    assert sum(terminal.transactions for terminal in terminals) > 10 * KILLS


def living_of(rows: pa.Table, key: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows that the source still has; of a history, prove that its versions don't overlap."""
    found = [row for row in rows.to_pylist() if not row.get(DELETED)]
    if VALID_TO not in rows.column_names or not key:
        return found
    found.sort(key=lambda row: [str([row[name] for name in key]), row[POSITION]])
    for one, other in pairwise(found):
        if all(one[name] == other[name] for name in key):
            assert not one[CURRENT], (one, other)
            assert one[POSITION] < other[POSITION], (one, other)
            assert one[VALID_FROM] <= one[VALID_TO] <= other[VALID_FROM], (one, other)
    assert all(row[CURRENT] == (row[VALID_TO] is None) for row in found)
    return [row for row in found if row[CURRENT]]
