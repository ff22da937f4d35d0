"""Writes events to Kafka from Spark's tasks, with librdkafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from operator import itemgetter

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from floodmark.changes.event_blocks import BLOCK_SCHEMA, IN_SERIES, in_order
from floodmark.sinks.kafka.brokers import TIMEOUT_S, Brokers
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.kafka.records import KafkaTarget, drop_writer, taken_columns, writer_of
from floodmark.sinks.kafka.written_topics import WrittenTopics
from floodmark.spark.checkpoint_file import CheckpointFile
from floodmark.spark.ordering import numbers_of_partitions, order_by_key
from floodmark.spark.running_query import RunningQuery
from floodmark.spark.targets.sessions import settings
from floodmark.spark.versions import spark_schema
from floodmark.spark.worker_memory import keep_modules

_WRITTEN = pa.schema([("topics", pa.list_(pa.string()))])
"""What a task tells: to which topics it has written."""
_FILE = "floodmark-kafka-topics"
"""In the checkpoint: where they end."""
_OF_BLOCKS = ("part", "first", "last", "events")
_PLANNED_ONCE = {"spark.sql.adaptive.enabled": "false"}
"""The number of tasks that write is given, so after those that read there is nothing to adapt. Planning again, and
running the stages as jobs of their own, costs a tenth of a second for each micro-batch."""
_ONE_BY_ONE = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}
"""Spark would keep 10,000 blocks, nearly always all of a task's, before it gives them to Python: no event would be
written before the last is decoded."""


class KafkaTasks:
    """Writes micro-batches: what ``foreachBatch`` calls. The events of a key are written by one task, in their order.

    Args:
        options: the sink's.
        partitions: how many tasks write; None: events are in their order.
    """

    def __init__(self, options: KafkaOptions, partitions: int | None) -> None:
        self._target = partial(
            KafkaTarget,
            settings=tuple(sorted(options.librdkafka.items())),
            rules=options.rules,
            topic=options.topic,
            headers=options.headers,
        )
        self._partitions = partitions
        self._settings = options.librdkafka
        self._goes_on = options.lost_events == "warn"
        self._written: tuple[str, WrittenTopics] | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:  # noqa: ARG002
        """Write a micro-batch.

        Args:
            batch: events, or blocks of them.
            number: as Spark counts.

        Raises:
            ConfigError: the brokers refuse what the options say of a topic.
            TargetChangedError: a topic lacks events that the query has written.
            TargetError: an event isn't taken.
            CheckpointError: the checkpoint can't be read or written.
        """
        run = RunningQuery.of(batch.sparkSession.sparkContext).run
        topics = self._topics(batch.sparkSession, run)
        rows, tables = self._rows(batch)
        written = rows.mapInArrow(_writing(self._target(run), tables), spark_schema(_WRITTEN))
        with settings(batch.sparkSession, _PLANNED_ONCE | (_ONE_BY_ONE if has_blocks(batch) else {})):
            done = written.collect()
        topics.add({topic for row in done for topic in row["topics"]})

    def _topics(self, session: SparkSession, run: str) -> WrittenTopics:
        """Return the topics of this start of the query; those of its last start are compared first."""
        if self._written is None or self._written[0] != run:
            # A broker that is started again is waited for as long as events wait for it.
            patience_s = max(TIMEOUT_S, float(self._settings.get("delivery.timeout.ms", 0)) / 1000)
            brokers, file = Brokers(self._settings, patience_s), CheckpointFile(session, _FILE)
            self._written = run, WrittenTopics(brokers, file, self._goes_on)
        return self._written[1]

    def _rows(self, batch: DataFrame) -> tuple[DataFrame, Callable[[Iterable[pa.RecordBatch]], Iterator[pa.Table]]]:
        """Return what tasks get, and what returns a task's records in their order."""
        if self._partitions is None:
            found = taken_columns([name.lower() for name in batch.columns])
            return batch.select(*(F.col(name).alias(name) for name in found)), _records
        if has_blocks(batch):
            blocks = batch if _in_one_task(batch) else _blocks_by_part(batch, self._partitions)
            return blocks.select(*_OF_BLOCKS), _records_of_blocks
        taken = taken_columns(batch.columns)
        return order_by_key(batch.select(*taken, "position"), self._partitions).select(*taken), _records


def has_blocks(events: DataFrame) -> bool:
    """Return whether the rows of a stream are blocks of events (``event.blocks``)."""
    return list(events.columns) == list(BLOCK_SCHEMA.names)


def _in_one_task(blocks: DataFrame) -> bool:
    """Return whether one task reads all blocks."""
    return bool(blocks._jdf.queryExecution().toRdd().getNumPartitions() <= 1)


def _blocks_by_part(blocks: DataFrame, partitions: int) -> DataFrame:
    """Return blocks, those of a part in one partition, in the order of their positions."""
    numbers: Column = F.array(*map(F.lit, numbers_of_partitions(partitions)))
    place = F.element_at(numbers, F.pmod(F.col("part"), F.lit(partitions)) + 1)
    return blocks.repartition(partitions, place).sortWithinPartitions("first")


def _writing(
    target: KafkaTarget, records: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.Table]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task does with its rows.

    Args:
        target: where it writes.
        records: returns the records of its rows.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_modules()
        topics: set[str] = set()
        try:
            for some in records(batches):
                topics |= writer_of(target).write(some)
            if topics:
                writer_of(target).flush()
        except BaseException:
            # Records of this task must not arrive later, among those of its next attempt.
            drop_writer(target)
            raise
        yield pa.RecordBatch.from_pylist([{"topics": sorted(topics)}], schema=_WRITTEN)

    return write


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    return (pa.Table.from_batches([batch]) for batch in batches)


def _records_of_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    blocks = (
        (part, first, last, events.as_buffer())
        for batch in batches
        for part, first, last, events in zip(
            *(batch[name].to_pylist() for name in _OF_BLOCKS[:-1]), batch["events"], strict=True
        )
    )
    begin = next(blocks, None)
    if begin is None:
        return iter(())
    every = chain([begin], blocks)
    # A program may have put blocks of several tasks into one partition.
    ordered = every if begin[0] == IN_SERIES else sorted(every, key=itemgetter(1))
    return in_order(block[1:] for block in ordered)
