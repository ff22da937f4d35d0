"""A table is rebuilt again and again, while the query and the command that rebuilds it are killed at random points."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.chaos.beside import DeltaTables, IcebergTables, Kept, RelationalTables, Work
from tests.chaos.killing import Place
from tests.support.jdbc import target_on
from tests.support.patience import within
from tests.support.repeating import repeated

KILLS = int(os.environ.get("FLOODMARK_REBUILD_KILLS", "6"))
REBUILD = """
import json, sys
import floodmark
options, target, mirror = map(json.loads, (*sys.argv[1:3], sys.argv[5]))
floodmark.rebuild(options, target, sys.argv[3], sys.argv[4], wait_s=600.0, tell=print, mirror=mirror)
"""


@pytest.fixture(params=["vectors", "copies", "iceberg", "pg16", "mysql", "mariadb"])
def kept(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Iterator[Kept]:
    """Return what the tables are kept in: a mirror's tables, or another database."""
    if request.param == "iceberg":
        yield IcebergTables(place[0].schema, tmp_path)
        return
    if request.param in ("vectors", "copies"):
        mirrors = {"deletion.vectors": "off"} if request.param == "copies" else {}
        yield DeltaTables(place[0].schema, tmp_path, mirrors)
        return
    with target_on(request.getfixturevalue(request.param)) as target:
        yield RelationalTables(place[0].schema, target)


@pytest.mark.long
@pytest.mark.timeout(max(900, 60 * KILLS))
def test_kills_while_a_table_is_rebuilt(place: Place, kept: Kept, tmp_path: Path) -> None:
    chance = random.Random(f"{place[0].schema} {kept.sink}")
    work = Work(place, kept, tmp_path, REBUILD)
    asked = f"{place[0].schema}.plain", json.dumps(kept.sink.get("mirrors", {}))
    rebuilt, query, command = 0, None, None
    work.workload.start()
    try:
        with following(kept) as seen:
            for _ in range(KILLS):
                kept.add_surplus()
                command = command or work.command(*asked)
                query = query or work.query()
                assert query.wait_for_batches(query.batches() + 1, within(180)), query.log()[-4000:]
                time.sleep(chance.random() * within(8))
                killed = chance.choice(("query", "command", "both"))
                if killed != "command":
                    query.kill()
                    query = None
                if killed != "query":
                    command.kill()
                    command.wait()
                if command.poll() is not None:
                    assert command.returncode in (0, -signal.SIGKILL), work.told()
                    rebuilt += command.returncode == 0
                    command = None
            query = query or work.query()
            command = command or work.command(*asked)
            assert command.wait(within(300)) == 0, work.told()
            rebuilt += 1
            query.kill()
        assert len(seen) > KILLS
    finally:
        work.workload.stop()
    assert rebuilt
    work.judge()
    assert kept.left_behind() == []


def following(kept: Kept) -> AbstractContextManager[list[int]]:
    """Read a table all the time, and prove that it has rows, each once."""

    def read() -> int:
        ids = [number for (number,) in kept.rows("plain", ["id"])]
        assert ids
        assert len(set(ids)) == len(ids)
        return len(ids)

    return repeated(read, 0.3)
