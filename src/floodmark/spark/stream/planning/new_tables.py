"""Looks for tables that the filters match since the query began."""

from __future__ import annotations

import math
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.tables import TableCatalog
from floodmark.errors import StatementTimeoutError
from floodmark.logger import get_logger
from floodmark.signals.records import ExecuteSnapshot

log = get_logger(__name__)

EVERY_S = 10.0
LATE_EVERY_S = 1.0
"""While the log would not have all changes of a new table."""


@dataclass(frozen=True)
class FoundTables:
    """The captured tables, and the snapshot of those that are new.

    Attributes:
        names: the names of all tables that are captured now.
        action: the snapshot of those that are new; None: there are none, or they are not read.
    """

    names: tuple[str, ...]
    action: ExecuteSnapshot | None


class NewTables:
    """Finds new tables from time to time.

    Args:
        options: the source's options.
        catalog: the source's tables.
    """

    def __init__(self, options: CommonOptions, catalog: TableCatalog) -> None:
        self._mode = options.snapshot_new_tables
        self._catalog = catalog
        self._late: frozenset[str] = frozenset()
        self._looked_at = 0.0

    def names(self) -> tuple[str, ...]:
        """Return the names of all captured tables, in order."""
        return tuple(sorted(set(self._catalog.names())))

    def find(self, known_names: Sequence[str], decided: bool) -> FoundTables | None:
        """Return what is captured now, with the snapshot that new tables get; None before the next check is due.

        Args:
            known_names: the names of the tables that were captured at the last check.
            decided: whether the query goes on already. Its first check waits for the source however long that takes.
        """
        now = time.monotonic()
        pause_s = LATE_EVERY_S if self._late else EVERY_S
        if decided and ((self._mode == "off" and not self._late) or now - self._looked_at < pause_s):
            return None
        known = frozenset(known_names)
        self._looked_at = now
        try:
            self._late = self._catalog.follow(known)
            tables = tuple(name for name in self.names() if name in known or name not in self._late)
        except StatementTimeoutError as exc:
            if not decided:
                raise
            log.warning("new_tables_are_not_looked_for", error=str(exc), again_in_s=pause_s)
            return None
        if not self._late.isdisjoint(known.difference(tables)):
            # They are different tables under known names, so they count as new at the next check.
            self._looked_at = -math.inf
        found = [name for name in tables if name not in known]
        if not found:
            return FoundTables(tables, None)
        if self._mode == "off":
            log.warning(
                "new_tables_are_not_read",
                tables=found,
                reason="snapshot.new.tables is off: their changes come, the rows that they held do not",
                cure="set snapshot.new.tables, or send an execute-snapshot signal that names them",
            )
            return FoundTables(tables, None)
        log.info("new_tables", tables=len(found), snapshot=self._mode)
        patterns = tuple(map(re.escape, found))
        return FoundTables(
            tables, ExecuteSnapshot(f"new-tables-{uuid.uuid4()}", patterns, self._mode != "incremental", owed=True)
        )
