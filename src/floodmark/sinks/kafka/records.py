"""Writes the records of a task: each to its topic, in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from floodmark.errors import TargetError
from floodmark.sinks.kafka.failures import GO_ON
from floodmark.sinks.kafka.making import MissingTopics
from floodmark.sinks.kafka.producer import Producer
from floodmark.sinks.kafka.topics import TopicRules

TAKEN = ("topic", "key", "value", "headers", "partition")
"""The columns that a record may have."""


def taken_columns(names: Sequence[str]) -> list[str]:
    """Return those of some columns that a record may have."""
    return [name for name in TAKEN if name in names]


@dataclass(frozen=True)
class KafkaTarget:
    """Where a task writes.

    Attributes:
        run: what tells a start of the query from others: topics are looked up anew with each.
        settings: librdkafka's, as pairs of names and values, with secrets.
        rules: how topics are made; None: they aren't.
        topic: the one of all records; None: each has its own.
        headers: whether records have their headers.
    """

    run: str
    settings: tuple[tuple[str, str], ...]
    rules: TopicRules | None
    topic: str | None
    headers: bool

    def __repr__(self) -> str:
        """Show no secrets."""
        return f"KafkaTarget(topic={self.topic!r})"


class RecordWriter:
    """Writes records, and keeps its connections for later micro-batches.

    Args:
        target: where to.
    """

    def __init__(self, target: KafkaTarget) -> None:
        settings = dict(target.settings)
        self._target = target
        self._producer = Producer(settings)
        self._missing = None if target.rules is None else MissingTopics(settings, target.rules)

    def write(self, records: pa.Table | pa.RecordBatch) -> set[str]:
        """Hand over records; return their topics.

        Args:
            records: with columns of ``TAKEN``; ``value`` must be there, and ``topic`` unless the target has one.

        Raises:
            TargetError: one has no topic, or isn't taken, or its topic can't be made.
            ConfigError: the brokers refuse what the options say of a topic.
        """
        batches = records.to_batches() if isinstance(records, pa.Table) else [records]
        return {topic for batch in batches if batch.num_rows for topic in self._write(batch)}

    def flush(self) -> None:
        """Wait until brokers have all records.

        Raises:
            TargetError: they don't take one.
        """
        self._producer.flush()

    def close(self) -> None:
        """End at once."""
        self._producer.close()

    def _write(self, batch: pa.RecordBatch) -> list[str]:
        columns = {name: batch[name] for name in batch.schema.names}
        keys = columns.get("key", pa.nulls(batch.num_rows, pa.string()))
        headers = columns.get("headers") if self._target.headers else None
        parts = (keys, columns["value"], headers, columns.get("partition"))
        topics = [(self._target.topic, None)] if self._target.topic is not None else list(_topics(columns["topic"]))
        if self._missing is not None:
            self._missing.require(topic for topic, _ in topics)
        for topic, chosen in topics:
            own = parts if chosen is None else [None if one is None else one.take(chosen) for one in parts]
            self._producer.produce(topic, *own)
        return [topic for topic, _ in topics]


def _topics(column: pa.Array) -> Iterator[tuple[str, pa.Array | None]]:
    """Yield the topics of records, each with its records' numbers in their order; None: all are its.

    Raises:
        TargetError: a record has none.
    """
    if column.null_count:
        raise TargetError(
            "A record has no topic: the column topic of the sink's transform is null.",
            f"Let the transform give each event a topic, or leave such events out. {GO_ON}",
        )
    coded = column.dictionary_encode()
    if len(coded.dictionary) == 1:
        yield coded.dictionary[0].as_py(), None
        return
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(coded.dictionary)))
    for topic, first, end in zip(coded.dictionary.to_pylist(), np.r_[0, ends[:-1]], ends, strict=True):
        yield topic, pa.array(order[first:end])


_writers: dict[KafkaTarget, RecordWriter] = {}
"""Those of this process, which runs tasks of many micro-batches; the one that was used last is the last."""
_MOST = 8
"""How many of them are kept."""


def writer_of(target: KafkaTarget) -> RecordWriter:
    """Return this process's writer for a target.

    Raises:
        ConfigError: its settings are refused.
    """
    writer = _writers.pop(target, None) or RecordWriter(target)
    _writers[target] = writer
    if len(_writers) > _MOST:
        drop_writer(next(iter(_writers)))
    return writer


def drop_writer(target: KafkaTarget) -> None:
    """End a writer; the next task gets a new one."""
    writer = _writers.pop(target, None)
    if writer is not None:
        writer.close()
