"""The snapshotter of each ``snapshot.mode``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from floodmark.config.snapshot import SnapshotOptions
from floodmark.extensions.discovery import load_plugin
from floodmark.extensions.snapshotter import SnapshotLock, SnapshotQuery, Snapshotter

Rule = Callable[[bool, bool], bool]
Plugin = TypeVar("Plugin", Snapshotter, SnapshotQuery, SnapshotLock)


def constantly(answer: bool) -> Rule:
    """Return a rule with the same result at every start."""
    return lambda _exists, _in_progress: answer


def until_done(offset_exists: bool, snapshot_in_progress: bool) -> bool:
    """Return whether a first snapshot must still be taken or finished."""
    return not offset_exists or snapshot_in_progress


@dataclass
class BuiltIn(Snapshotter):
    """A snapshotter that is a row of Debezium's table of modes."""

    name: str
    data: Rule
    schema: Rule
    stream: bool = True
    on_schema_error: bool = False
    on_data_error: bool = False
    from_snapshot: bool = True

    def should_snapshot_data(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:
        """Return whether the tables' rows are read."""
        return self.data(offset_exists, snapshot_in_progress)

    def should_snapshot_schema(self, offset_exists: bool, snapshot_in_progress: bool) -> bool:
        """Return whether the tables' structure is recorded."""
        return self.schema(offset_exists, snapshot_in_progress)

    def should_stream(self) -> bool:
        """Return whether the log is delivered after the snapshot."""
        return self.stream

    def should_snapshot_on_schema_error(self) -> bool:
        """Return whether a lost schema history is rebuilt."""
        return self.on_schema_error

    def should_snapshot_on_data_error(self) -> bool:
        """Return whether a new snapshot is taken if the log is gone."""
        return self.on_data_error

    def should_stream_events_starting_from_snapshot(self) -> bool:
        """Return whether the log before a snapshot may be left out."""
        return self.from_snapshot


BUILT_IN = (
    BuiltIn("always", constantly(True), constantly(True)),
    BuiltIn("initial", until_done, until_done),
    BuiltIn("initial_only", until_done, until_done, stream=False),
    BuiltIn("no_data", constantly(False), until_done),
    BuiltIn("when_needed", until_done, until_done, on_data_error=True),
    BuiltIn("recovery", constantly(False), constantly(True), on_schema_error=True, from_snapshot=False),
)


def make_snapshotter(options: SnapshotOptions) -> Snapshotter:
    """Return the snapshotter that ``snapshot.mode`` names.

    Raises:
        ConfigError: no installed package provides the custom snapshotter, or it cannot be used.
    """
    mode = options.snapshot_mode
    if mode == "custom":
        plugin = load_plugin(
            "floodmark.snapshotters", options.snapshot_mode_custom_name, "snapshot.mode.custom.name", Snapshotter
        )
        return _configured(plugin, options)
    if mode == "configuration_based":
        return BuiltIn(
            mode,
            constantly(options.snapshot_based_data),
            constantly(options.snapshot_based_schema),
            options.snapshot_based_stream,
            options.snapshot_based_on_schema_error,
            options.snapshot_based_on_data_error,
        )
    return next(built_in for built_in in BUILT_IN if built_in.name == mode)


def make_query(options: SnapshotOptions) -> SnapshotQuery | None:
    """Return the custom query; None if tables are read in full."""
    if options.snapshot_query_mode != "custom":
        return None
    plugin = load_plugin(
        "floodmark.snapshot_queries",
        options.snapshot_query_mode_custom_name,
        "snapshot.query.mode.custom.name",
        SnapshotQuery,
    )
    return _configured(plugin, options)


def make_custom_lock(options: SnapshotOptions) -> SnapshotLock:
    """Return the lock that ``snapshot.locking.mode.custom.name`` names."""
    plugin = load_plugin(
        "floodmark.snapshot_locks",
        options.snapshot_locking_mode_custom_name,
        "snapshot.locking.mode.custom.name",
        SnapshotLock,
    )
    return _configured(plugin, options)


def _configured(plugin: Plugin, options: SnapshotOptions) -> Plugin:
    plugin.configure(options.values())
    return plugin
