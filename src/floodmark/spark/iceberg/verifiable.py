"""Iceberg tables as targets that can be compared with the source, through Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.iceberg.columns import RENAMED
from floodmark.sinks.iceberg.marks import IcebergMarks
from floodmark.sinks.iceberg.state import TableState
from floodmark.sinks.iceberg.verifiable import MetadataView, until_deleted, verified_state
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.soft_deletes import DELETED
from floodmark.sinks.verifiable import TargetPart
from floodmark.spark.iceberg.failures import SPARK_ERRORS, is_conflict, target_error
from floodmark.spark.iceberg.table import IcebergTable
from floodmark.spark.targets.names import quoted
from floodmark.spark.targets.sessions import Sessions
from floodmark.spark.versions import spark_schema

T = TypeVar("T")
_POSITIONS = pa.schema([(POSITION, pa.string())])
_MADE = pa.schema([("made", pa.binary())])


class IcebergTarget:
    """A ``VerifiableTarget``.

    Args:
        session: Spark's, with the catalogue.
        location: the mirror's path.
        options: the mirror's.
        table: the source's name of the table.
    """

    replaces_doubled = False

    def __init__(self, session: SparkSession, location: str, options: MirrorOptions, table: str) -> None:
        schema = options.catalog_schema or ""
        # Spark looks up a catalogue's properties in the active session, whichever it is asked with.
        self._sessions = Sessions(session, active=True)
        self._table = IcebergTable(self._sessions, location, table, schema)
        self._marks = IcebergMarks(location, lambda _: self._table)
        self._name = table

    def exists(self) -> bool:
        """Return whether there is a table, or a mark of one that is set aside."""
        return not self._marks.is_removed(self._name)

    def view(self) -> IcebergView:
        """Return the newest snapshot.

        Raises:
            TargetError: there is no table, or it is set aside, or can't be read.
        """
        with self._table.opened():
            state, head = verified_state(self._table, self._name, self._marks)
        return IcebergView(self._sessions, self._table.name, self._name, state, head.number)

    def delete(self, rows: pa.Table, for_good: bool = False) -> int:
        """Delete rows that are as they were found (``VerifiableTarget.delete``)."""
        return until_deleted(self._name, lambda: self.view().deleted(rows, for_good))


class IcebergView(MetadataView):
    """A ``TargetView``: a table at a snapshot.

    Args:
        sessions: sessions of Spark.
        full: the table's quoted name in the catalogue.
        name: the source's name of the table.
        state: the table's.
        snapshot: the id of the snapshot.
    """

    row_estimate = 0

    def __init__(self, sessions: Sessions, full: str, name: str, state: TableState, snapshot: int) -> None:
        super().__init__(name, state, snapshot)
        self._sessions = sessions
        self._full = full

    def parts(self) -> Sequence[IcebergRows]:
        """Return all rows, which Spark divides."""
        return [IcebergRows(self)]

    def each(self, work: Callable[[TargetPart], T]) -> Iterator[T]:
        """Yield what is made of each of Spark's partitions.

        Args:
            work: can be pickled, and so can what it returns.
        """
        names = [name for name in self._state.columns.names if name != RENAMED[DELETED]]

        def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield pa.RecordBatch.from_pydict({"made": [pickle.dumps(work(Batches(batches)))]}, _MADE)

        with self._rows(names) as rows:
            found = rows.mapInArrow(made, spark_schema(_MADE)).toArrow()
        yield from map(pickle.loads, found["made"].to_pylist())

    def with_keys(self, keys: pa.Table, columns: pa.Schema) -> pa.Table:
        """Return the rows that have one of some keys, and their positions."""
        wanted = pa.schema([*columns, *_POSITIONS])
        with self._rows(wanted.names) as rows:
            asked = rows.sparkSession.createDataFrame(keys).alias("s")
            return rows.join(asked, _same("t", self.key), "left_semi").toArrow().cast(wanted)

    def deleted(self, rows: pa.Table, for_good: bool) -> int | None:
        """Delete rows that are as they were found, or mark them; return how many, None if others were faster.

        Args:
            rows: the columns of the key, and positions.
            for_good: whether they aren't only marked.
        """
        same = [*self.key, POSITION]
        with self._rows(same) as known:
            asked = known.sparkSession.createDataFrame(rows.select(same)).distinct().alias("s")
            count = known.join(asked, _same("t", same), "left_semi").count()
            if count:
                merge = asked.mergeInto(self._full, _same(self._full, same))
                marks = self.mode == "soft" and not for_good
                gone = {quoted(RENAMED[DELETED]): F.lit(True)}
                try:
                    (merge.whenMatched().update(gone) if marks else merge.whenMatched().delete()).merge()
                except SPARK_ERRORS as error:
                    if is_conflict(error):
                        return None
                    raise
            return count

    @contextmanager
    def _rows(self, names: Sequence[str]) -> Iterator[DataFrame]:
        """Yield some columns of the rows that the source has, as far as the target is right.

        Raises:
            TargetError: they can't be read.
        """
        chosen = ", ".join(map(quoted, names))
        living = f" WHERE NOT coalesce({quoted(RENAMED[DELETED])}, false)" if self.mode == "soft" else ""
        try:
            with self._sessions.one() as session:
                yield session.sql(f"SELECT {chosen} FROM {self._full} VERSION AS OF {self._snapshot}{living}").alias(
                    "t"
                )
        except SPARK_ERRORS as error:
            raise target_error(self._name, error) from error


@dataclass(frozen=True)
class IcebergRows:
    """All rows of a table at a snapshot (``DividedRows``)."""

    view: IcebergView

    def each(self, work: Callable[[TargetPart], T]) -> Iterator[T]:
        """Yield what is made of each part."""
        return self.view.each(work)


class Batches:
    """A ``TargetPart``: the rows of one of Spark's partitions, which are read once.

    Args:
        batches: the rows.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches

    def rows(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows."""
        for batch in self._batches:
            yield pa.Table.from_batches([batch]).select(columns.names).cast(columns)


def _same(table: str, names: Iterable[str]) -> Column:
    """Return the condition that a table has the same in some columns as what is asked for, or null in both."""
    conditions = [F.col(f"{table}.{quoted(name)}").eqNullSafe(F.col(f"s.{quoted(name)}")) for name in names]
    return reduce(Column.__and__, conditions)
