"""Targets that the query's user may not write or read: one clear error, nothing is lost, and the next start goes on."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from floodmark.cli.checks.environment import check_targets
from floodmark.connectors.load import load_options
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import ConfigError, TargetError
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.sinks.mirror import Mirror
from tests.conftest import drop, make_source
from tests.integration.test_mirror import rows_of
from tests.support import quick_start
from tests.support.cli import CLI
from tests.support.delta_mirror import in_order
from tests.support.lake import Lake
from tests.support.options import REQUIRED
from tests.support.patience import within
from tests.support.rights import as_nobody, mode_of, refused


@pytest.fixture
def lake() -> Iterator[Lake]:
    # Others than root can't reach the directories of pytest.
    with as_nobody(), tempfile.TemporaryDirectory() as folder:
        yield Lake(Path(folder))


def test_tasks_with_another_directory(lake: Lake) -> None:
    lake.change(("insert", 1), ("insert", 2))
    with pytest.raises(TargetError, match=r"'db\.[ab]' that the driver doesn't find .* another directory where"):
        lake.write(0, tasks=lake.path.parent / "elsewhere")
    assert not list(lake.path.glob("*/_delta_log/*"))
    lake.write(0)
    assert lake.rows("db.a") == in_order(lake.expected.values())


READ_ONLY, NOTHING = 0o555, 0


@pytest.mark.parametrize(
    ("place", "mode"),
    [
        (".", READ_ONLY),
        (".", NOTHING),
        ("_delta_log", READ_ONLY),
        ("_delta_log", NOTHING),
        ("_delta_log/*2.json", NOTHING),
        ("_floodmark", NOTHING),
        ("*.parquet", NOTHING),
        ("*.bin", NOTHING),
    ],
)
def test_a_table_without_rights(lake: Lake, place: str, mode: int) -> None:
    table = lake.path / "db.a"
    for batch in range(2):
        lake.change(("insert", batch), ("insert", batch + 10), ("update", 10))
        lake.write(batch)
    (table / "_floodmark").mkdir()
    before = lake.rows("db.a")
    lake.change(("update", 0), ("delete", 1), ("insert", 2), ("update", 10))
    chosen = table if place == "." else sorted(table.glob(place))[0]
    with (
        mode_of(chosen, mode),
        pytest.raises(TargetError, match=r"db\.a'.* denied.*\. .*driver and all executors may read and write") as told,
    ):
        lake.write(2)
    assert "\n" not in str(told.value)
    assert lake.rows("db.a") == before
    assert lake.rows("db.b") == in_order(lake.expected.values())
    lake.write(2)
    assert lake.rows("db.a") == in_order(lake.expected.values())
    assert not list(table.glob("_floodmark/*"))


def test_a_path_without_rights(lake: Lake) -> None:
    lake.change(("insert", 1))
    wanted = {**REQUIRED, "format": "arrow", "skipped.operations": "none"}

    def start() -> None:
        Mirror(str(lake.path), load_options(wanted), MirrorOptions.parse({}))

    with mode_of(lake.path, READ_ONLY):
        with pytest.raises(ConfigError, match=r"Nothing can be written to the mirror's path '.*lake'.* denied"):
            start()
        (found,) = check_targets(str(lake.path))
        assert found.status == "error"
    start()
    assert not list(lake.path.iterdir())
    lake.write(0)
    with mode_of(lake.path, READ_ONLY):
        # The tables that are there can still be written.
        start()
        lake.change(("insert", 2))
        lake.write(1)
        with pytest.raises(ConfigError, match=r"denied.*db\.c'\. Give a directory where the driver and all executors"):
            lake.write(2, ("db.c",))
    assert lake.rows("db.a") == in_order(lake.expected.values())


def test_targets_are_checked(lake: Lake) -> None:
    lake.change(("insert", 1))
    lake.write(0)
    files = sorted(lake.path.rglob("*"))
    (found,) = check_targets(str(lake.path))
    assert (found.status, found.finding) == ("ok", f"{lake.path} can be written")
    assert sorted(lake.path.rglob("*")) == files
    for place, mode in (("", READ_ONLY), ("_delta_log", READ_ONLY), ("_delta_log/00000000000000000001.json", NOTHING)):
        with mode_of(lake.path / "db.a" / place, mode):
            (found,) = check_targets(str(lake.path))
            assert found.status == "error"
            assert found.finding.startswith("The target table 'db.a' can't be written or read: ")
            assert "denied" in found.finding
    assert sorted(lake.path.rglob("*")) == files


@pytest.mark.long
@pytest.mark.slow
def test_a_query_without_rights(pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    quick_start.prepare()
    source = make_source(pg18, tmp_path / "state")
    source.execute("CREATE TABLE a (id integer PRIMARY KEY, v text)", "INSERT INTO a VALUES (1, 'one'), (2, 'two')")
    table, file = tmp_path / "lake" / "public.a", tmp_path / "pipeline.yaml"
    table.mkdir(parents=True)
    content = {
        "source": source.options,
        "sink": {"type": "mirror", "path": str(table.parent)},
        "checkpoint": str(tmp_path / "checkpoint"),
        "trigger": {"availableNow": "true"},
        "spark": {"spark.master": "local[1]"},
    }
    file.write_text(yaml.safe_dump(content), encoding="utf-8")

    def run(code: int) -> str:
        command = [*refused(), *CLI, "run", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=within(120))
        assert done.returncode == code, done.stderr
        return done.stderr.splitlines()[-1]

    with mode_of(table, READ_ONLY):
        error = run(1)
    assert error.startswith(f"error: The files of the target table 'public.a' in {table.parent} can't be written or ")
    assert error.endswith("start the query again. Nothing is lost.")
    source.execute("UPDATE a SET v = 'zwei' WHERE id = 2", "DELETE FROM a WHERE id = 1")
    run(0)
    assert rows_of(table, "id, v") == [{"id": 2, "v": "zwei"}]
    drop(source)
