"""What the target database itself keeps of queries: offsets, whose the tables are, which are set aside or rebuilt.

A micro-batch's offset is written in the transaction of its rows, so both are there or neither.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from floodmark.errors import TargetBusyError, TargetChangedError, TargetUnfitError
from floodmark.sinks.micro_batches import comes_again
from floodmark.sinks.relational.dialect import Dialect, Session

OFFSETS, TABLES, ASIDE = "floodmark_offsets", "floodmark_tables", "floodmark_set_aside"
REBUILDS = "floodmark_rebuilds"
NEVER = -1
"""The number of the micro-batch before the first one."""


@dataclass(frozen=True)
class Ownership:
    """Whose a target is.

    Attributes:
        query: whose rows it has, or had.
        source: the source's name of the table.
        owned: whether the query writes it now; another one took it over otherwise.
        stale: whether its rows are to be removed before it is written again.
        key: the columns of the key that it was made for.
    """

    query: str
    source: str
    owned: bool
    stale: bool
    key: Sequence[str]


class Bookkeeping:
    """The tables of Floodmark's own in a target database.

    Args:
        dialect: the database's.
        query: the query's id.
    """

    def __init__(self, dialect: Dialect, query: str) -> None:
        self._dialect = dialect
        self._query = query

    def create(self, session: Session) -> None:
        """Make the tables, unless they are there."""
        for name, columns, key in self._definitions():
            if self._dialect.table(session, name) is None:
                try:
                    session.execute(self._dialect.create(name, columns, key), doing=f"making the table '{name}'")
                except TargetUnfitError as error:
                    # Two queries that start at the same time: one of them finds that it is there.
                    raise TargetBusyError(error.what, error.cure) from None

    def _definitions(self) -> Sequence[tuple[str, Sequence[tuple[str, str]], Sequence[str]]]:
        text, name, flag = self._dialect.text_types()
        changed = ("changed", "timestamp DEFAULT CURRENT_TIMESTAMP")
        return (
            (OFFSETS, [("query", name), ("batch", "bigint NOT NULL"), ("marks", text), changed], ["query"]),
            (
                TABLES,
                [
                    ("target", name),
                    ("query", name),
                    ("source", text),
                    ("owned", flag),
                    ("stale", flag),
                    ("key_columns", text),
                ],
                ["target", "query"],
            ),
            (
                ASIDE,
                [("query", name), ("target", name), ("source", text), ("reason", text), ("content", text)],
                ["query", "target"],
            ),
            (
                REBUILDS,
                [
                    ("query", name),
                    ("target", name),
                    ("mark", text),
                    ("written", "bigint NOT NULL"),
                    ("columns_written", text),
                    ("replaced", flag),
                ],
                ["query", "target"],
            ),
        )

    def offset(self, session: Session, lock: bool = False) -> tuple[int, Mapping[str, int]]:
        """Return the number of the last micro-batch of the query and its marks; ``NEVER`` if it has none.

        Args:
            lock: whether no other process of the query may write before the transaction ends.
        """
        end = " FOR UPDATE" if lock else ""
        found = session.query(
            f"SELECT batch, marks FROM {self._name(OFFSETS)} WHERE query = %s{end}",
            (self._query,),
            "reading the query's offset",
        )
        if not found:
            return NEVER, {}
        ((batch, marks),) = found
        return int(batch), {table: int(mark, 16) for table, mark in json.loads(marks).items()}

    def begin_offsets(self, session: Session) -> None:
        """Make the row of the query's offset, which later transactions lock."""
        if not session.query(f"SELECT 1 FROM {self._name(OFFSETS)} WHERE query = %s", (self._query,)):
            session.execute(self._dialect.keep_offset(), (self._query, NEVER, "{}"), "beginning the query's offsets")

    def keep_offset(self, session: Session, batch: int, marks: Mapping[str, int]) -> None:
        """Write the offset of a micro-batch, in its transaction.

        Args:
            marks: how far it goes for each of its tables (``mark_of``).
        """
        values = (self._query, batch, json.dumps({table: f"{mark:016x}" for table, mark in marks.items()}))
        session.execute(self._dialect.keep_offset(), values, "writing the query's offset")

    def owners(self, session: Session, target: str) -> list[Ownership]:
        """Return whose a target is and was."""
        found = session.query(
            f"SELECT query, source, owned, stale, key_columns FROM {self._name(TABLES)} WHERE target = %s",
            (target,),
            "reading whose a target is",
        )
        return [
            Ownership(query, source, bool(owned), bool(stale), json.loads(key))
            for query, source, owned, stale, key in found
        ]

    def own(self, session: Session, target: str, source: str, key: Sequence[str], stale: bool = False) -> None:
        """Make a target the query's.

        Args:
            stale: whether its rows are to be removed before it is written.
        """
        table, doing = self._name(TABLES), "writing whose a target is"
        # In this order, so that a query that is killed in between finds what it can go on from.
        statement = f"UPDATE {table} SET owned = %s WHERE target = %s AND query <> %s"
        session.execute(statement, (self._dialect.flag(False), target, self._query), doing)
        values = (source, self._dialect.flag(True), self._dialect.flag(stale), json.dumps([*key]), target, self._query)
        if any(one.query == self._query for one in self.owners(session, target)):
            given = "source = %s, owned = %s, stale = %s, key_columns = %s"
            session.execute(f"UPDATE {table} SET {given} WHERE target = %s AND query = %s", values, doing)
        else:
            columns = "source, owned, stale, key_columns, target, query"
            session.execute(f"INSERT INTO {table} ({columns}) VALUES (%s, %s, %s, %s, %s, %s)", values, doing)

    def mark(self, session: Session, target: str, source: str, reason: str, content: str) -> None:
        """Mark a target as one that is set aside, whose rows are to be removed before it is written again.

        Args:
            content: what ``marked`` returns.
        """
        # A mark that is there stays: without it the rows that the target lacks would be forgotten.
        if self.marked(session, target) is None:
            values = (self._query, target, source, reason, content)
            columns = "query, target, source, reason, content"
            statement = f"INSERT INTO {self._name(ASIDE)} ({columns}) VALUES (%s, %s, %s, %s, %s)"
            session.execute(statement, values, "setting a target aside")
        session.execute(
            f"UPDATE {self._name(TABLES)} SET stale = %s WHERE target = %s AND query = %s",
            (self._dialect.flag(True), target, self._query),
            "setting a target aside",
        )

    def marked(self, session: Session, target: str) -> str | None:
        """Return what a target is marked with; None: it isn't set aside."""
        statement = f"SELECT content FROM {self._name(ASIDE)} WHERE query = %s AND target = %s"
        found = session.query(statement, (self._query, target), "reading which targets are set aside")
        return str(found[0][0]) if found else None

    def _name(self, table: str) -> str:
        # Every statement here has values, so a percent sign in the schema's name must be doubled.
        return self._dialect.full_name(table).replace("%", "%%")


