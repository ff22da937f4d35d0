"""The example of Spark Declarative Pipelines, run as its users run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow.dataset as ds
import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import Source, drop, make_source
from tests.support import quick_start
from tests.support.patience import within

EXAMPLES = Path(__file__).parents[2] / "examples"
STORAGE = "file:///data/shop/pipeline"

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(pg18: EmbeddedPostgres, tmp_path: Path) -> Iterator[Source]:
    made = make_source(pg18, tmp_path / "state")
    made.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, note text, amount numeric(10, 2))",
        "ALTER TABLE orders REPLICA IDENTITY FULL",
        "INSERT INTO orders SELECT n, 'note ' || n, n * 1.5 FROM generate_series(1, 100) n",
    )
    yield made
    drop(made)


def project(name: str, directory: Path) -> Path:
    """Return a copy of an example that keeps its checkpoints in a directory."""
    made = directory / "project"
    shutil.copytree(EXAMPLES / name, made)
    spec = made / "spark-pipeline.yml"
    text = spec.read_text(encoding="utf-8")
    assert STORAGE in text
    spec.write_text(text.replace(STORAGE, f"file://{directory}/pipeline"), encoding="utf-8")
    return made


def run(shop: Source, at: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a project; return its output, and how it ended."""
    options = shop.options
    variables = {
        "SHOP_HOST": options["database.hostname"],
        "SHOP_PORT": options["database.port"],
        "SHOP_USER": options["database.user"],
        "SHOP_PASSWORD": options.get("database.password", ""),
        "SHOP_DATABASE": options["database.dbname"],
        "SHOP_STATE": options["state.dir"],
    }
    home = quick_start.INSTALLED
    hive = ("--conf", "spark.sql.catalogImplementation=hive")
    env = {**os.environ, **variables, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    # The tests' archive of classes is for another installation.
    env[quick_start.OPTIONS] = quick_start.FLAGS
    command = [str(home / "bin" / "spark-pipelines"), "run", *hive, *arguments]
    return subprocess.run(command, cwd=at, env=env, capture_output=True, text=True, timeout=within(120))


def target(at: Path) -> list[tuple[object, ...]]:
    table = ds.dataset(at / "spark-warehouse" / "orders", format="parquet").to_table()
    return sorted(tuple(row[name] for name in ("id", "note", "amount")) for row in table.to_pylist())


def rows(shop: Source) -> list[tuple[object, ...]]:
    with psycopg.connect(shop.conninfo) as conn:
        return conn.execute("SELECT id, note, amount FROM orders ORDER BY id").fetchall()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_example_keeps_a_table_equal(shop: Source, tmp_path: Path) -> None:
    at = project("declarative", tmp_path)
    first = run(shop, at)
    assert first.returncode == 0, first.stdout + first.stderr
    assert target(at) == rows(shop)
    shop.execute(
        "DELETE FROM orders WHERE id > 60",
        "UPDATE orders SET note = 'changed' WHERE id <= 20",
        "UPDATE orders SET id = 1000 WHERE id = 30",
        "INSERT INTO orders VALUES (100, 'again', NULL)",
    )
    second = run(shop, at)
    assert second.returncode == 0, second.stdout + second.stderr
    assert target(at) == rows(shop)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_auto_cdc_still_refuses_what_spark_has_without_other_jars(shop: Source, tmp_path: Path) -> None:
    """docs/declarative.md says so; a release that changes this makes the example one that runs."""
    at = project("auto_cdc", tmp_path)
    spec = at / "spark-pipeline.yml"
    text = spec.read_text(encoding="utf-8")
    catalog = text[text.index("# A catalog") : text.index("libraries:")]
    spec.write_text(text[: text.index("configuration:")].replace(catalog, ""), encoding="utf-8")
    done = run(shop, at)
    assert done.returncode != 0
    assert "AUTOCDC_TARGET_DOES_NOT_SUPPORT_MERGE" in done.stdout + done.stderr
