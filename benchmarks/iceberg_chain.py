"""Follow updates of a large Iceberg table, beside what a user would write with Debezium, Kafka and Spark's MERGE."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.support.iceberg_spark import LAKE, catalogue_in, iceberg_environment, properties, running_iceberg_spark

from benchmarks import engine, reference
from benchmarks.chain.chain import CHAIN, iceberg_chain
from benchmarks.common import Result, Scale, database, wait_until
from benchmarks.engine import SINKS, Amount, QueryProcess, source_options
from benchmarks.equality import TYPES, expect_rows
from benchmarks.mirror_chain import TRANSACTION, leg_of, update
from benchmarks.query import Spec
from benchmarks.workload import create_tables, fill, slot_active

SCHEMA = f"{LAKE}.shop"
TARGET, THEIR_TARGET = f"{SCHEMA}.public_t", f"{SCHEMA}.theirs"
OURS, THEIRS = "floodmark_iceberg", "debezium_iceberg"
MIRROR = {"format": "iceberg", "catalog.schema": SCHEMA}


def run(scale: Scale, postgres: int) -> Result:
    """Load the table with both, let updates wait in the log, and follow them with both."""
    result = Result("iceberg_chain", scale.name, f"PostgreSQL {postgres}")
    rows = scale.snapshot_rows
    with ExitStack() as stack:
        server, connection = stack.enter_context(database(postgres))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        create_tables(connection, ["t"])
        fill(connection, "t", 1, rows)
        connection.execute("VACUUM ANALYZE t")
        catalogues = {LAKE: {"type": "jdbc", **catalogue_in(server, scratch / "tables")}}
        conf = properties(catalogues)
        with running_iceberg_spark(catalogues) as spark:
            spark.run(f"CREATE SCHEMA {SCHEMA}")
        loaded = Amount("rows/s", rows, rows)
        theirs = None
        if scale.debezium:
            given = reference.debezium_options(server, "public.t", THEIRS) | {"decimal.handling.mode": "string"}
            chain = iceberg_chain(given, "public.t", THEIR_TARGET, conf, scratch / "chain")
            theirs = stack.enter_context(chain)
            result.legs.append(leg_of("first load", theirs.load(rows), loaded))
            wait_until(lambda: not slot_active(connection, THEIRS), 60, "Debezium rests")
        options = source_options(server, "public.t", OURS, scratch / "state", "initial") | SINKS["mirror"]
        checkpoint, staged = str(scratch / "checkpoint"), str(scratch / "staged")
        spec = Spec(options, checkpoint, "mirror", staged, mirror=MIRROR)
        arguments = " ".join(f"--conf {name}={value}" for name, value in conf.items())
        environment = {**iceberg_environment(), "PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell"}
        query = stack.enter_context(QueryProcess([spec, spec], scratch / "query.log", environment=environment))
        leg = engine.measure(query, "Floodmark, mirror", lambda: engine.copies(connection), loaded)
        result.legs.append(leg_of("first load", leg, loaded))
        updates = update(connection, rows, scale.mirror_updates)
        changed = Amount("changes/s", updates, updates)
        leg = engine.measure(query, "Floodmark, mirror", lambda: slot_active(connection, OURS), changed)
        result.legs.append(leg_of("updates", leg, changed))
        if theirs is not None:
            leg = theirs.follow(updates, lambda: slot_active(connection, THEIRS))
            result.legs.append(leg_of("updates", leg, changed))
        with running_iceberg_spark(catalogues) as spark:
            for target in (TARGET, THEIR_TARGET)[: 1 + (theirs is not None)]:
                expect_rows(server, "t", spark.rows(f"SELECT {', '.join(TYPES)} FROM {target} ORDER BY id"))
    result.notes.append(f"{updates:,} updates of random rows of {rows:,}, {TRANSACTION} in a transaction")
    for what, amount in (("first load", loaded), ("updates", changed)):
        for figure in (amount.unit, f"{amount.unit.removesuffix('/s')} per CPU s"):
            result.add_ratio(figure, f"{figure}, x chain, {what}", f"{CHAIN}, {what}")
    return result
