"""The planner of a source, by connector."""

from __future__ import annotations

from floodmark.capture.retry import RetryPolicy
from floodmark.config.common import CommonOptions
from floodmark.connectors.base import Connector
from floodmark.connectors.find import connector_module
from floodmark.snapshot.modes import make_snapshotter
from floodmark.spark.planner import Planner


def make_planner(options: CommonOptions) -> Planner:
    """Return the planner of a source."""
    connector: Connector = connector_module(options.connector, "connector").make_connector(options)
    return Planner(
        options,
        connector,
        RetryPolicy.from_options(options, options.busy_wait_s),
        options.owner,
        make_snapshotter(options),
    )
