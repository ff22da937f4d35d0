"""What a view or a table is, for the queries that read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from tests.support.oracle.sql.session import Session

ARROW = {
    "N": pa.decimal128(38, 0),
    "V": pa.string(),
    "D": pa.timestamp("s"),
    "T": pa.timestamp("us"),
    "R": pa.binary(),
}
"""Columns' types by letter: number, text, DATE, TIMESTAMP, RAW."""


@dataclass(frozen=True)
class View:
    """A view of the dictionary.

    Attributes:
        columns: names with the letters of their types.
        rows: returns the rows that a session sees.
    """

    columns: tuple[tuple[str, str], ...]
    rows: Callable[[Session], Sequence[Mapping[str, Any]]]

    def read(self, session: Session) -> pa.Table:
        """Return the view as a session sees it."""
        rows = self.rows(session)
        arrays = {name: pa.array([_plain(row.get(name)) for row in rows], ARROW[kind]) for name, kind in self.columns}
        return pa.table(arrays)


def view(columns: str, rows: Callable[[Session], Sequence[Mapping[str, Any]]]) -> View:
    """Return a view.

    Args:
        columns: as ``NAME:N OTHER:V``; a column without a letter is a text.
        rows: returns its rows.
    """
    pairs = (one.partition(":")[::2] for one in columns.split())
    return View(tuple((name, kind or "V") for name, kind in pairs), rows)


def _plain(value: Any) -> Any:
    """Return a value as Arrow takes it; Oracle has no empty text."""
    if value == "":
        return None
    if hasattr(value, "tzinfo") and value.tzinfo is not None:
        return value.replace(tzinfo=None)
    return value
