"""Excluded tables: something about them fails, and the others go on without them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, Self

from floodmark.errors import NoTableLeftError
from floodmark.json_data import Json, stored_object
from floodmark.logger import get_logger

log = get_logger(__name__)

RETRIES = 3
GONE = "It was dropped, or renamed to what isn't captured, before all of its rows were read."
NO_KEY = "It has no key to read it by while the log goes on; a blocking snapshot reads it."
What = Literal["initial", "blocking", "incremental", "log"]
WHAT: tuple[What, ...] = ("initial", "blocking", "incremental", "log")


@dataclass(frozen=True)
class ExcludedTable:
    """A table that is excluded.

    Attributes:
        name: ``schema.table``.
        oid: the table, as the source numbers it.
        what: the snapshot that left it out; ``log``: its changes are left out.
        error: why.
    """

    name: str
    oid: int
    what: What
    error: str

    def to_json(self) -> dict[str, Json]:
        """Return the table as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the table that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        table = stored_object(data, "An excluded table")
        return cls(table.text("name"), table.integer("oid"), table.choice("what", WHAT), table.text("error"))


class ExcludedTables:
    """The excluded tables, while a micro-batch is planned."""

    def __init__(self) -> None:
        self._tables: dict[int, ExcludedTable] = {}

    @property
    def tables(self) -> tuple[ExcludedTable, ...]:
        """All of them."""
        return tuple(self._tables.values())

    def begin(self, tables: Iterable[ExcludedTable]) -> None:
        """Start with the excluded tables of an offset."""
        self._tables = {table.oid: table for table in tables}

    def prove_any_left(self, tables: Callable[[], Collection[str]]) -> None:
        """Raise an error if the changes or the initial snapshots of all of the query's tables are left out.

        Args:
            tables: returns the names of the tables; without any the query has one table, whatever its name.

        Raises:
            NoTableLeftError: they are.
        """
        failures = {table.name: table.error for table in self._tables.values() if table.what in ("log", "initial")}
        if failures and failures.keys() >= set(tables()):
            raise no_table_left(failures)

    def failed(self, table: ExcludedTable, tries: int) -> bool:
        """Record that a table could not be read; return whether it is excluded for that.

        Args:
            table: the entry to add if it is excluded.
            tries: how often in a row it has failed.
        """
        log.warning("table_cannot_be_read", table=table.name, error=table.error, tries=tries)
        if tries <= RETRIES:
            return False
        self.add(table)
        return True

    def add(self, table: ExcludedTable) -> None:
        """Exclude a table; the entry of one whose changes are left out is kept."""
        known = self._tables.get(table.oid)
        if known is not None and known.what == "log":
            return
        log.error("table_is_set_aside", table=table.name, part=table.what, error=table.error)
        self._tables[table.oid] = table

    def resume(self, oid: int, name: str) -> None:
        """Include a table again, since it is read.

        Args:
            oid: the table, as the source numbers it.
            name: ``schema.table``; a table that didn't exist when it was excluded is stored under ``absent(name)``.
        """
        for number in (oid, absent(name)):
            table = self._tables.pop(number, None)
            if table is not None:
                log.info("table_is_resumed", table=table.name)


def no_table_left(failures: Mapping[str, str]) -> NoTableLeftError:
    """Return the error of a query that has no other tables than those that fail.

    Args:
        failures: the errors by ``schema.table``.
    """
    causes = "; ".join(f"{name} ({error.rstrip('.')})" for name, error in failures.items())
    return NoTableLeftError(
        f"Nothing is left to deliver, since every table of the query fails: {causes}.",
        "Correct the cause and start the query again with the same checkpoint: it goes on where it was. To go on "
        "without what can't be decoded, set event.processing.failure.handling.mode=warn, which keeps it as dead "
        "letters (on MySQL and MariaDB also inconsistent.schema.handling.mode=warn), and read the table again by a "
        "signal (execute-snapshot). Such a signal also takes back a table that an earlier run has set aside.",
    )


def absent(name: str) -> int:
    """Return a placeholder for the number of a table that doesn't exist; it is negative."""
    return -zlib.crc32(name.encode()) - 1
