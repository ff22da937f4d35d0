"""What every engine of snapshots works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from floodmark.connectors.contract.base import Connector
from floodmark.notifications.records import Notification
from floodmark.snapshots.excluded_tables import TablesAside


@dataclass(frozen=True)
class Surroundings:
    """What the engines of one query share.

    Attributes:
        connector: the source.
        tell: takes notifications.
        aside: the tables that are set aside.
    """

    connector: Connector
    tell: Callable[[Notification], None]
    aside: TablesAside
