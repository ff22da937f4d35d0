"""The options of what a stream delivers besides row changes, and of records that can't be decoded."""

from __future__ import annotations

from typing import Literal

from floodmark.config.model import OWN, option
from floodmark.config.snapshot import SnapshotOptions

TOPIC_NAME = r"^[A-Za-z0-9._\-]{1,249}$"


class StreamOptions(SnapshotOptions):
    """Options of transaction metadata, heartbeats and failures; the same for every database."""

    topic_prefix: str = option(
        "topic.prefix",
        ...,
        "Name of this source: first part of every topic, `source.name` in every event.",
        pattern=r"^[A-Za-z0-9._\-]+$",
    )
    topic_delimiter: str = option("topic.delimiter", ".", "What joins the parts of a topic's name.")
    provide_transaction_metadata: bool = option(
        "provide.transaction.metadata",
        False,
        "Whether each event names its transaction and its place in it, and the topic `<prefix>.<topic.transaction>` "
        "reports where transactions begin and end.",
    )
    topic_transaction: str = option(
        "topic.transaction", "transaction", "Last part of the transaction topic's name.", pattern=TOPIC_NAME
    )
    topic_gap: str = option(
        "topic.gap",
        "gap",
        "Last part of the name of the topic that says where changes were left out because an option accepts that.",
        debezium=OWN,
        pattern=TOPIC_NAME,
    )
    heartbeat_interval_ms: int = option(
        "heartbeat.interval.ms",
        0,
        "How often an event shows that the stream goes on, at most; 0: never. A heartbeat belongs to the micro-batch "
        "that is planned next. With `availableNow` it comes only along with other events.",
        ge=0,
    )
    heartbeat_action_query: str = option(
        "heartbeat.action.query", "", "Statement that is run at the source with each heartbeat. Its errors are logged."
    )
    topic_heartbeat_prefix: str = option(
        "topic.heartbeat.prefix",
        "__debezium-heartbeat",
        "First part of the name of the heartbeats' topic; `topic.prefix` follows.",
        pattern=TOPIC_NAME,
    )
    topic_heartbeat_name: str | None = option(
        "topic.heartbeat.name", None, "Whole name of the heartbeats' topic.", pattern=TOPIC_NAME
    )
    trigger_available_now: bool = option(
        "trigger.available.now",
        False,
        "Whether the stream ends where the log ends when the query starts: for Spark 4.0 and 4.1, whose `availableNow` "
        "runs one micro-batch only. Start the query without a trigger, then call `processAllAvailable()` and `stop()`.",
        debezium=OWN,
    )
    event_processing_failure_handling_mode: Literal["fail", "warn", "skip", "ignore"] = option(
        "event.processing.failure.handling.mode",
        "fail",
        "A log record that cannot be decoded: `fail` treats its table as `errors.tables` says; `warn` and `skip` leave "
        "the record out, keep its bytes in the directory `dead-letters` below `state.dir` and go on; `warn` logs it, "
        "too. `ignore` is `skip`.",
    )

    @property
    def heartbeat_ms(self) -> int:
        """The interval of heartbeats in milliseconds; 0: there are none."""
        return self.heartbeat_interval_ms

    @property
    def transaction_topic(self) -> str:
        """The topic of the events that mark where transactions begin and end."""
        return self.topic_delimiter.join((self.topic_prefix, self.topic_transaction))

    @property
    def gap_topic(self) -> str:
        """The topic of the events that mark where changes were left out."""
        return self.topic_delimiter.join((self.topic_prefix, self.topic_gap))

    @property
    def heartbeat_topic(self) -> str:
        """The topic of heartbeats."""
        return self.topic_heartbeat_name or self.topic_delimiter.join((self.topic_heartbeat_prefix, self.topic_prefix))
