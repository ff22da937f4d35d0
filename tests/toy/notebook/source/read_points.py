"""Read points of a notebook: SQLite's read transactions, each of which shows an exact position of the log."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from floodmark.capture.segment import SegmentData
from floodmark.connectors.contract.chunk import Chunk, KeyRangeChunk
from floodmark.connectors.contract.read_points import ChunkOutcome
from floodmark.connectors.contract.table_key import TableKey
from floodmark.errors import ConnectError, SourceStateError
from floodmark.json_data import Json
from tests.toy.notebook.database.notebook import Notebook, Table, log_state, quote, tables_of
from tests.toy.notebook.decode.records import starts_of
from tests.toy.notebook.options import NotebookOptions
from tests.toy.notebook.position import after_transaction
from tests.toy.notebook.snapshot.key_ranges import (
    Bound,
    NotebookKeyRanges,
    key_of,
    null_condition,
    ordered,
    range_condition,
)

FETCHED_ROWS = 256


class NotebookView:
    """A ``Window``, and as such a ``ReadPoint``, that reads its rows itself, and so ``LocalRows``.

    Args:
        notebook: the notebook.
        piece_bytes: size of the pieces in which rows are read.

    Raises:
        ConnectError: the notebook can't be read.
    """

    def __init__(self, notebook: Notebook, piece_bytes: int) -> None:
        self._piece_bytes = piece_bytes
        self._lock = threading.Lock()
        self._ended = False
        try:
            # Otherwise the log might hold a transaction that the view doesn't show.
            with notebook.locked():
                self._conn: sqlite3.Connection | None = notebook.connect()
                self._conn.execute("BEGIN")
                _, committed = log_state(self._conn)
            self.tables = {table.number: table for table in tables_of(self._conn)}
        except (OSError, sqlite3.Error) as exc:
            raise ConnectError(
                f"The notebook cannot be read: {exc}.", "Correct notebook.path, or bring the directory back."
            ) from None
        self.position = self.low = after_transaction(committed)
        self.visible = str(committed)
        self.token: dict[str, Json] = {
            "id": uuid.uuid4().hex,
            "visible": self.visible,
            "micros": time.time_ns() // 1000,
        }

    def __enter__(self) -> NotebookView:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    @property
    def local(self) -> NotebookView:
        """Reads its rows: no other process can."""
        return self

    def alive(self) -> bool:
        """Return whether it can still be read from, or everything needed has been."""
        return self._ended or self._conn is not None

    def settle(self, after: str) -> bool:
        """Return whether the log is delivered no further than its position, which is exact from the beginning."""
        return self.position >= after

    def key_ranges(self, oid: int, key: TableKey, condition: str) -> NotebookKeyRanges:
        """Return a table as the view shows it, to be split by its key.

        Raises:
            SourceStateError: the view doesn't show the table.
        """
        if oid not in self.tables:
            raise SourceStateError("A table that is to be read does not exist.")
        return NotebookKeyRanges(self.query, self.tables[oid].name, key, condition)

    def split(self, oid: int, count: int) -> list[list[str]]:
        """Return keys that split a table into up to ``count`` ranges."""
        table = self.tables.get(oid)
        key = None if table is None else key_of(table)
        return [] if key is None else self.key_ranges(oid, key, "").cuts(count)

    def query(self, statement: str, values: Sequence[Bound] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query.

        Raises:
            ConnectError: the view has been released.
            SourceStateError: SQLite refuses the statement.
        """
        with self._lock:
            return self._run(statement, values).fetchall()

    def _run(self, statement: str, values: Sequence[Bound]) -> sqlite3.Cursor:
        if self._conn is None:
            raise ConnectError("The view of the notebook has been released.")
        try:
            return self._conn.execute(statement, values)
        except sqlite3.Error as exc:
            raise SourceStateError(f"The notebook refuses a statement: {exc}.") from None

    def rows(self, chunk: Chunk) -> Generator[SegmentData, None, ChunkOutcome]:
        """Yield the rows of a chunk as lines of JSON, and return ``nothing`` if the view doesn't show the table."""
        table: Table = chunk.table.structure
        if chunk.table.statement is None and self.tables.get(table.number) != table:
            return "nothing"
        statement, values = _select(table, chunk)
        with self._lock:
            cursor = self._run(statement, values)
        while lines := self._fetch(cursor):
            payload = np.frombuffer("".join(f"{line}\n" for line in lines).encode(), np.uint8)
            data = SegmentData(payload, starts_of(payload))
            if isinstance(chunk, KeyRangeChunk) and chunk.in_order:
                last = dict(zip((column.name for column in table.columns), json.loads(lines[-1])["after"], strict=True))
                data.header["last"] = [last[name] for name in chunk.key.columns]
            yield data
        return "complete"

    def _fetch(self, cursor: sqlite3.Cursor) -> list[str]:
        lines: list[str] = []
        size = 0
        while size < self._piece_bytes:
            with self._lock:
                if self._conn is None:
                    raise ConnectError("The view of the notebook has been released.")
                found = cursor.fetchmany(FETCHED_ROWS)
            if not found:
                break
            lines += [line for (line,) in found]
            size = sum(map(len, lines))
        return lines

    def close(self) -> None:
        """Release the view; the window ends where it began, since its position is exact."""
        self.release()
        self._ended = True

    def release(self) -> None:
        """End the read transaction; threads that read get a ``ConnectError``."""
        with self._lock:
            if self._conn is not None:
                self._conn.close()
                self._conn = None


def _select(table: Table, chunk: Chunk) -> tuple[str, list[Bound]]:
    """Return the statement that reads a chunk's rows, each as a line of JSON, and the values in it."""
    texts = ", ".join(f"CAST({quote(column.name)} AS TEXT)" for column in table.columns)
    rows = f"SELECT json_object('after', json_array({texts})) FROM"
    if chunk.table.statement is not None:
        # The statement may end in a comment, so the bracket has a line of its own.
        return f"{rows} ({chunk.table.statement}\n)", []
    if not isinstance(chunk, KeyRangeChunk):
        return f"{rows} {quote(table.name)}", []
    where, values = range_condition(chunk.key, chunk.after, chunk.upto)
    if chunk.upto is None and not chunk.to_end:
        where, values = null_condition(chunk.key), []
    condition = f" AND ({chunk.condition})" if chunk.condition else ""
    return f"{rows} {quote(table.name)} WHERE ({where}){condition} ORDER BY {ordered(chunk.key)}", values


class NotebookSnapshots:
    """A ``SnapshotSource``, and a ``WindowSource`` as ``windows``."""

    local = True

    def __init__(self, options: NotebookOptions, notebook: Notebook) -> None:
        self._options = options
        self._notebook = notebook

    def open(self, begins: bool = False) -> NotebookView:
        """Open a view of the tables."""
        del begins
        return NotebookView(self._notebook, self._options.snapshot_chunk_bytes)

    def open_unsettled(self) -> NotebookView:
        """Open a view of the tables; its position is known."""
        return self.open()

    def reopen(self, token: dict[str, Json]) -> None:
        """Return None: a view ends with the process that has opened it."""
        del token


class NotebookWindows:
    """A ``WindowSource``."""

    def __init__(self, snapshots: NotebookSnapshots) -> None:
        self._snapshots = snapshots

    def open(self, after: str) -> NotebookView:
        """Open a view of the tables, which shows all that was delivered."""
        del after
        return self._snapshots.open()
