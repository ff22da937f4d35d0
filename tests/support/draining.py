"""Draining a source in a process of its own, to see how much memory it takes: ``python -m tests.support.draining``."""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from floodmark.connectors.load import load_options
from floodmark.spark.stream.readers import output_schema
from tests.support.stream_reader import make_reader


@dataclass(frozen=True)
class Drained:
    """What came, and what it took.

    Attributes:
        rows: how many.
        batches: how many micro-batches.
        first: the first row's position.
        last: the last row's position.
        digest: of all positions and values, in their order.
        peak_bytes: the most memory that the process had.
        sorted: whether the positions grew from row to row.
    """

    rows: int
    batches: int
    first: str
    last: str
    digest: str
    peak_bytes: int
    sorted: bool


def drain_elsewhere(options: dict[str, str], offset: dict[str, Any], timeout_s: float = 600) -> Drained:
    """Drain a source behind an offset in another process."""
    given = json.dumps([options, offset])
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.draining"],
        input=given,
        stdout=subprocess.PIPE,
        text=True,
        timeout=timeout_s,
        check=True,
    )
    return Drained(**json.loads(done.stdout.splitlines()[-1]))


def drain(options: dict[str, str], offset: dict[str, Any]) -> Drained:
    """Drain a source, one micro-batch after the other, keeping no rows."""
    reader = make_reader(options, output_schema(load_options(options)))
    reader.prepareForTriggerAvailableNow()
    rows = batches = 0
    first = last = ""
    ordered = True
    digest = hashlib.sha256()
    while (end := reader.latestOffset(offset, reader.getDefaultReadLimit())) != offset:
        batches += 1
        for partition in reader.partitions(offset, end):
            for batch in reader.read(partition):
                positions = batch["position"].to_pylist()
                rows += len(positions)
                first = first or positions[0]
                ordered &= positions == sorted(positions) and last < positions[0]
                last = positions[-1]
                for position, value in zip(positions, batch["value"].to_pylist(), strict=True):
                    digest.update(f"{position} {json.loads(value)['after']}\n".encode())
        offset = end
        reader.commit(end)
    reader.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return Drained(rows, batches, first, last, digest.hexdigest(), peak, ordered)


if __name__ == "__main__":
    print(json.dumps(asdict(drain(*json.load(sys.stdin)))))
