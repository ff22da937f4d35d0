"""The context that the snapshot engines share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    """

    source: Source
    notify: Callable[[Notification], None]
    excluded: ExcludedTables
