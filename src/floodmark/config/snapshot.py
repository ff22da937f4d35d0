"""The options of snapshots: when one is taken, of which tables, and how they are read."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from floodmark.config.model import OWN, Family, Options, Patterns, Words, family_prefix, option

MIB = 1 << 20
STATEMENTS = "snapshot.select.statement.overrides.<schema.table>"

SnapshotMode = Literal[
    "always", "initial", "initial_only", "no_data", "when_needed", "configuration_based", "custom", "recovery"
]


class SnapshotOptions(Options):
    """Options of snapshots; the same for every database."""

    snapshot_mode: SnapshotMode = option(
        "snapshot.mode",
        "initial",
        "`initial`: snapshot, then stream. `initial_only`: snapshot, then stop. `no_data`: only stream. "
        "`always`: a snapshot at each start. `when_needed`: as `initial`, and again if the log is gone. "
        "`configuration_based`, `custom`: what the options below say. `recovery`: for databases with a schema history.",
    )
    snapshot_mode_custom_name: str | None = option(
        "snapshot.mode.custom.name",
        None,
        "Entry point (group `floodmark.snapshotters`) of the snapshotter for `snapshot.mode=custom`.",
    )
    snapshot_based_data: bool = option(
        "snapshot.mode.configuration.based.snapshot.data",
        False,
        "With `configuration_based`: whether each start takes a snapshot.",
    )
    snapshot_based_schema: bool = option(
        "snapshot.mode.configuration.based.snapshot.schema",
        False,
        "With `configuration_based`: whether a snapshot records the schema. No effect without a schema history.",
    )
    snapshot_based_stream: bool = option(
        "snapshot.mode.configuration.based.start.stream", False, "With `configuration_based`: whether the log follows."
    )
    snapshot_based_on_schema_error: bool = option(
        "snapshot.mode.configuration.based.snapshot.on.schema.error",
        False,
        "With `configuration_based`: whether a lost schema history is rebuilt. No effect without a schema history.",
    )
    snapshot_based_on_data_error: bool = option(
        "snapshot.mode.configuration.based.snapshot.on.data.error",
        False,
        "With `configuration_based`: whether a snapshot is taken if the log is gone.",
    )
    snapshot_include_collection_list: Patterns = option(
        "snapshot.include.collection.list",
        (),
        "Regular expressions of the captured tables that a snapshot reads, as `schema.table`, in this order; "
        "all if empty.",
    )
    snapshot_select_statement_overrides: Words = option(
        "snapshot.select.statement.overrides",
        (),
        "Tables, as `schema.table`, that a snapshot reads with a statement of their own.",
    )
    snapshot_select_statements: Family = option(
        STATEMENTS, {}, "The `SELECT` statement of one of these tables; it must return the table's columns."
    )
    snapshot_query_mode: Literal["select_all", "custom"] = option(
        "snapshot.query.mode", "select_all", "Whether tables are read in full, or as a `custom` query says."
    )
    snapshot_query_mode_custom_name: str | None = option(
        "snapshot.query.mode.custom.name",
        None,
        "Entry point (group `floodmark.snapshot_queries`) of the query for `snapshot.query.mode=custom`.",
    )
    snapshot_locking_mode_custom_name: str | None = option(
        "snapshot.locking.mode.custom.name",
        None,
        "Entry point (group `floodmark.snapshot_locks`) of the lock for `snapshot.locking.mode=custom`.",
    )
    snapshot_lock_timeout_ms: int = option(
        "snapshot.lock.timeout.ms",
        10_000,
        "How long to wait for a table's lock; only if `snapshot.locking.mode` is not `none`.",
        ge=0,
    )
    snapshot_max_threads: int | None = option(
        "snapshot.max.threads",
        None,
        "Most connections that a snapshot reads with at a time. If not given: as many as Spark has cores; for MySQL "
        "and MariaDB, whose tables the query's process reads, two at most.",
        "snapshot.max.threads (its default is 1)",
        ge=1,
    )
    snapshot_tables_order_by_row_count: Literal["disabled", "ascending", "descending"] = option(
        "snapshot.tables.order.by.row.count",
        "disabled",
        "Whether tables are read in the order of their (estimated) number of rows.",
    )
    snapshot_fetch_size: int | None = option(
        "snapshot.fetch.size", None, "No effect: rows come as one stream, not in fetches.", ge=1
    )
    snapshot_delay_ms: int = option("snapshot.delay.ms", 0, "Wait before a snapshot begins.", ge=0)
    streaming_delay_ms: int = option("streaming.delay.ms", 0, "Wait between a snapshot and the log.", ge=0)
    snapshot_new_tables: Literal["off", "incremental", "blocking", "parallel"] = option(
        "snapshot.new.tables",
        "off",
        "What to do when the filters match tables that they didn't match before, because the filters changed or the "
        "tables are new: nothing, or take a snapshot of them. `parallel`: a consistent one while the log of the others "
        "goes on.",
        OWN,
    )
    snapshot_chunk_bytes: int = option(
        "snapshot.chunk.bytes", 16 * MIB, "Size of table data that one snapshot task reads.", OWN, ge=8192
    )
    snapshot_batch_target_ms: int = option(
        "snapshot.batch.target.ms",
        1000,
        "How long a micro-batch of an incremental snapshot should take; how much it reads adapts to it.",
        OWN,
        ge=1,
    )

    snapshot_statement_timeout_ms: int = option(
        "snapshot.statement.timeout.ms",
        5000,
        "While the log is streamed: how long planning waits for one statement at the source, and a task for a chunk of "
        "an incremental snapshot. What takes longer is tried again later, in smaller pieces, while the stream goes on.",
        OWN,
        ge=100,
    )

    @model_validator(mode="after")
    def _check_custom_names(self) -> Self:
        for mode in ("snapshot.mode", "snapshot.query.mode", "snapshot.locking.mode"):
            field = mode.replace(".", "_")
            if getattr(self, field, None) == "custom" and not getattr(self, f"{field}_custom_name"):
                raise ValueError(f"Option '{mode}.custom.name' is required with {mode}=custom.")
        return self

    @model_validator(mode="after")
    def _check_statements(self) -> Self:
        listed = [name.lower() for name in self.snapshot_select_statement_overrides]
        given = [name.lower() for name in self.snapshot_select_statements]
        prefix = family_prefix(STATEMENTS)
        for name in listed:
            if listed.count(name) > 1:
                raise ValueError(f"Option '{prefix.rstrip('.')}' has '{name}' twice (option names ignore case).")
            if name not in given:
                raise ValueError(f"Option '{prefix}{name}' is required, since '{prefix.rstrip('.')}' lists the table.")
        for name in given:
            if name not in listed:
                raise ValueError(f"Option '{prefix}{name}' has no effect: add the table to '{prefix.rstrip('.')}'.")
        return self

    def select_statements(self) -> dict[str, str]:
        """Return the statements that tables are read with instead of in full, by the tables' names."""
        given = {name.lower(): statement for name, statement in self.snapshot_select_statements.items()}
        return {name: given[name.lower()] for name in self.snapshot_select_statement_overrides}
