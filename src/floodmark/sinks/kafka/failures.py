"""The errors of the sink ``kafka``: what the errors of Kafka's clients mean, and what to do about them.

Errors are named as Kafka's protocol and librdkafka name them; names that begin with ``_`` are librdkafka's own.
"""

from __future__ import annotations

from floodmark.errors import ConfigError, TargetChangedError, TargetError

GO_ON = "Start the query again then; nothing is lost."
_LEAVE_OUT = "or leave large columns out (column.exclude.list)"
_MAKE = "Make the topic yourself, or correct"
_RIGHTS = f"Give the right to create topics, make the topic yourself, or set topic.creation.enable=false. {GO_ON}"
_CURES = {
    "TOPIC_AUTHORIZATION_FAILED": _RIGHTS,
    "CLUSTER_AUTHORIZATION_FAILED": _RIGHTS,
    "INVALID_REPLICATION_FACTOR": f"{_MAKE} its topic.creation.….replication.factor. {GO_ON}",
    "INVALID_PARTITIONS": f"{_MAKE} its topic.creation.….partitions. {GO_ON}",
    "INVALID_CONFIG": f"{_MAKE} its settings topic.creation.…. {GO_ON}",
    "POLICY_VIOLATION": f"{_MAKE} its settings topic.creation.…, as the brokers' policy wants them. {GO_ON}",
    "TOPIC_EXCEPTION": f"Choose another topic.prefix or topic.naming.strategy. {GO_ON}",
    "THROTTLING_QUOTA_EXCEEDED": f"Raise the quota for new topics (controller_mutation_rate), or wait. {GO_ON}",
}
"""What to do where a topic can't be made, by the error."""
AWAY = f"See to the brokers of kafka.bootstrap.servers, and to the other settings kafka.…. {GO_ON}"


def no_topic(topic: str) -> TargetError:
    """Return the error for a topic that isn't there."""
    what = f"Kafka has no topic '{topic}', and doesn't make it (auto.create.topics.enable=false), or no broker answers."
    return TargetError(what, f"Create the topic, or start the brokers. {GO_ON}")


def too_large(size: str, most: str, setting: str = "kafka.max.request.size") -> TargetError:
    """Return the error for an event that the producer doesn't send.

    Args:
        size: its size in bytes.
        most: how many it may have.
        setting: the option that says so.
    """
    return TargetError(
        f"An event has {size} bytes, more than the {most} that the producer sends.",
        f"Raise {setting} in sink.options, and max.message.bytes of the topic, {_LEAVE_OUT}. {GO_ON}",
    )


def refused_as_too_large() -> TargetError:
    """Return the error for what a broker doesn't take at once: an event, or with librdkafka a batch of smaller ones."""
    return TargetError(
        "An event, or a batch of them, is larger than its topic takes.",
        f"Raise max.message.bytes of the topic, or lower kafka.batch.size in sink.options, {_LEAVE_OUT}. {GO_ON}",
    )


def no_rights(reason: str) -> TargetError:
    """Return the error for a user who may not write."""
    return TargetError(
        f"Kafka refuses to take events: {_plain(reason)}.",
        f"Let the producer write and describe the topics, or create them. {GO_ON}",
    )


def no_login(reason: str) -> TargetError:
    """Return the error for a login that fails."""
    return TargetError(
        f"Kafka refuses the login: {_plain(reason)}.", f"Correct kafka.sasl.… or kafka.ssl.… in sink.options. {GO_ON}"
    )


def no_trust(reason: str) -> TargetError:
    """Return the error for a broker whose certificate isn't trusted."""
    return TargetError(
        f"The certificate of a Kafka broker can't be verified: {_plain(reason)}.",
        f"Correct kafka.ssl.… in sink.options. {GO_ON}",
    )


def no_name(reason: str) -> TargetError:
    """Return the error for a topic whose name isn't allowed."""
    return TargetError(
        f"Kafka doesn't allow a topic's name: {_plain(reason)}.",
        f"Choose another topic.prefix or topic.naming.strategy. {GO_ON}",
    )


def lost_events(what: str) -> TargetChangedError:
    """Return the error for a topic that has lost events which were written to it.

    Args:
        what: how that was found out.
    """
    return TargetChangedError(
        f"Kafka has lost events of this query: {what}. They are not written again.",
        "See whether the brokers are the right ones and have all of their data. Otherwise begin with a new checkpoint, "
        "and so with a snapshot; or set lost.events=warn, start the query, and have the topic's table read again by "
        "the signal execute-snapshot.",
    )


def no_answer(topic: str, reason: str = "") -> TargetError:
    """Return the error for events that weren't taken in time.

    Args:
        topic: theirs; empty if it isn't known.
        reason: why, as far as it is known.
    """
    where = f" of the topic '{topic}'" if topic else ""
    why = f": {_plain(reason)}" if reason else ""
    return TargetError(f"Kafka has not taken events{where} in time{why}.", f"See to its brokers. {GO_ON}")


def not_taken(error: str, reason: str, topic: str, connection: str) -> TargetError:
    """Return what a failed delivery means.

    Args:
        error: its name.
        reason: Kafka's words for it.
        topic: the event's.
        connection: the last error of a connection to a broker; empty if there was none.
    """
    if error in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
        return no_topic(topic)
    if error == "MSG_SIZE_TOO_LARGE":
        return refused_as_too_large()
    if error.endswith("AUTHORIZATION_FAILED"):
        return no_rights(f"{reason} ({topic})")
    if error in ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"):
        return no_login(reason)
    if error == "TOPIC_EXCEPTION":
        return no_name(f"{reason} ({topic})")
    if error in ("_MSG_TIMED_OUT", "REQUEST_TIMED_OUT"):
        return no_answer(topic, connection)
    return TargetError(f"Kafka has not taken an event of the topic '{topic}': {_plain(reason)}.", AWAY)


def not_made(topic: str, settings: object, error: str, reason: str) -> ConfigError | TargetError:
    """Return the error for a topic that can't be made.

    Args:
        topic: its name.
        settings: what it was to get.
        error: the error's name.
        reason: Kafka's words for it, without secrets.
    """
    kind = ConfigError if error.startswith(("INVALID", "POLICY", "TOPIC_EXCEPTION")) else TargetError
    return kind(f"Kafka doesn't make the topic '{topic}' ({settings}): {_plain(reason)}.", _CURES.get(error, AWAY))


def no_topics(reason: str) -> TargetError:
    """Return the error for brokers that don't say which topics they have."""
    return TargetError(f"The topics that Kafka has can't be read: {_plain(reason)}.", AWAY)


def _plain(reason: str) -> str:
    return " ".join(reason.split()).rstrip(".")
