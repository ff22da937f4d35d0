"""The planner of a source, by connector."""

from __future__ import annotations

from floodmark.capture.retry import RetryPolicy
from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.postgres.connector import PostgresConnector
from floodmark.snapshot.modes import make_snapshotter
from floodmark.spark.planner import Planner


def make_planner(options: PostgresOptions) -> Planner:
    """Return the planner of a source."""
    busy_s = options.slot_max_retries * options.slot_retry_delay_ms / 1000
    return Planner(
        options,
        PostgresConnector(options),
        RetryPolicy.from_options(options, busy_s),
        options.owner,
        make_snapshotter(options),
    )
