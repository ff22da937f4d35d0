"""``floodmark demo``, as a newcomer runs it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from floodmark.demo.comparison import compare, source_rows, table_shape
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.demo.shop import CUSTOMERS, ORDERS, PRODUCTS, TABLES, create_shop
from floodmark.demo.writer import ShopWriter
from tests.support.cli import CLI
from tests.support.patience import within


@pytest.fixture
def shop(pg18: EmbeddedPostgres) -> Iterator[str]:
    """Return the connection string of a filled shop."""
    with psycopg.connect(pg18.conninfo(), autocommit=True) as conn:
        conn.execute("CREATE DATABASE demo_shop")
        try:
            with psycopg.connect(pg18.conninfo("demo_shop")) as filled:
                create_shop(filled, random.Random(1))
            yield pg18.conninfo("demo_shop")
        finally:
            conn.execute("DROP DATABASE demo_shop WITH (FORCE)")


def contents(conn: psycopg.Connection[Any]) -> dict[str, Any]:
    return {table: source_rows(conn, table, table_shape(conn, table)) for table in TABLES}


def test_shop_is_filled(shop: str) -> None:
    with psycopg.connect(shop) as conn:
        rows = contents(conn)
    assert (len(rows["customers"]), len(rows["products"]), len(rows["orders"])) == (CUSTOMERS, PRODUCTS, ORDERS)
    assert len(rows["order_items"]) > ORDERS


def test_writer_changes_every_table_until_it_is_stopped(shop: str) -> None:
    with psycopg.connect(shop, autocommit=True) as conn:
        before = contents(conn)
        writer = ShopWriter(shop, seed=1)
        writer.start()
        deadline = time.monotonic() + within(60)
        while (len(writer.committed) < 9 or writer.rolled_back < 3) and writer.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        writer.stop()
        assert writer.failure is None
        after = contents(conn)
        assert after == contents(conn)
    for table in TABLES:
        result = compare(table, before[table], after[table])
        assert result.missing, table
        assert result.unexpected, table
        assert result.different or table == "order_items", table


@pytest.mark.slow
def test_demo_proves_equality(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    command = [*CLI, "demo", "--seconds", "5", "--keep", str(kept)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=within(240), env=dict(os.environ)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.count("equal") >= 2 * len(TABLES)
    assert "Equal: captured events, mirrored Delta tables and source tables." in done.stdout
    assert yaml.safe_load((kept / "pipeline.yaml").read_text())["sink"]["path"] == str(kept / "events")
    assert {folder.name for folder in (kept / "lake").iterdir()} == {f"public.{table}" for table in TABLES}
    events = [
        json.loads(line) for file in (kept / "events").glob("part-*.json") for line in file.open(encoding="utf-8")
    ]
    assert {"r", "c", "u", "d"} <= {event["op"] for event in events}


def test_demo_does_not_write_into_a_used_directory(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    command = [*CLI, "demo", "--keep", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=within(60), env=dict(os.environ)
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: The directory {tmp_path} is not empty.")