def unwritten(
    batch: int, marks: Mapping[str, int], done: int, known: Mapping[str, int], place: str
) -> Sequence[str] | None:
    """Return the tables of a micro-batch that the target lacks; None: it has this one, which Spark delivers again.

    A micro-batch that is delivered again has other tables where the query's options have changed.

    Args:
        batch: its number.
        marks: those of its tables.
        done: the number of the last one that was written.
        known: its marks.
        place: the target, for errors.

    Raises:
        TargetChangedError: it is an earlier one, another one with that number, or one in between is missing.
    """
    if done == batch and all(comes_again(known[table], mark) for table, mark in marks.items() if table in known):
        return [table for table in marks if table not in known] or None
    if done >= batch:
        raise TargetChangedError(
            f"The checkpoint is older than the target {place}: it goes on with micro-batch {batch}, but the target has "
            f"{done} already, with other rows.",
            "Start the query with the checkpoint that belongs to the target. If it is lost, use a new one, with the "
            "sink's option existing.tables=empty.",
        )
    if done < batch - 1:
        has = f"the last one that it has is {done}" if done >= 0 else "it has none"
        raise TargetChangedError(
            f"The target {place} lacks micro-batches of this query: it goes on with {batch}, but {has}. The target "
            "was restored from a backup, has lost transactions in a fail-over, or is another one.",
            "Start the query with a new checkpoint and the sink's option existing.tables=empty, or connect to the "
            "target that has them.",
        )
    return list(marks)
