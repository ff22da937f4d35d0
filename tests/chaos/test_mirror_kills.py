"""A query that keeps Delta tables is killed at random points, while tables get and lose columns and are emptied."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import chain, islice, pairwise, product, repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.folders import folder_name
from floodmark.sinks.history import CURRENT, VALID_FROM, VALID_TO, VALIDITY
from floodmark.sinks.soft_deletes import DELETED
from tests.support import tpcc
from tests.support.databases import Database, Postgres
from tests.support.delta_spark import DeltaSpark
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.readers import read_by_all
from tests.support.tpcc import Terminal
from tests.support.worker import Worker
from tests.support.workload import KEYS, UNHURRIED, Workload, held_rows

KILLS = int(os.environ.get("FLOODMARK_MIRROR_KILLS", "3"))
COMPARED = {
    "plain": ("v", "note", "extra"),
    "Mixed Case": ("v", "amount"),
    "toasted": ("v", "big", "label"),
    "full_identity": ("v",),
}
SPARE = "ALTER TABLE plain ADD spare integer DEFAULT 1"
ALTERATIONS = (
    # What the ALTER makes of the other rows is in no log.
    ("ALTER TABLE plain ADD extra integer DEFAULT 7", "UPDATE plain SET extra = -id WHERE id % 3 = 0"),
    ("TRUNCATE TABLE full_identity",),
    ("ALTER TABLE plain DROP spare", "ALTER TABLE toasted ADD label varchar(9) DEFAULT 'none' NOT NULL"),
    ("TRUNCATE TABLE toasted",),
)


SOFT, COPIED = {"deletes": "soft"}, {"deletion.vectors": "off"}
Case = tuple[str, dict[str, str]]
HISTORY = {"history": "on"}
_PARTITIONS = r"Mixed Case:part; .*\.orders:o_carrier_id; .*\.customer:c_delivery_cnt,c_d_id; .*\.history:h_d_id"
PARTITIONED = {"partition.by": rf".*\.{_PARTITIONS}"}
SPARK = {"engine": "spark"}
CASES: list[Case] = [("pg18", SOFT), ("mysql", {}), ("mariadb", COPIED)]
ORDERS: list[Case] = [("pg18", HISTORY)]
if os.environ.get("FLOODMARK_FULL_MATRIX"):
    servers = ("pg18", "mysql", "mariadb")
    modes: tuple[dict[str, str], ...] = ({}, SOFT, COPIED, HISTORY, PARTITIONED, SPARK, SPARK | COPIED, SPARK | SOFT)
    CASES = ORDERS = list(product(servers, modes))
Place = tuple[Database, dict[str, str]]
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
    workload = Workload(database, 1, alters=False, pauses_s=UNHURRIED)
    workload.create(6000)
    alter(database, (SPARE,))
    kill_and_end(place, mirrors, tmp_path, [workload], ALTERATIONS)
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
    kill_and_end(place, mirrors, tmp_path, terminals, ())
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


def kill_and_end(
    place: Place,
    mirrors: Mirrors,
    folder: Path,
    workers: Sequence[Worker],
    alterations: Sequence[tuple[str, ...]],
    properties: dict[str, str] | None = None,
) -> None:
    """Kill a query again and again while rows and tables are changed, and let it come to the end then.

    Args:
        properties: further ones of its Spark.
    """
    database, options = place
    chance = random.Random(database.schema)
    options = {**options, "format": "arrow", "skipped.operations": "none"}
    small = {**options, "snapshot.chunk.bytes": "65536", "segment.bytes": "65536", "max.batch.rows": "2000"}
    for worker in workers:
        worker.start()
    try:
        for statements in islice(chain(alterations, repeat(())), KILLS):
            driver = Driver(small, folder, mirrors=mirrors, properties=properties)
            assert driver.wait_for_batches(driver.batches() + chance.randint(1, 3), within(180)), driver.log()[-4000:]
            alter(database, statements)
            driver.wait_for_batches(1 << 30, chance.random() * 2)
            driver.kill()
    finally:
        for worker in workers:
            worker.stop()
    # What the first one asks for, because of new columns, the second one reads.
    for _ in range(2):
        last = Driver(options, folder, available_now=True, mirrors=mirrors, properties=properties)
        assert last.wait(within(120)) == 0, last.log()[-4000:]


def alter(database: Database, statements: tuple[str, ...]) -> None:
    with database.session() as session:
        for statement in statements:
            session.execute(statement)
        session.commit()
