"""Parts of tables, as the snapshot engines plan them and readers take them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from floodmark.connectors.contract.table_key import TableKey
from floodmark.json_data import Json


@dataclass(frozen=True)
class DescribedTable:
    """A table to be read, as a connector describes it for its own readers.

    Attributes:
        oid: the number that identifies it.
        name: as SQL spells it.
        structure: the columns that are read, and the names that the table has in events. Only the connector reads it.
        statement: the SELECT that reads the rows; None: they are read from the table itself.
    """

    oid: int
    name: str
    structure: Any
    statement: str | None = None


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A part of a table that is read at once; as such all of the table. It is pickled, and never stored.

    Attributes:
        table: what is read.
        file: the table's fingerprint when the part was planned; with another one nothing is read.
        number: the engine's number of the chunk, which the report repeats.
        token: what it takes to read at the read point, as the connector gave it.
        position: the read point's position, or where the chunk's window ends; its events have it.
        low: where the window begins, if the rows were read in one.
        lost: whether the read point is gone, so that only rows that have not changed since are read.
        since: only rows are read that may have changed since that snapshot; None: all.
        began: the snapshot from which on the log has all changes, if it is an earlier one; rows without a key that
            were made later are left out where that is certain, since nothing would tell them from those of the log.
        condition: on the rows, as SQL; empty: all.
        marker: ``snapshot`` of the source block.
        streams: whether the log is streamed meanwhile, so that statements and locks are limited.
        files: names of the files with the rows, if the planner has read them.
        share: its size as a fraction of a full chunk.
    """

    table: DescribedTable
    file: str
    number: tuple[int, ...] = ()
    token: dict[str, Json] = field(default_factory=dict)
    position: str = ""
    low: str = ""
    lost: bool = False
    since: str | None = None
    began: str | None = None
    condition: str = ""
    marker: str = "true"
    streams: bool = False
    files: tuple[str, ...] = ()
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class PageChunk(Chunk):
    """The pages ``[first, last)`` of a table."""

    first: int
    last: int


@dataclass(frozen=True, kw_only=True)
class KeyRangeChunk(Chunk):
    """The rows of a table whose keys are in ``(after, upto]``.

    Attributes:
        key: the columns that the table is cut by.
        after: None: from the first key on.
        upto: None: the rows that have no key, or with ``to_end`` all up to the last key.
        in_order: whether each piece of rows that is read says which key it ends with.
    """

    key: TableKey
    after: list[str] | None
    upto: list[str] | None
    to_end: bool = False
    in_order: bool = False
