"""Differences are repaired again and again, while the query and the command that repairs them are killed at random."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.chaos.beside import SURPLUS, DeltaTables, Work
from tests.chaos.killing import Place
from tests.support.patience import within
from tests.support.planting import Planter

KILLS = int(os.environ.get("FLOODMARK_REPAIR_KILLS", "4"))
REPAIR = """
import json, sys
import floodmark
options, target, checkpoint = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
found = floodmark.verify(options, target, checkpoint, repair=True, wait_s=float(sys.argv[4]))
print([(one.table, one.status, one.reason, one.repaired, one.count) for one in found.tables], flush=True)
sys.exit(0 if found.equal else 1)
"""


@pytest.mark.long
@pytest.mark.timeout(max(900, 60 * KILLS))
@pytest.mark.parametrize("mirrors", [{}, {"deletion.vectors": "off"}], ids=["vectors", "copies"])
def test_kills_while_differences_are_repaired(place: Place, mirrors: dict[str, str], tmp_path: Path) -> None:
    chance = random.Random(f"{place[0].schema} {mirrors}")
    tables = DeltaTables(place[0].schema, tmp_path, mirrors)
    work, wait_s = Work(place, tables, tmp_path, REPAIR), str(within(120))
    query, planted = None, 0
    work.workload.start()
    try:
        for _ in range(KILLS):
            planted += plant(tables, chance)
            query = query or work.query()
            command = work.command(wait_s)
            assert query.wait_for_batches(query.batches() + 1, within(180)), query.log()[-4000:]
            time.sleep(chance.random() * within(6))
            killed = chance.choice(("query", "command", "both"))
            if killed != "command":
                query.kill()
                query = None
            if killed != "query":
                command.kill()
                assert command.wait() in (0, 1, -signal.SIGKILL)
            else:
                query = work.query()
                # Differences may be left that it couldn't be sure of; nothing else may keep it from its work.
                assert command.wait(within(300)) in (0, 1), work.told()
        query = query or work.query()
        work.workload.stop()
        last = work.command(wait_s)
        assert last.wait(within(300)) == 0, work.told()
        query.kill()
    finally:
        work.workload.stop()
    assert planted
    work.judge()


def plant(tables: DeltaTables, chance: random.Random) -> int:
    """Let rows be missing, other ones and surplus; return how many."""
    ids = sorted(number for (number,) in tables.rows("plain", ["id"]) if number != SURPLUS)
    lost, spoiled, like = chance.sample(ids, 3)
    planter = Planter(tables.folder("plain"))
    planter.lose([lost])
    planter.spoil(spoiled, note="planted")
    planter.add(like, id=SURPLUS)
    return 3
