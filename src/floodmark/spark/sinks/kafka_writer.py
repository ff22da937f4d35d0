"""Starts the sink ``kafka``: what a user calls, and what writes with Spark's connector."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from floodmark.errors import ConfigError
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.kafka.producer_settings import check_settings
from floodmark.sinks.kafka.records import taken_columns
from floodmark.spark.ordering import order_by_key, partition_by_key
from floodmark.spark.sinks.kafka_tasks import KafkaTasks, has_blocks
from floodmark.spark.sinks.late_writers import warn_of_late_writers
from floodmark.spark.sinks.mirrors import OBSERVED, ROWS, refuse_connect
from floodmark.spark.sinks.producer import check_producer
from floodmark.spark.sinks.topics import KafkaTopics

FORMAT = "kafka"
ORDER = "position"


def kafka(events: DataFrame, options: Mapping[str, str]) -> DataStreamWriter:
    """Write a stream of events to Kafka, those of a key in the order of their positions, and make topics if asked to.

    Give the writer that is returned a checkpoint and a trigger, and start it. With ``engine=spark``, Spark's connector
    for Kafka must be loaded.

    Args:
        events: a stream with ``format=events``, fastest with ``event.blocks``.
        options: those of the sink (docs/kafka.md).

    Raises:
        ConfigError: an option is wrong, what the engine needs is missing, or the stream is Spark Connect's.
    """
    chosen = KafkaOptions.parse(options)
    refuse_connect(events)
    partitions = events.sparkSession.sparkContext.defaultParallelism
    if chosen.engine == "floodmark":
        return kafka_writer(events, chosen, partitions)
    _prove_one_writer(events.sparkSession)
    _check_connector(events, chosen)
    return _batches(events, chosen, partitions)


def kafka_writer(
    events: DataFrame,
    options: KafkaOptions,
    partitions: int,
    transform: Callable[[DataFrame], DataFrame] | None = None,
) -> DataStreamWriter:
    """Return the same for a session that lets a stream be sorted.

    With ``engine=spark`` it is Spark's streaming sink where topics aren't made. Otherwise it is ``foreachBatch`` with
    Spark's batch sink, since the topics must be made when a micro-batch's events are known and none of them is written.

    Args:
        events: a stream with ``format=events``.
        options: the sink's.
        partitions: how many tasks write.
        transform: what becomes of events, row by row; it returns columns of Spark's sink.

    Raises:
        ConfigError: the producer refuses its settings, or the transform is wrong.
    """
    _prove_one_writer(events.sparkSession)
    if options.engine == "floodmark":
        check_settings(options.settings)
        if transform is not None:
            return transform(order_by_key(events, partitions)).writeStream.foreachBatch(KafkaTasks(options, None))
        if has_blocks(events):
            events = events.observe(OBSERVED, F.sum("count").alias(ROWS))
        return events.writeStream.foreachBatch(KafkaTasks(options, partitions))
    _check_connector(events, options)
    if transform is None and options.rules is not None:
        return _batches(events, options, partitions)
    if transform is None:
        rows = order_by_key(_with_topic(events, options), partitions).select(*taken_columns(events.columns))
    else:
        rows = _with_topic(transform(order_by_key(events, partitions)), options)
    if options.rules is not None:
        return rows.writeStream.foreachBatch(KafkaBatches(options, None))
    return rows.writeStream.format(FORMAT).outputMode("append").options(**options.writer)


def _prove_one_writer(session: SparkSession) -> None:
    """Refuse to let two attempts of a task write at the same time: the later one could end with older events.

    Where an attempt on an executor that is cut off may write late, that is only logged.

    Raises:
        ConfigError: Spark may run a task twice.
    """
    warn_of_late_writers(session)
    if session.sparkContext.getConf().get("spark.speculation", "false") == "true":
        raise ConfigError(
            "Spark's property 'spark.speculation' is true, with which two attempts of a task could write a key's "
            "events at the same time, so that an older one comes last.",
            "Leave it out, or set it to false.",
        )


def _check_connector(events: DataFrame, options: KafkaOptions) -> None:
    if has_blocks(events):
        raise ConfigError(
            "The sink 'kafka' with engine=spark takes events, not blocks of them.",
            "Leave out the source's option event.blocks.",
        )
    check_producer(events.sparkSession.sparkContext._jvm, options.settings)


def _batches(events: DataFrame, options: KafkaOptions, partitions: int) -> DataStreamWriter:
    return _with_topic(events, options).writeStream.foreachBatch(KafkaBatches(options, partitions))


def _with_topic(events: DataFrame, options: KafkaOptions) -> DataFrame:
    return events if options.topic is None else events.withColumn("topic", F.lit(options.topic))


class KafkaBatches:
    """Makes the topics of a micro-batch, and writes it then: what ``foreachBatch`` calls.

    Args:
        options: the sink's.
        partitions: how many tasks write; None: events are in their order, and have only the sink's columns.
    """

    def __init__(self, options: KafkaOptions, partitions: int | None) -> None:
        rules = options.rules
        self._writer = options.writer
        self._topics = None if rules is None else KafkaTopics(options.settings, rules)
        self._partitions = partitions

    def __call__(self, batch: DataFrame, number: int) -> None:  # noqa: ARG002
        """Write a micro-batch.

        Args:
            batch: events.
            number: as Spark counts.

        Raises:
            ConfigError: the brokers refuse what the options say of a topic.
            TargetError: a topic can't be made.
        """
        events, taken = batch, taken_columns(batch.columns)
        if self._partitions is not None:
            events = partition_by_key(batch.select(*taken, ORDER), self._partitions)
            events = events if self._topics is None else _shuffled(events)
        if self._topics is not None:
            (topics,) = events.agg(F.collect_set("topic")).collect()[0]
            self._topics.require(events.sparkSession.sparkContext._jvm, topics)
        rows = events if self._partitions is None else events.sortWithinPartitions(ORDER).select(*taken)
        rows.write.format(FORMAT).mode("append").options(**self._writer).save()


def _shuffled(events: DataFrame) -> DataFrame:
    """Return events whose shuffle is run once, however often they are used: reading the source takes most of the work.

    Args:
        events: what a shuffle returns.
    """
    session = events.sparkSession
    # What a plan's RDD has shuffled is kept as long as the RDD is used; a frame would be planned, and run, again.
    rows = events._jdf.queryExecution().toRdd()
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rows, events._jdf.schema(), False), session)
