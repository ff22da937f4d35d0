"""Run the benchmarks: ``python -m benchmarks.run --quick`` or ``--full``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import (
    avro,
    drain,
    growth,
    iceberg_chain,
    incremental,
    jdbc,
    jdbc_chain,
    kafka_sink,
    latency,
    memory,
    mirror,
    mirror_chain,
    mirror_first_load,
    mirror_freshness,
    mirror_tables,
    mirror_writer,
    mysql,
    oracle_drain,
    oracle_redo,
    oracle_transactions,
    pace,
    scale,
    snapshot,
    tables,
    transforms,
    verify,
    wide,
)
from benchmarks.common import FULL, QUICK, Result, Scale

BENCHMARKS: dict[str, Callable[[Scale, int], Result]] = {
    "drain": drain.run,
    "wide": wide.run,
    "snapshot": snapshot.run,
    "incremental": incremental.run,
    "pace": pace.run,
    "scale": scale.run,
    "latency": latency.run,
    "memory": memory.run,
    "growth": growth.run,
    "mirror": mirror.run,
    "mirror_chain": mirror_chain.run,
    "mirror_first_load": mirror_first_load.run,
    "mirror_freshness": mirror_freshness.run,
    "mirror_tables": mirror_tables.run,
    "mirror_writer": mirror_writer.run,
    "iceberg_chain": iceberg_chain.run,
    "jdbc": jdbc.run,
    "jdbc_chain": jdbc_chain.run,
    "kafka_sink": kafka_sink.run,
    "mysql_kafka_sink": lambda scale, _: kafka_sink.binlog(scale, "mysql"),
    "mariadb_kafka_sink": lambda scale, _: kafka_sink.binlog(scale, "mariadb"),
    "tables": tables.run,
    "transforms": transforms.run,
    "verify": verify.run,
    "mysql_drain": lambda scale, _: mysql.drain(scale, "mysql"),
    "mysql_snapshot": lambda scale, _: mysql.snapshot(scale, "mysql"),
    "mysql_incremental": lambda scale, _: mysql.incremental(scale, "mysql"),
    "mariadb_drain": lambda scale, _: mysql.drain(scale, "mariadb"),
    "mariadb_snapshot": lambda scale, _: mysql.snapshot(scale, "mariadb"),
    "mariadb_incremental": lambda scale, _: mysql.incremental(scale, "mariadb"),
    "oracle_drain": lambda scale, _: oracle_drain.run(scale),
    "oracle_redo": lambda scale, _: oracle_redo.run(scale),
    "oracle_transactions": lambda scale, _: oracle_transactions.run(scale),
    "avro": lambda scale, _: avro.run(scale),
    "oracle_redo_wide": lambda scale, _: oracle_redo.run(scale, wide=True),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks of the command line, print their tables and keep their figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    scale = parser.add_mutually_exclusive_group(required=True)
    scale.add_argument("--quick", action="store_const", const=QUICK, dest="scale", help="smaller workloads")
    scale.add_argument("--full", action="store_const", const=FULL, dest="scale", help="the stated workloads")
    parser.add_argument("--only", default=",".join(BENCHMARKS), help="comma-separated: %(default)s")
    parser.add_argument("--postgres", type=int, default=16, help="PostgreSQL's major version (default: 16)")
    parser.add_argument("--no-debezium", action="store_true", help="leave Debezium's legs out")
    parser.add_argument("--out", type=Path, help="a file to append the figures to, one JSON object a line")
    parsed = parser.parse_args(arguments)
    names = parsed.only.split(",")
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}")
    for name in names:
        start = time.monotonic()
        result = BENCHMARKS[name](replace(parsed.scale, debezium=not parsed.no_debezium), parsed.postgres)
        result.notes.append(f"took {time.monotonic() - start:.0f} s in all")
        result.show()
        if parsed.out is not None:
            result.append_to(parsed.out)


if __name__ == "__main__":
    main()
