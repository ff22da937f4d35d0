"""Creates the planner of a source with its connector."""

from __future__ import annotations

import pyarrow as pa

from floodmark.capture.retry import RetryPolicy
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.source import Source
from floodmark.connectors.registry import connector_module
from floodmark.snapshots.modes import make_snapshotter
from floodmark.spark.stream.planning.planner import Planner
from floodmark.spark.stream.row_schema import RowSchema


def make_planner(options: CommonOptions, schema: pa.Schema) -> Planner:
    """Return the planner of a source, for a DataFrame with these columns."""
    source: Source = connector_module(options.connector, "connector").make_source(options)
    return Planner(
        options,
        source,
        RetryPolicy.from_options(options, options.busy_wait_s),
        options.owner,
        make_snapshotter(options),
        RowSchema(options, schema, source.log),
    )
