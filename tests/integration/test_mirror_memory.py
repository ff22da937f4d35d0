"""A truncate of a target that doesn't fit into the driver's memory: the error says so, and nothing is lost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from floodmark.connectors.load import load_options
from floodmark.errors import TargetError
from floodmark.sinks.delta.parts import MESSAGE
from floodmark.sinks.delta.targets import Targets
from floodmark.sinks.delta.writer import own_writers
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.sinks.mirror import _messages
from tests.support.options import REQUIRED
from tests.unit.test_history import timed, timed_schema
from tests.unit.test_last_changes import Source

ROWS, BYTES, ROOM = 300, 1 << 20, 250 << 20


def truncate(folder: str) -> None:
    """Truncate a table of ``ROWS`` rows of ``BYTES`` each, with ``ROOM`` bytes of memory at first."""
    source, path = Source(("id",)), f"{folder}/lake"
    options = load_options({**REQUIRED, "state.dir": f"{folder}/state"})
    mirrors = MirrorOptions.parse({"history": "on"})

    def write(batch: int, first: int) -> None:
        targets = Targets(path, options, mirrors, "query", own_writers(path, mirrors))
        rows = [pa.Table.from_pylist(timed(source.told[first:]), timed_schema(("id",)))]
        messages = pa.RecordBatch.from_pylist(_messages(path, "db.t", rows, mirrors, {}), schema=MESSAGE)
        targets.write(batch, {"db.t": messages.to_pylist()})

    for number in range(ROWS):
        source.change("insert", number, 0, 0, False)
        source.told[-1]["after"]["big"] = "x" * BYTES
    write(0, 0)
    del source.told[:-1]
    source.change("truncate", 0, 0, 0, False)
    source.told[-1]["position"] = "99999999"
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + ROOM, limits[1]))
    with pytest.raises(
        TargetError, match=r"target table 'db\.t' doesn't fit into the driver's memory.*nothing is lost"
    ):
        write(1, 1)
    resource.setrlimit(resource.RLIMIT_AS, limits)
    assert DeltaTable(f"{path}/db.t").version() == 1
    write(1, 1)
    assert DeltaTable(f"{path}/db.t").version() == 2


@pytest.mark.long
def test_a_truncate_without_the_memory_for_it(tmp_path: Path) -> None:
    # Arrow's own allocator reserves addresses ahead.
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    code = f"from {__name__} import truncate; truncate({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
