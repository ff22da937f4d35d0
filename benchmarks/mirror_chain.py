"""Follow updates of a large table to Delta, beside what a user would write with Debezium, Kafka and Spark's MERGE."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path

from benchmarks import engine, reference
from benchmarks.chain.chain import CHAIN, delta_chain
from benchmarks.common import Connection, Leg, Result, Scale, database, wait_until
from benchmarks.engine import SINKS, Amount, QueryProcess, source_options
from benchmarks.equality import expect_equal
from benchmarks.query import Spec
from benchmarks.workload import create_tables, fill, slot_active

ROWS = 1_000_000
TRANSACTION = 10
"""Updates in a transaction, at random over the table."""
UPDATE = """
CREATE PROCEDURE update_rows(transactions integer, INOUT updates bigint) LANGUAGE plpgsql AS $$
DECLARE
    done bigint;
BEGIN
    updates := 0;
    FOR number IN 1 .. transactions LOOP
        UPDATE t SET amount = amount + 1, updated_at = clock_timestamp()
            WHERE id = ANY (ARRAY(SELECT 1 + floor(random() * {rows})::bigint FROM generate_series(1, {size})));
        GET DIAGNOSTICS done = ROW_COUNT;
        updates := updates + done;
        COMMIT;
    END LOOP;
END $$
"""
START_UP = ("start-up s", "session s", "load s", "CPU s with start")
OURS, PARTS, THEIRS = "floodmark_chain", "floodmark_parts", "debezium_chain"
LIMIT = 200_000
"""How many changes a small micro-batch has: what a few seconds bring."""
IN_PARTS = f"updates, {LIMIT:,} at a time"


def run(scale: Scale, postgres: int) -> Result:
    """Load the table with both, let updates wait in the log, and follow them with both."""
    result = Result("mirror_chain", scale.name, f"PostgreSQL {postgres}")
    with database(postgres) as (server, connection), tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        create_tables(connection, ["t"])
        fill(connection, "t", 1, ROWS)
        connection.execute("VACUUM ANALYZE t")
        options = source_options(server, "public.t", OURS, scratch / "state", "initial") | SINKS["mirror"]
        spec = Spec(options, str(scratch / "checkpoint"), "mirror", str(scratch / "lake"))
        options = source_options(server, "public.t", PARTS, scratch / "state_parts", "initial") | SINKS["mirror"]
        options["max.batch.rows"] = str(LIMIT)
        small = Spec(options, str(scratch / "checkpoint_parts"), "mirror", str(scratch / "lake_parts"))
        given = reference.debezium_options(server, "public.t", THEIRS) | {"decimal.handling.mode": "string"}
        loaded = Amount("rows/s", ROWS, ROWS)
        theirs, in_parts = scratch / "theirs", scratch / "theirs_in_parts"
        chain = (
            delta_chain(given, "public.t", theirs, in_parts, LIMIT, scratch / "chain")
            if scale.debezium
            else nullcontext()
        )
        with chain as running:
            if running is not None:
                result.legs.append(leg_of("first load", running.load(ROWS), loaded))
                wait_until(lambda: not slot_active(connection, THEIRS), 60, "Debezium rests")
            with QueryProcess([spec, small, spec, small], scratch / "query.log") as query:
                leg = engine.measure(query, "Floodmark, mirror", lambda: engine.copies(connection), loaded)
                result.legs.append(leg_of("first load", leg, loaded))
                engine.measure(query, "Floodmark, mirror", lambda: engine.copies(connection), loaded)
                updates = update(connection, ROWS, scale.mirror_updates)
                changed = Amount("changes/s", updates, updates)
                # Before the chain: Spark ends Python workers that had nothing to do for a minute.
                leg = engine.measure(query, "Floodmark, mirror", lambda: slot_active(connection, OURS), changed)
                result.legs.append(leg_of("updates", leg, changed))
                leg = engine.measure(query, "Floodmark, mirror", lambda: slot_active(connection, PARTS), changed)
                result.legs.append(leg_of(IN_PARTS, leg, changed))
            for lake in ("lake", "lake_parts"):
                expect_equal(server, "t", scratch / lake / "public.t")
            if running is not None:
                leg = running.follow(updates, lambda: slot_active(connection, THEIRS))
                result.legs += [leg_of("updates", leg, changed)]
                result.legs += [leg_of(IN_PARTS, running.follow_in_parts(updates, leg), changed)]
                for table in (theirs, in_parts):
                    expect_equal(server, "t", table)
    result.notes.append(f"{updates:,} updates of random rows of {ROWS:,}, {TRANSACTION} in a transaction")
    for figure in ("changes/s", "changes per CPU s"):
        for what in ("updates", IN_PARTS):
            result.add_ratio(figure, f"{figure}, x chain, {what}", f"{CHAIN}, {what}")
    return result


def leg_of(what: str, leg: Leg, amount: Amount) -> Leg:
    """Return a leg with the name of what it did, and its rate by CPU second, without its start."""
    shown = {name: figure for name, figure in leg.figures.items() if name not in START_UP}
    shown[f"{amount.unit.removesuffix('/s')} per CPU s"] = amount.counted / float(leg.figures["CPU s"] or 0)
    return Leg(f"{leg.name}, {what}", shown, leg.processes, leg.batches)


def update(connection: Connection, rows: int, updates: int) -> int:
    """Update rows of the table ``t``, which has so many, at random; return how many were updated."""
    connection.execute(UPDATE.format(rows=rows, size=TRANSACTION).encode())
    row = connection.execute("CALL update_rows(%s, 0)", [updates // TRANSACTION]).fetchone()
    assert row is not None
    return int(row[0])
