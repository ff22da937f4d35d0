"""The context that the snapshot engines share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from floodmark.config.table_names import SCHEMA_AND_TABLE, TableNames
from floodmark.connectors.contract.source import Source
from floodmark.notifications.records import Notification
from floodmark.snapshots.excluded_tables import ExcludedTables


@dataclass(frozen=True)
class SnapshotContext:
    """The context that the snapshot engines of one query share.

    Attributes:
        source: the source.
        notify: receives notifications.
        excluded: the excluded tables.
        names: how users may write the names of tables.
    """

    source: Source
    notify: Callable[[Notification], None]
    excluded: ExcludedTables
    names: TableNames = SCHEMA_AND_TABLE
