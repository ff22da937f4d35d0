"""Writes micro-batches to targets on a disk that gets full now and then, wherever that strikes.

Its arguments are a directory on that disk and a seed. Each micro-batch comes with one error or is written; as often as
there is an error, it is written after space was freed. Its last line says how many errors there were.
"""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from floodmark.errors import FloodmarkError, StateDirError, TargetError
from floodmark.sinks.delta import upkeep, writer
from floodmark.sinks.delta.upkeep import AtOnce
from tests.support.delta_mirror import in_order
from tests.support.lake import TABLES, Lake
from tests.support.small_disk import fill, free

BATCHES = 30
MOST_PAGES = 14
"""More than what a micro-batch needs, with all that is done beside it."""
MODES: tuple[dict[str, str], ...] = ({}, {"deletion.vectors": "off"}, {"deletes": "soft"}, {"vacuum.hours": "1"})


def main() -> None:
    """Write micro-batches."""
    disk, seed = Path(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(seed)
    # What goes on beside micro-batches is to be over before there is space again.
    pools: Any = writer
    pools.ThreadPoolExecutor = lambda threads: AtOnce() if threads == 1 else ThreadPoolExecutor(threads)
    upkeep._CHECKPOINT_EVERY = 3
    lake = Lake(disk)
    lake.options = {"compact.files": "2", **MODES[seed % len(MODES)]}
    found: dict[str, int] = {}
    for batch in range(BATCHES):
        keys = [chance.randrange(20) for _ in range(4)]
        before = in_order(lake.expected.values())
        lake.change(*[(chance.choice(["insert", "update", "delete"]), key) for key in keys])
        after = in_order(lake.expected.values())
        if not lake.told:
            continue
        fill(disk, chance.randrange(MOST_PAGES))
        try:
            lake.write(batch)
        except FloodmarkError as error:
            prove(error, disk)
            found[type(error).__name__] = found.get(type(error).__name__, 0) + 1
            for table in TABLES:
                if (lake.path / table / "_delta_log").exists() and any((lake.path / table / "_delta_log").iterdir()):
                    assert lake.rows(table) in (before, after), (batch, table)
            free(disk)
            lake.write(batch)
        free(disk)
        for table in TABLES:
            assert lake.rows(table) == after, (batch, table)
    print("ENDED with", found)


def prove(error: FloodmarkError, disk: Path) -> None:
    """Check that an error names the cause and the folder, and what can be done."""
    text = str(error)
    assert isinstance(error, TargetError | StateDirError), text
    assert "No space left on device" in text, text
    assert str(disk) in text, text
    assert "space" in error.cure, text


if __name__ == "__main__":
    main()
