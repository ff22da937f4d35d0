"""A query that keeps Iceberg tables is killed at random points, while orders are placed, paid and delivered."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.sinks.soft_deletes import DELETED
from floodmark.spark.iceberg.columns import RENAMED
from floodmark.spark.targets.names import catalog_name
from tests.chaos.killing import Place, kill_and_end
from tests.chaos.test_mirror_kills import KILLS
from tests.support import tpcc
from tests.support.driver import Driver
from tests.support.iceberg_spark import LAKE, catalogue_in, properties, running_iceberg_spark
from tests.support.tpcc import Terminal

SCHEMA = f"{LAKE}.shop"
OWN = {"format": "iceberg", "catalog.schema": SCHEMA, "compact.files": "4"}
SPARK = {**OWN, "engine": "spark"}
FULL = bool(os.environ.get("FLOODMARK_FULL_MATRIX"))
CASES = {
    "vectors": OWN,
    "copies": {**OWN, "deletion.vectors": "off"},
    "soft": {**OWN, "deletes": "soft"},
    "vectors by Spark": SPARK,
    "copies by Spark": {**SPARK, "deletion.vectors": "off"},
    "position deletes by Spark": {**SPARK, "table.properties": ".*:format-version=2"},
}


@pytest.mark.skipif(not FULL, reason="takes minutes; make chaos sets FLOODMARK_FULL_MATRIX")
@pytest.mark.timeout(max(900, 60 * KILLS))
@pytest.mark.parametrize("place", ["pg18"], indirect=True)
@pytest.mark.parametrize("mirrors", CASES.values(), ids=CASES)
def test_orders_survive_kills(place: Place, mirrors: dict[str, str], tmp_path: Path, pg18: EmbeddedPostgres) -> None:
    database, _ = place
    catalogues = {LAKE: {"type": "jdbc", **catalogue_in(pg18, tmp_path / "lake")}}
    terminals = [Terminal(database, seed) for seed in (1, 2)]
    terminals[0].create()
    with running_iceberg_spark(catalogues) as spark:
        spark.run(f"CREATE SCHEMA {SCHEMA}")
        start = partial(Driver, work=tmp_path, mirrors=mirrors, properties=properties(catalogues))
        kill_and_end(place, start, KILLS, terminals)
        for table in tpcc.KEYS:
            expected = in_order([tuple(row.values()) for row in tpcc.held_by(database, table)])
            rows = spark.rows(f"SELECT * FROM {catalog_name(SCHEMA, f'{database.schema}.{table}')}")
            own = [name for name in rows.column_names if name[0] != "_"]
            living = [row for row in rows.to_pylist() if not row.get(RENAMED[DELETED])]
            assert in_order([tuple(row[name] for name in own) for row in living]) == expected, table
    assert sum(terminal.transactions for terminal in terminals) > 10 * KILLS


def in_order(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=str)
