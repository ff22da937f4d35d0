"""Reduces a micro-batch of typed rows to one row per key, as a ``MERGE`` into a target table needs it.

A key's events are reduced by Spark. Only rows whose key changed while the log lacks some of their values are followed
from key to key, in one task: such a value is the one that the row had under its old key, in the micro-batch or in the
target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from floodmark.changes.moved_keys import LastState, last_states
from floodmark.changes.typed_rows import FIXED
from floodmark.spark.versions import HAS_ARROW_FUNCTIONS

POSITION, DELETED = "_position", "_deleted"
_HELD = "_held"


def changed_tables(batch: DataFrame) -> list[str]:
    """Return the tables of which a ``format=tables`` micro-batch has rows, as ``schema.table``.

    Args:
        batch: the micro-batch; persist it first, since this reads it.
    """
    names = [name for name in batch.columns if "." in name]
    found = batch.agg(*(F.max(_quoted(name).isNotNull()).alias(name) for name in names)).first()
    return [] if found is None else [name for name in names if found[name]]


def table_rows(batch: DataFrame, table: str) -> DataFrame:
    """Return the rows of one table, with the columns that a stream with ``format=rows`` has.

    Args:
        batch: a stream with ``format=tables``, or a micro-batch of it.
        table: one of its tables.
    """
    fixed = [name for name, _ in FIXED]
    return batch.select(*fixed, F.inline(_quoted(table)))


def merged_rows(batch: DataFrame, key: Sequence[str], target: DataFrame | None = None) -> DataFrame:
    """Return the rows to write to a target for a micro-batch, and those to delete from it.

    The columns are the table's, then ``_position``, of the last change of the row, and ``_deleted``. A deleted row has
    only its key. Changes before a truncate are left out: the caller must empty the target in that case.

    Args:
        batch: a micro-batch of a stream with ``format=rows``; persist it first, since it is read more than once.
        key: the columns of the table's key.
        target: the target's rows before the micro-batch, for values that the log doesn't hold; None: those are null.
    """
    row = batch.schema["after"].dataType
    assert isinstance(row, StructType)
    columns = row.fieldNames()
    events = _events(batch, key)
    old = F.struct(*(F.col("before")[name].alias(name) for name in key))
    lacking = events.where((F.col("op") == "c") & F.col("before").isNotNull() & (F.size("unavailable") > 0))
    followed = lacking.select(F.explode(F.array("_at", old)).alias("_at")).distinct()
    latest = _latest(events.join(followed, "_at", "left_anti"), columns).unionByName(
        _followed(events.join(followed, "_at", "left_semi"), key, columns)
    )
    before: dict[str, Column] = {}
    if target is not None:
        known = F.struct(*(_named(name) for name in columns if name in target.columns)).alias("_row")
        rows = target.select(F.struct(*map(_named, key)).alias("_of"), known)
        latest = latest.join(rows, F.coalesce(_HELD, "_at") == F.col("_of"), "left")
        before = {name: F.col("_row")[name] for name in columns if name in target.columns}
    return latest.select(
        *(_value(name, key, before.get(name)).alias(name) for name in columns),
        F.col("position").alias(POSITION),
        F.col(DELETED),
    )


def _events(batch: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the changes of rows after the last truncate, each with its key as ``_at``."""
    emptied = batch.where(F.col("op") == "t").agg(F.max("position").alias("_emptied"))
    row = F.when(F.col("op") == "d", F.col("before")).otherwise(F.col("after"))
    return (
        batch.where(F.col("op").isin("r", "c", "u", "d"))
        .crossJoin(F.broadcast(emptied))
        .where(F.col("_emptied").isNull() | (F.col("position") > F.col("_emptied")))
        .select(
            "op", "position", "unavailable", "before", "after", F.struct(*(row[n].alias(n) for n in key)).alias("_at")
        )
    )


def _quoted(name: str) -> Column:
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def _named(name: str) -> Column:
    return _quoted(name).alias(name)


def _value(name: str, key: Sequence[str], before: Column | None) -> Column:
    if name in key:
        return F.col("_at")[name]
    value = F.col("after")[name]
    if before is None:
        return value
    return F.when(F.array_contains("unavailable", name) & F.col(_HELD).isNotNull(), before).otherwise(value)


def _latest(events: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the last state of each key that needs no value from another key."""
    # Values from before the last insert or delete belong to another row.
    begins = F.when(F.col("op").isin("c", "d"), F.col("position"))
    since = F.max(begins).over(Window.partitionBy("_at"))
    rows = events.withColumn("_since", since).where(F.col("_since").isNull() | (F.col("position") >= F.col("_since")))
    known = {name: F.when(~F.array_contains("unavailable", name), F.col("position")) for name in columns}
    unknown = F.array_compact(F.array(*(F.when(F.max(place).isNull(), F.lit(n)) for n, place in known.items())))
    return rows.groupBy("_at").agg(
        (F.max_by("op", "position") == "d").alias(DELETED),
        F.struct(*(F.max_by(F.col("after")[n], place).alias(n) for n, place in known.items())).alias("after"),
        unknown.alias("unavailable"),
        # A row that was made in the micro-batch is not the one that the target has under its key.
        F.when(F.first("_since").isNull(), F.col("_at")).alias(_HELD),
        F.max("position").alias("position"),
    )


def _followed(events: DataFrame, key: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return the last state of each key, following rows whose key changed; runs in one task."""
    at, after = events.schema["_at"].dataType, events.schema["after"].dataType
    schema = StructType(
        [
            StructField("_at", at),
            StructField(DELETED, BooleanType()),
            StructField("after", after),
            StructField("unavailable", ArrayType(StringType())),
            StructField(_HELD, at),
            StructField("position", StringType()),
        ]
    )

    def follow(batches: pa.Array) -> pa.Array:
        return _follow(tuple(key), tuple(columns), batches)

    def follow_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_struct_array(follow(batch.column("events")).flatten())

    every = events.agg(F.collect_list(F.struct(*events.columns)).alias("events"))
    if not HAS_ARROW_FUNCTIONS:
        return every.mapInArrow(follow_batches, schema)
    # This needs no pandas.
    from pyspark.sql.pandas.functions import arrow_udf

    # The stubs want the function's type, which is found by its hints.
    followed = arrow_udf(follow, ArrayType(schema))  # type: ignore[call-overload]
    return every.select(F.inline(followed("events")))


def _follow(key: tuple[str, ...], columns: tuple[str, ...], batches: pa.Array) -> pa.Array:
    """Return, for each list of events, the last states of its keys."""
    event = batches.type.value_type
    kind = event.field("_at").type
    state = pa.struct(
        [
            ("_at", kind),
            (DELETED, pa.bool_()),
            ("after", event.field("after").type),
            ("unavailable", event.field("unavailable").type),
            (_HELD, kind),
            ("position", pa.string()),
        ]
    )
    ends = [[_as_row(key, one) for one in last_states(key, columns, events)] for events in batches.to_pylist()]
    return pa.array(ends, pa.list_(state))


def _as_row(key: tuple[str, ...], last: LastState) -> dict[str, object]:
    state = last.state
    return {
        "_at": dict(zip(key, last.key, strict=True)),
        DELETED: state is None,
        "after": None if state is None else state.values,
        "unavailable": [] if state is None else sorted(state.unknown),
        _HELD: None if state is None or state.held is None else dict(zip(key, state.held, strict=True)),
        "position": last.position,
    }
