"""The options that every connector has."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, Self

from pydantic import model_validator

from floodmark.config.columns import ColumnOptions
from floodmark.config.converters import ConverterOptions
from floodmark.config.kafka_clients import SIGNAL_CONSUMER, refuse_java_names
from floodmark.config.model import OWN, Family, Patterns, SecretFamily, Words, matches, nearest, option
from floodmark.config.snapshot import MIB
from floodmark.config.stream import StreamOptions
from floodmark.config.table_names import SCHEMA_AND_TABLE, TableNames
from floodmark.config.transforms.settings import TransformSettings, chooses_partitions, parse_transforms

OPERATIONS = ("c", "u", "d", "t")
_OPERATION_WORDS = {
    "create": "c",
    "insert": "c",
    "update": "u",
    "delete": "d",
    "truncate": "t",
}
SIGNAL_CHANNELS = ("source", "kafka", "file", "in-process", "jmx")
NOTIFICATION_CHANNELS = ("sink", "log", "jmx")
HEX = "hex:"
"""What `unavailable.value.placeholder` starts with if it holds bytes."""
_HEX_DIGITS = re.compile("(?:[0-9A-Fa-f]{2})*")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class CommonOptions(ColumnOptions, StreamOptions, ConverterOptions, ABC):
    """Options of the events, of the state directory and of the micro-batches."""

    connector: str = option(
        "connector", ..., "Which database to capture. May be left out if `connector.class` is given.", "connector.class"
    )
    format: Literal["events", "rows", "tables", "arrow"] = option(
        "format",
        "events",
        "`events`: Debezium's events as JSON text. `rows`: typed columns of one table. `tables`: the same of all "
        "captured tables, each in a column of its own. `arrow`: the same as Arrow data, of any columns and any tables.",
        OWN,
    )
    event_blocks: int = option(
        "event.blocks",
        0,
        "With `format=events` and the sink `kafka`, into how many parts the events of a micro-batch are put, by their "
        "keys: a row of the stream is then a block of many events, which Spark passes on as it is. 0: a row is an "
        "event. `floodmark run` sets it.",
        OWN,
        ge=0,
        le=10_000,
    )
    schema_changes: Literal["fail", "ignore_with_warning"] = option(
        "schema.changes",
        "fail",
        "With `format=rows` or `tables`, when a table gets, loses or changes a column while the query runs, or a table "
        "is added: `fail` ends the query with an error, and its next start has the columns of then. "
        "`ignore_with_warning` goes on with the query's columns.",
        OWN,
    )
    table_include_list: Patterns = option(
        "table.include.list",
        (),
        "Regular expressions of the tables to capture, as `schema.table`; all if empty.",
    )
    table_exclude_list: Patterns = option(
        "table.exclude.list", (), "Regular expressions of the tables not to capture, as `schema.table`."
    )
    schema_include_list: Patterns = option(
        "schema.include.list", (), "Regular expressions of the schemas to capture; all if empty."
    )
    schema_exclude_list: Patterns = option(
        "schema.exclude.list", (), "Regular expressions of the schemas not to capture."
    )
    table_ignore_builtin: bool = option("table.ignore.builtin", True, "No effect: the log does not hold system tables.")
    guardrail_collections_max: int = option(
        "guardrail.collections.max", 0, "Most tables that may be captured; 0: any number.", ge=0
    )
    guardrail_collections_limit_action: Literal["warn", "fail"] = option(
        "guardrail.collections.limit.action",
        "warn",
        "What happens at the start if more tables are captured: a warning in the log, or the query fails.",
    )
    state_dir: str = option(
        "state.dir",
        ...,
        "Directory for log segments: a local path, or a URI of a filesystem that PyArrow opens. "
        "The driver and all executors must see the same directory.",
        OWN,
    )
    state_max_bytes: int = option(
        "state.max.bytes",
        4096 * MIB,
        "How many bytes of log may wait in `state.dir`; capture stops reading above it.",
        OWN,
        ge=MIB,
    )
    segment_bytes: int = option(
        "segment.bytes", 16 * MIB, "Size at which a segment is closed.", OWN, ge=64 << 10, le=1024 * MIB
    )
    max_batch_rows: int = option(
        "max.batch.rows", 1_000_000, "Most log records in a micro-batch (rounded up to a segment).", OWN, ge=1
    )
    max_batch_bytes: int = option(
        "max.batch.bytes",
        256 * MIB,
        "Most bytes of log in a micro-batch (rounded up to a segment).",
        OWN,
        ge=1,
    )
    tombstones_on_delete: bool = option(
        "tombstones.on.delete",
        True,
        "Whether a delete is followed by an event with the same key and no value.",
    )
    skipped_operations: Words = option(
        "skipped.operations", ("t",), "Operations to leave out: `c`, `u`, `d`, `t`, or `none`."
    )
    transforms: Words = option(
        "transforms",
        (),
        "Names of transforms of the events, in their order: [Transforms](transforms.md). Only with `format=events`.",
    )
    transform_options: Family = option(
        "transforms.<option>",
        {},
        "`transforms.<name>.type`: the class of a transform; what else begins with its name are its options, "
        "`predicate` and `negate`.",
        "same, for [those that there are](transforms.md)",
    )
    predicates: Words = option("predicates", (), "Names of predicates, which limit transforms to some events.")
    predicate_options: Family = option(
        "predicates.<option>",
        {},
        "`predicates.<name>.type`: the class of a predicate; what else begins with its name are its options.",
        "same, for [those that there are](transforms.md#predicates)",
    )
    unavailable_value_placeholder: str = option(
        "unavailable.value.placeholder",
        "__debezium_unavailable_value",
        "What stands for a value that the log does not hold (an unchanged large value); `hex:` and hexadecimal digits "
        "give it as bytes.",
    )
    decimal_handling_mode: Literal["precise", "double", "string"] = option(
        "decimal.handling.mode", "precise", "How decimals are represented."
    )
    time_precision_mode: Literal[
        "adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"
    ] = option("time.precision.mode", "adaptive", "How dates and times are represented.")
    binary_handling_mode: Literal["bytes", "base64", "base64-url-safe", "hex"] = option(
        "binary.handling.mode", "bytes", "How binary values are represented."
    )
    read_only: bool = option(
        "read.only",
        False,
        "Whether no watermarks may be written to the signal table. None ever are with "
        "`incremental.snapshot.read.points=exact`.",
    )
    incremental_snapshot_chunk_size: int = option(
        "incremental.snapshot.chunk.size", 1024, "Rows in a chunk of an incremental snapshot.", ge=1
    )
    incremental_snapshot_watermarking_strategy: Literal["insert_insert", "insert_delete"] = option(
        "incremental.snapshot.watermarking.strategy",
        "insert_insert",
        "How the end of a window is marked in the signal table: by another row, or by deleting the row that opened it. "
        "Only with `incremental.snapshot.read.points=watermarks`.",
    )
    incremental_snapshot_read_points: Literal["exact", "watermarks"] = option(
        "incremental.snapshot.read.points",
        "exact",
        "How the rows of an incremental snapshot get their place in the log. `exact`: they are read at a place that is "
        "known. `watermarks`: between two watermarks in the signal table, and rows that change between them are left "
        "out, as in Debezium.",
        OWN,
    )
    signal_enabled_channels: Words = option(
        "signal.enabled.channels",
        ("source",),
        "Where signals come from: `source` (the table `signal.data.collection`), `kafka` (`signal.kafka.topic`), "
        "`file` (`signal.file`), "
        "`in-process` (`floodmark.signal` and `floodmark signal`; always on), `jmx` (accepted, without effect).",
    )
    signal_data_collection: Words = option(
        "signal.data.collection",
        (),
        "Table that signals are written to, as `schema.table`, with the columns `id`, `type` and `data`.",
    )
    signal_file: str = option(
        "signal.file", "file-signals.txt", "File that signals are appended to, one JSON object a line."
    )
    signal_kafka_topic: str | None = option(
        "signal.kafka.topic",
        None,
        "Topic that signals are sent to, of one partition; `<topic.prefix>-signal` if not given.",
        pattern=r"^[A-Za-z0-9._\-]{1,249}$",
    )
    signal_kafka_bootstrap_servers: str | None = option(
        "signal.kafka.bootstrap.servers",
        None,
        "Kafka brokers, as `host:port,…`; required for the channel `kafka`.",
    )
    signal_kafka_group_id: str = option(
        "signal.kafka.groupId", "kafka-signal", "Consumer group whose offset in the topic is committed."
    )
    signal_kafka_poll_timeout_ms: int = option(
        "signal.kafka.poll.timeout.ms",
        100,
        "How long planning may wait for the topic after the start, until all that is in it has been read.",
        ge=0,
    )
    signal_consumer: SecretFamily = option(
        "signal.consumer.<option>",
        {},
        "An option of the Kafka consumer, by librdkafka's name: `signal.consumer.security.protocol`.",
        "same, with the names of Kafka's Java client",
    )
    signal_poll_interval_ms: int = option(
        "signal.poll.interval.ms", 5000, "How often files and Kafka are checked for signals.", ge=1
    )
    notification_enabled_channels: Words = option(
        "notification.enabled.channels",
        (),
        "Where notifications go: `sink` (events of the topic `notification.sink.topic.name`), `log`, a function as "
        "`module:function`, `jmx` (accepted, without effect).",
    )
    notification_sink_topic_name: str | None = option(
        "notification.sink.topic.name", None, "Topic of the notifications; required for the channel `sink`."
    )
    errors_tables: Literal["isolate", "fail"] = option(
        "errors.tables",
        "isolate",
        "A table that cannot be read or decoded: `isolate` tries it again, then excludes it while the others go "
        "on; `fail` ends the query. The same goes for a mirror's target that cannot take its rows.",
        OWN,
    )
    errors_max_retries: int = option(
        "errors.max.retries", -1, "How often to reconnect after an error; -1: without end.", ge=-1
    )
    errors_retry_delay_initial_ms: int = option(
        "errors.retry.delay.initial.ms", 300, "Wait before the first reconnect; it doubles each time.", ge=1
    )
    errors_retry_delay_max_ms: int = option(
        "errors.retry.delay.max.ms", 10_000, "Longest wait before a reconnect.", ge=1
    )
    retriable_restart_wait_ms: int | None = option(
        "retriable.restart.connector.wait.ms",
        None,
        "Wait before every reconnect, instead of `errors.retry.delay.*`.",
        "same; its default is 10000",
        ge=1,
    )

    @model_validator(mode="after")
    def _check_filters(self) -> Self:
        for kind in ("table", "schema"):
            fields = f"{kind}_include_list", f"{kind}_exclude_list"
            if all(getattr(self, field) for field in fields):
                # Where schemas are called databases, the options are too.
                included, excluded = (type(self).model_fields[field].alias for field in fields)
                raise ValueError(f"Options '{included}' and '{excluded}' exclude each other: give only one.")
        if self.transforms and self.format != "events":
            raise ValueError("Option 'transforms' needs format=events: typed rows have no envelope.")
        for name in ("value", *self.binary_columns) if self.makes_cloud_events else self.binary_columns:
            if self.format != "events":
                raise ValueError(f"Option '{name}.converter' needs format=events: typed rows aren't converted.")
        self.parsed_transforms  # noqa: B018
        if self.event_blocks and self.format != "events":
            raise ValueError("Option 'event.blocks' needs format=events.")
        check_words("skipped.operations", self.skipped_operations, (*OPERATIONS, "none"), _OPERATION_WORDS)
        return self

    @model_validator(mode="after")
    def _check_placeholder(self) -> Self:
        text = self.unavailable_value_placeholder
        if text.startswith(HEX) and not _HEX_DIGITS.fullmatch(text, len(HEX)):
            raise ValueError(
                f"Option 'unavailable.value.placeholder' has the value '{text}', which is not allowed: "
                f"'{HEX}' needs an even number of hexadecimal digits behind it."
            )
        return self

    @model_validator(mode="after")
    def _check_channels(self) -> Self:
        check_words("signal.enabled.channels", self.signal_enabled_channels, SIGNAL_CHANNELS)
        if "kafka" in self.signal_enabled_channels:
            if not self.signal_kafka_bootstrap_servers:
                raise ValueError(
                    "Option 'signal.kafka.bootstrap.servers' is required, since 'signal.enabled.channels' has 'kafka'."
                )
            refuse_java_names(SIGNAL_CONSUMER, self.signal_consumer)
        for name in self.signal_data_collection:
            if "." not in name.strip("."):
                raise ValueError(
                    f"Option 'signal.data.collection' has the value '{name}', which is not allowed: "
                    "it must be the table's full name, as schema.table."
                )
        named = tuple(word for word in self.notification_enabled_channels if not _FUNCTION.fullmatch(word))
        check_words("notification.enabled.channels", named, (*NOTIFICATION_CHANNELS, "module:function"))
        if "sink" in named and not self.notification_sink_topic_name:
            raise ValueError(
                "Option 'notification.sink.topic.name' is required, since 'notification.enabled.channels' has 'sink'."
            )
        return self

    @model_validator(mode="after")
    def _check_watermarks(self) -> Self:
        if self.incremental_snapshot_read_points == "exact":
            return self
        where = "'incremental.snapshot.read.points' is 'watermarks'"
        if self.read_only:
            raise ValueError(
                f"Option 'read.only' is 'true', but {where}, which writes watermarks to the signal table: "
                "set one of them otherwise."
            )
        if not self.signal_data_collection:
            raise ValueError(
                f"Option 'signal.data.collection' is required, since {where}: watermarks are written there."
            )
        return self

    @property
    def reshapes_records(self) -> bool:
        """Whether records are made column by column for transforms, or for a converter that needs their fields."""
        return bool(self.transforms) or self.makes_cloud_events or bool(self.binary_columns)

    @property
    def chooses_partitions(self) -> bool:
        """Whether a transform decides on partitions, so that events have a column for them."""
        return any(chooses_partitions(one) for one in self.parsed_transforms)

    @property
    def parsed_transforms(self) -> tuple[TransformSettings, ...]:
        """The transforms, in their order.

        Raises:
            ConfigError: they are wrong.
        """
        return parse_transforms(self.transforms, self.transform_options, self.predicates, self.predicate_options)

    @property
    @abstractmethod
    def owner(self) -> str:
        """The name of the source's directory below ``state.dir``; no other source may have the same."""

    @property
    def fixed_tables(self) -> bool:
        """Whether the output's columns are those that the tables had when the query was made."""
        return self.format in ("rows", "tables")

    def topic_parts(self, schema: str, table: str) -> tuple[str, ...]:
        """Return what a table's topic has behind the prefix."""
        return (schema, table) if ".Schema" in self.topic_naming_strategy else (table,)

    @property
    def busy_wait_s(self) -> float:
        """How long to wait in total while another query holds what only one can have, such as a slot."""
        return 0.0

    @property
    def schema_history_brokers(self) -> str | None:
        """The brokers of the topic that holds the schema history; None if no topic does."""
        return None

    @property
    def signal_topic(self) -> str:
        """The Kafka topic that signals are sent to."""
        return self.signal_kafka_topic or f"{self.topic_prefix}-signal"

    def place_of(self, part: str) -> dict[str, str]:
        """Return the options that a query gets which reads the source for one of several sinks.

        They are what the queries can't share; ``state.dir`` and the checkpoint are their own in any case.

        Args:
            part: the sink's name.
        """
        from_kafka = "kafka" in self.signal_enabled_channels
        return {"signal.kafka.groupId": f"{self.signal_kafka_group_id}_{part}"} if from_kafka else {}

    @property
    def unshared(self) -> dict[str, str]:
        """What no other query may have, by option."""
        return {"signal.file": self.signal_file} if "file" in self.signal_enabled_channels else {}

    def captures(self, schema: str, table: str) -> bool:
        """Return whether the filters let a table through; a signal table needs to pass only those of schemas."""
        if self.schema_include_list and not matches(self.schema_include_list, schema):
            return False
        if matches(self.schema_exclude_list, schema):
            return False
        if self.takes_signals(schema, table):
            return True
        name = f"{schema}.{table}"
        if self.table_include_list:
            return matches(self.table_include_list, name)
        return not matches(self.table_exclude_list, name)

    @property
    def signal_tables(self) -> Sequence[str]:
        """The tables whose inserts are signals."""
        return self.signal_data_collection if "source" in self.signal_enabled_channels else ()

    @property
    def table_names(self) -> TableNames:
        """How signals and ``snapshot.include.collection.list`` may write names of tables."""
        return SCHEMA_AND_TABLE

    def names_for_snapshot(self, table: str, patterns: Patterns | None = None) -> bool:
        """Return whether ``snapshot.include.collection.list`` names a table.

        Args:
            table: its name, as ``schema.table``.
            patterns: only these of the list; None: all.
        """
        chosen = self.snapshot_include_collection_list if patterns is None else patterns
        return any(matches(chosen, written) for written in self.table_names.of(table))

    def takes_signals(self, schema: str, table: str) -> bool:
        """Return whether a table's inserts are signals."""
        return f"{schema}.{table}" in self.signal_tables

    def skips(self, operation: str) -> bool:
        """Return whether events of this operation (``c``, ``u``, ``d``, ``t``) are left out."""
        return operation in self.skipped_operations


def check_words(
    name: str, words: tuple[str, ...], allowed: tuple[str, ...], meant: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Refuse words that are not allowed.

    Args:
        name: the option's name.
        words: its value.
        allowed: the words that it may have.
        meant: words that users write instead of some of them.
    """
    for word in words:
        if word not in allowed:
            same = meant.get(word.lower())
            hint = f"Did you mean '{same}'?" if same else nearest(word, allowed)
            raise ValueError(
                f"Option '{name}' has the value '{word}', which is not allowed: "
                f"it must be a list of {', '.join(allowed)}. {hint}"
            )
