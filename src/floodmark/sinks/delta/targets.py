"""The targets of one query: writes what a micro-batch has of each, and sets aside those that can't take it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from obstore.exceptions import BaseError

from floodmark.config.common import CommonOptions
from floodmark.errors import FloodmarkError, TargetDamagedError, TargetError, TargetUnfitError, describe
from floodmark.logger import get_logger
from floodmark.redact import shown_uri, without_uri_secrets
from floodmark.sinks.delta.access import prove_shared
from floodmark.sinks.delta.format.data_files import DataFiles
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.delta.protocols import MakeWriter, TableWriter
from floodmark.sinks.delta.stores import FolderMarks, TableFolder, table_folder
from floodmark.sinks.delta.tables import application_of
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.state.made_tables import MadeTables
from floodmark.sinks.state.targets_aside import Marks, TargetAside, TargetsAside
from floodmark.sinks.state.written_batches import WrittenBatches
from floodmark.sinks.table_policies import TablePolicies

log = get_logger(__name__)

_AT_ONCE = 4
"""How many tables are committed at the same time."""
_FULL = re.compile(r"\b(?:os error|errno) (?:27|28|122)\b", re.IGNORECASE)
"""What errors of libraries say where a file gets too large, or a disk or a quota is used up."""
Rows = Sequence[Mapping[str, Any]]
"""What tasks have sent of a table (``MESSAGE``)."""


class Targets:
    """The targets of a query.

    Args:
        location: a path, or a URI such as ``s3://bucket/tables``.
        source: the source's options.
        options: the mirror's.
        query: the query's id.
        make_writer: makes the writer of a table.
        marks: where those that are set aside are marked; None: in their folders.

    Raises:
        ConfigError: there is no such place.
        StateDirError: the state directory can't be read.
    """

    def __init__(
        self,
        location: str,
        source: CommonOptions,
        options: MirrorOptions,
        query: str,
        make_writer: MakeWriter,
        marks: Marks | None = None,
    ) -> None:
        self.query = query
        self._location = location
        self._make_writer = make_writer
        self._isolates = source.errors_tables == "isolate"
        self._made = MadeTables(source, query)
        self._marks = marks or FolderMarks(location)
        self._aside = TargetsAside(source, query, self._marks)
        if self._aside.tables:
            log.warning("targets_are_set_aside", tables=sorted(self._aside.tables), effect="they get no rows")
        self._written = WrittenBatches(source, query)
        self._policies = TablePolicies(source, options, self._made, self._written)
        self._writers: dict[str, TableWriter] = {}
        self._told: set[tuple[str, str]] = set()

    def aside(self) -> frozenset[str]:
        """Return the tables whose rows are left out, after those are taken back whose targets were removed."""
        try:
            removed = self._aside.removed()
        except (BaseError, OSError) as error:
            raise unwritable(self._location, ", ".join(sorted(self._aside.tables)), error) from error
        for target in removed:
            self._policies.is_removed(target)
            self._aside.forget(target.table)
        return self._aside.tables

    def write(self, batch: int, found: Mapping[str, Rows]) -> None:
        """Write what tasks have made of a micro-batch.

        Args:
            batch: its number.
            found: what they have sent, by table.

        Raises:
            TargetError: a table can't be written, and isn't set aside. The others are written.
        """
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            begun = pool.submit(self._written.begin, batch)
            if not self._writers:
                # Only then it is known what the tables must have.
                begun.result()
            written = {table: pool.submit(self._write, batch, table, rows, begun) for table, rows in found.items()}
        errors = {table: error for table, one in written.items() if (error := one.exception()) is not None}
        for error in errors.values():
            if not self._isolates or not isinstance(error, TargetUnfitError | TargetDamagedError):
                raise error
        begun.result()
        if errors:
            self._set_aside(batch, found, errors)

    def _set_aside(self, batch: int, found: Mapping[str, Rows], errors: Mapping[str, BaseException]) -> None:
        """Set aside the tables that have failed.

        Raises:
            TargetError: no other table is left. Then none is set aside, so that the query loses nothing.
        """
        if not ({*self._made.names(), *found} - self._aside.tables - errors.keys()):
            raise next(iter(errors.values()))
        for table, error in errors.items():
            keyed = any(row["key"] for row in found[table])
            folder = table_folder(self._location, table)
            self._writers.pop(table, None)
            try:
                self._aside.add(TargetAside(self.query, table, keyed, batch, _reason(error)))
            except (BaseError, OSError) as unwritten:
                raise unwritable(self._location, table, unwritten) from unwritten
            log.error(
                "target_is_set_aside",
                table=table,
                batch=batch,
                error=_reason(error),
                resume=f"Remove {self._marks.place(table)}; the table is read again with the next micro-batch.",
            )
            _discard(folder, table, found[table])

    def _write(self, batch: int, table: str, rows: Rows, begun: Future[None]) -> None:
        try:
            writer = self._writer(table)
            if writer is None:
                _discard(table_folder(self._location, table), table, rows)
                return
            parts = self._parts(table, rows)
            prove_shared(table_folder(self._location, table), table, parts)
            writer.write(batch, parts)
            begun.result()
            self._written.add(table, batch)
        except (BaseError, OSError) as error:
            raise unwritable(self._location, table, error) from error
        except MemoryError as error:
            raise TargetError(
                f"What a micro-batch needs of the target table '{table}' doesn't fit into the driver's memory: "
                f"{describe(error).rstrip('.')}.",
                "Give the driver's machine or container more of it (spark.driver.memory is only the JVM's), and start "
                "the query again; nothing is lost. A TRUNCATE needs much with deletes=soft or history=on.",
            ) from error
        for column in {column for part in parts for column in part.unrepresentable}:
            if (table, column) not in self._told:
                self._told.add((table, column))
                log.warning(
                    "values_are_null_in_the_target", table=table, column=column, why="its type has no such value"
                )

    def _parts(self, table: str, rows: Rows) -> list[Part]:
        try:
            return [Part.from_message(row) for row in rows]
        except TargetError:
            # What other tasks have written: where a disk is full, it would stay with each further try.
            _discard(table_folder(self._location, table), table, rows)
            raise

    def _writer(self, table: str) -> TableWriter | None:
        """Return the writer of a table; None: it is set aside."""
        writer = self._writers.get(table)
        if writer is None and not self._aside.finds(table):
            folder = table_folder(self._location, table)
            written = self._written.last(table)
            writer = self._make_writer(table, folder, application_of(self.query), self._policies, written)
            self._writers[table] = writer
        return writer


def _reason(error: BaseException) -> str:
    # Its ways out are those of a query that has ended; a target that is set aside has only one.
    return error.what if isinstance(error, FloodmarkError) else describe(error)


def _discard(folder: TableFolder, table: str, rows: Rows) -> None:
    DataFiles(folder.store, table).discard(json.loads(add) for row in rows for add in row["adds"] or ())


def unwritable(location: str, table: str, error: Exception) -> TargetError:
    """Return the error for a store that can't be used.

    Args:
        location: the mirror's path.
        table: the table that is written or read.
    """
    reason = without_uri_secrets(location, describe(error)).rstrip(".")
    cure = (
        "Free some space there"
        if _FULL.search(reason)
        else "See to it that the driver and all executors may read and write there"
    )
    return TargetError(
        f"The files of the target table '{table}' in {shown_uri(location)} can't be written or read: {reason}.",
        f"{cure}, and start the query again. Nothing is lost.",
    )
