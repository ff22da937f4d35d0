"""Writes a table's shadow beside the table while that is rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa
from obstore.exceptions import BaseError

from floodmark.errors import FloodmarkError, TargetUnfitError, describe
from floodmark.logger import get_logger
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.delta.protocols import TableWriter
from floodmark.sinks.delta.rebuilding.marks import MarksOfBatch
from floodmark.sinks.delta.stores import TableFolder
from floodmark.sinks.rebuilds.mark import RebuildMark

log = get_logger(__name__)

_AGAIN = "Rebuild it again."


class SharingWriter(TableWriter, Protocol):
    """A writer whose files another log can name as well."""

    def share_files(self, shared: bool) -> None:
        """Say whether another log may name files that the table's doesn't, so that none may be removed."""


class ShadowedWriter:
    """Writes the micro-batches of a table, and of its shadow while it is rebuilt (``TableWriter``).

    The shadow is written first: a table never has a micro-batch that its shadow lacks, unless that is from before the
    rebuilding, or the mark says that the shadow isn't complete.

    Args:
        table: the table's name.
        target: writes the table.
        make_shadow: makes what writes a shadow, whose log is in a folder.
        marks: say whether the table is rebuilt.
    """

    def __init__(
        self,
        table: str,
        target: SharingWriter,
        make_shadow: Callable[[TableFolder], SharingWriter],
        marks: MarksOfBatch,
    ) -> None:
        self._table = table
        self._target = target
        self._make_shadow = make_shadow
        self._marks = marks
        self._shadow: tuple[str, SharingWriter] | None = None

    def write(self, batch: int, parts: Sequence[Part]) -> bool:
        """Commit a micro-batch, and return whether that changed the table (``TableWriter``)."""
        mark = self._marks.of(self._table, batch)
        self._target.share_files(mark is not None)
        if mark is None:
            self._shadow = None
        else:
            self._write_shadow(mark, batch, parts)
        return self._target.write(batch, parts)

    def _write_shadow(self, mark: RebuildMark, batch: int, parts: Sequence[Part]) -> None:
        """Write the shadow; where that fails, the query goes on without it."""
        try:
            self._shadow_of(mark).write(batch, parts)
        except (BaseError, FloodmarkError, MemoryError, OSError, pa.ArrowException) as error:
            # Before the table is written: from there on the shadow lacks what the table has.
            if self._marks.marks.fail(mark, f"Micro-batch {batch} couldn't be written: {describe(error)}"):
                log.error("a_rebuilding_has_failed", table=self._table, batch=batch, error=describe(error))
        # Whoever ends a rebuilding may have removed the shadow before this micro-batch was written to it.
        self._marks.marks.remove_if_ended(mark)

    def _shadow_of(self, mark: RebuildMark) -> SharingWriter:
        if self._shadow is None or self._shadow[0] != mark.id:
            made = self._make_shadow(self._marks.marks.shadow(mark))
            made.share_files(True)
            self._shadow = mark.id, made
            log.info("a_table_is_rebuilt", table=self._table, id=mark.id, effect="a shadow gets its rows, too")
        return self._shadow[1]


class ShadowListener:
    """Refuses what would leave rows of a shadow without values (``TableListener``)."""

    def is_missing(self, table: str, keyed: bool, torn: bool = False) -> None:
        """Called before a shadow is made.

        Raises:
            TargetUnfitError: earlier rows of the micro-batch would be left out.
        """
        del keyed
        if torn:
            raise altered(table)

    def exists(self, table: str) -> None:
        """Called when a shadow is written for the first time in this process."""

    def gets_columns(self, table: str, columns: Sequence[str]) -> None:
        """Called before a shadow with rows gets columns.

        Raises:
            TargetUnfitError: always, since the log doesn't tell their values in these rows.
        """
        del columns
        raise altered(table)


def altered(table: str) -> TargetUnfitError:
    """Return the error for a table that got columns, or others, while it is rebuilt."""
    return TargetUnfitError(f"The table '{table}' was altered while it was rebuilt.", _AGAIN)
