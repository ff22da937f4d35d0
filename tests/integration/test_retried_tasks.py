"""Tasks of a mirror that run twice: rows come once, and what the first attempt wrote is only left over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.sinks.delta.format.log import DeltaLog
from floodmark.sinks.delta.format.vacuum import vacuum
from floodmark.sinks.delta.stores import table_folder
from tests.conftest import drop, make_source
from tests.integration.test_mirror import rows_of
from tests.support import quick_start
from tests.support.patience import within

pytestmark = pytest.mark.slow

FAILURES = ["error"]
if os.environ.get("FLOODMARK_FULL_MATRIX"):
    FAILURES += ["worker"]


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("failure", FAILURES)
def test_tasks_that_run_twice(pg18: EmbeddedPostgres, tmp_path: Path, failure: str) -> None:
    quick_start.prepare()
    source = make_source(pg18, tmp_path / "state", **{"snapshot.chunk.bytes": "16384"})
    source.execute(
        "CREATE TABLE a (id integer PRIMARY KEY, v text)",
        "CREATE TABLE b (id integer, v text)",
        "INSERT INTO a SELECT g, repeat('x', 20) FROM generate_series(1, 2000) g",
        "INSERT INTO b SELECT g, repeat('x', 20) FROM generate_series(1, 2000) g",
    )
    marks = tmp_path / "marks"
    marks.mkdir()
    spec = {
        "options": {**source.options, "format": "arrow", "skipped.operations": "none"},
        "out": str(tmp_path / "lake"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "failure": failure,
        "marks": str(marks),
    }

    def run(times: int) -> None:
        command = [sys.executable, "-m", "tests.support.failing_tasks", json.dumps({**spec, "times": times})]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=within(150))
        assert done.returncode == 0, done.stdout + done.stderr[-4000:]
        assert done.stdout.splitlines()[-1] == f"ENDED with {times} failures"

    run(1)
    source.execute(
        "UPDATE a SET v = 'new' WHERE id % 3 = 0",
        "DELETE FROM a WHERE id % 7 = 0",
        "INSERT INTO b SELECT g, 'late' FROM generate_series(2001, 2100) g",
    )
    run(2)
    for name in ("a", "b"):
        with source.database.session() as session:
            expected = [{"id": row[0], "v": row[1]} for row in session.execute(f"SELECT id, v FROM {name} ORDER BY id")]
        table = tmp_path / "lake" / f"public.{name}"
        assert rows_of(table, "id, v") == expected
    left = [len(left_over(tmp_path / "lake" / f"public.{name}")) for name in ("a", "b")]
    assert sum(left) >= 2
    for name in ("a", "b"):
        folder = table_folder(str(tmp_path / "lake"), f"public.{name}")
        log = DeltaLog(folder.store)
        vacuum(folder.store, log, log.state(), 1, int((time.time() + 7200) * 1000))
        assert not left_over(Path(folder.uri))
        assert len(rows_of(Path(folder.uri), "id, v")) == (2100 if name == "b" else 2000 - 2000 // 7)
    drop(source)


def left_over(table: Path) -> set[str]:
    """Return the names of data files that the table doesn't have."""
    return {path.name for path in table.glob("*.parquet")} - {
        os.path.basename(uri) for uri in DeltaTable(str(table)).file_uris()
    }
