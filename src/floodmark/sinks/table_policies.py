"""What the options of a mirror say about tables that are missing, and about new columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Protocol

from floodmark.config.common import CommonOptions
from floodmark.errors import TargetChangedError, TargetError
from floodmark.logger import get_logger
from floodmark.signals.files import new_signal, send
from floodmark.sinks.state.made_tables import MadeTables
from floodmark.sinks.state.targets_aside import TargetAside
from floodmark.sinks.state.written_batches import WrittenBatches

log = get_logger(__name__)


class TableOptions(Protocol):
    """What every kind of target has options for."""

    @property
    def missing_tables(self) -> Literal["fail", "read"]:
        """What happens when a target that the query has made is gone."""

    @property
    def new_columns(self) -> Literal["read", "leave_null", "fail"]:
        """What happens when a table gets a column."""


class TablePolicies:
    """Does what the options say about tables that are missing, and about new columns.

    Args:
        source: the source's options.
        options: those of the targets.
        made: the tables that the query has made.
        written: the micro-batches that it has written to them; None: nothing remembers them here.
    """

    def __init__(
        self, source: CommonOptions, options: TableOptions, made: MadeTables, written: WrittenBatches | None = None
    ) -> None:
        self._source = source
        self._options = options
        self._made = made
        self._written = written

    def is_missing(self, table: str, keyed: bool, torn: bool = False) -> None:
        """Called before a table is made.

        Args:
            keyed: whether its rows have a key.
            torn: whether earlier rows of the micro-batch are left out, since they don't go with later ones.
        """
        known = self._made.knows(table)
        if known and self._options.missing_tables == "fail":
            raise TargetChangedError(
                f"The target table '{table}' is gone. This query had made it, and its rows would be missing.",
                "Restore it, or set the sink's option missing.tables to 'read', so that the table is read again.",
            )
        if self._written is not None:
            self._written.forget(table)
        if not known and not torn:
            return
        self._read_again(table, "incremental" if keyed else "blocking")
        log.warning("a_table_is_made", table=table, known=known, effect="the source's table is read again")

    def exists(self, table: str) -> None:
        """Called when a table is written for the first time in this process, as soon as it exists."""
        self._made.add(table)

    def gets_columns(self, table: str, columns: Sequence[str]) -> None:
        """Called before a table that has rows gets columns that the source's rows have."""
        if self._options.new_columns == "fail":
            raise TargetError(
                f"The table '{table}' has new columns: {', '.join(columns)}. The log doesn't tell their values in rows "
                "that are in the target already.",
                "Set the sink's option new.columns to 'read', so that the table is read again, or to 'leave_null'.",
            )
        reads = self._options.new_columns == "read"
        if reads:
            self._read_again(table, "incremental")
        effect = "the table is read again" if reads else "earlier rows have null there"
        log.warning("the_target_gets_columns", table=table, columns=list(columns), effect=effect)

    def is_removed(self, target: TargetAside) -> None:
        """Called when a target that was set aside has been removed, which is how users take it back."""
        self.is_taken_back(target.table, target.keyed)
        if self._written is not None:
            self._written.forget(target.table)
        self._made.forget(target.table)

    def is_taken_back(self, table: str, keyed: bool) -> None:
        """Called before a target that was set aside is written again, without its earlier rows.

        Args:
            keyed: whether its rows have a key.
        """
        self._read_again(table, "incremental" if keyed else "blocking")
        log.info("target_is_taken_back", table=table, effect="the source's table is read again")

    def _read_again(self, table: str, kind: str) -> None:
        # Before the commit, so that a driver that dies in between sends it twice rather than not at all.
        data = {"data-collections": [re.escape(table)], "type": kind}
        send(self._source, self._source.owner, new_signal("execute-snapshot", data))
