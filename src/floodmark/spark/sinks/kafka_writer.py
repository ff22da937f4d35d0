"""Writes events to Kafka with Spark's own sink."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.kafka.topics import TopicRules
from floodmark.spark.ordering import order_by_key, partition_by_key
from floodmark.spark.sinks.topics import KafkaTopics

FORMAT = "kafka"
COLUMNS = ("topic", "key", "value", "headers")
ORDER = "position"


def kafka(events: DataFrame, options: KafkaOptions, partitions: int) -> DataStreamWriter:
    """Return what writes a stream of events to Kafka, those of a key in the order of their positions.

    Where topics aren't made it is Spark's streaming sink. Otherwise it is ``foreachBatch`` with Spark's batch sink,
    since the topics must be made when a micro-batch's events are known and none of them is written.

    Args:
        events: a stream with ``format=events``.
        options: the sink's.
        partitions: how many tasks write.
    """
    if options.topic is not None:
        events = events.withColumn("topic", F.lit(options.topic))
    rules = options.rules
    if rules is None:
        rows = order_by_key(events, partitions).select(*COLUMNS)
        return rows.writeStream.format(FORMAT).outputMode("append").options(**options.writer)
    return events.writeStream.foreachBatch(TopicsFirst(options, rules, partitions))


class TopicsFirst:
    """Makes the topics of a micro-batch, and writes it then: what ``foreachBatch`` calls.

    Args:
        options: the sink's.
        rules: how topics are made.
        partitions: how many tasks write.
    """

    def __init__(self, options: KafkaOptions, rules: TopicRules, partitions: int) -> None:
        self._writer = options.writer
        self._topics = KafkaTopics(options.settings, rules)
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
        events = _shuffled(partition_by_key(batch.select(*COLUMNS, ORDER), self._partitions))
        (topics,) = events.agg(F.collect_set("topic")).collect()[0]
        if topics:
            self._topics.require(events.sparkSession.sparkContext._jvm, topics)
            rows = events.sortWithinPartitions(ORDER).select(*COLUMNS)
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
