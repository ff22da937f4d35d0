"""Compare a large table with its mirror, beside ``COPY``: the table alone, equal and with a few rows that differ."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import engine, reference
from benchmarks.common import Connection, Leg, Result, Scale, database
from benchmarks.workload import create_tables, fill

ROOT = Path(__file__).parents[1]
PLANTED = {"differs": 1, "missing": 1, "surplus": 1}


def run(scale: Scale, postgres: int) -> Result:
    """Mirror a table by a snapshot, and verify it: equal, then with three rows that differ."""
    result = Result("verify", scale.name, f"PostgreSQL {postgres}")
    rows = scale.large_rows
    with database(postgres) as (server, connection):
        create_tables(connection, ["t"])
        fill(connection, "t", 1, rows)
        connection.execute("VACUUM ANALYZE t")
        result.notes.append(f"{rows:,} rows; both sides are read, at rest; Spark's start isn't counted")
        result.legs.append(reference.copy(server, "t", rows))
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch)
            engine.snapshot(server, connection, "t", rows, place, "mirror")
            options = engine.source_options(server, "public.t", "floodmark_verify", place / "verify")
            given = {"options": options, "path": str(place / "output"), "checkpoint": str(place / "checkpoint")}
            result.legs.append(_leg("equal", rows, given, {}))
            _plant(connection, rows)
            result.legs.append(_leg("3 rows differ", rows, given, PLANTED))
    result.add_ratio("rows/s", "x COPY", "COPY, text")
    return result


def _plant(connection: Connection, rows: int) -> None:
    """Change the source while no query runs."""
    connection.execute("DELETE FROM t WHERE id = %s", [rows // 3])
    connection.execute("UPDATE t SET note = note || '!' WHERE id = %s", [rows // 2])
    fill(connection, "t", rows + 1, rows + 1)


def _leg(name: str, rows: int, given: Mapping[str, Any], expected: Mapping[str, int]) -> Leg:
    command = [sys.executable, "-m", "benchmarks.verify", json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"verify failed:\n{done.stderr[-4000:]}")
    measured = json.loads(done.stdout.splitlines()[-1])
    if measured["kinds"] != dict(expected) or measured["target_rows"] != rows:
        raise RuntimeError(f"verify has found {measured}, not {expected}")
    return Leg(f"verify, {name}", {"rows/s": rows / measured["seconds"], "seconds": measured["seconds"]})


def main() -> None:
    """Verify as the argument says, and print what was found and how long it took."""
    from pyspark.sql import SparkSession

    import floodmark
    from benchmarks.query import SPARK_CONF

    given = json.loads(sys.argv[1])
    spark = SparkSession.builder.master("local[2]").config(map={**SPARK_CONF}).getOrCreate()
    spark.range(10).repartition(2).mapInArrow(lambda batches: batches, "id long").collect()
    begun = time.monotonic()
    (found,) = floodmark.verify(given["options"], given["path"], given["checkpoint"], at_rest=True).tables
    seconds = time.monotonic() - begun
    print(json.dumps({"seconds": seconds, "kinds": found.counted(), "target_rows": found.target_rows}))
    spark.stop()


if __name__ == "__main__":
    main()
