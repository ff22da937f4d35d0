"""Remembers where the topics that a query writes end, so that it notices those that have lost events since."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, Protocol

from floodmark.capture.seals import opened, sealed
from floodmark.errors import DamagedFileError
from floodmark.logger import get_logger
from floodmark.sinks.kafka.brokers import Brokers, TopicEnds
from floodmark.sinks.kafka.failures import lost_events

log = get_logger(__name__)

_NAME = "topics"
_PATIENCE_S = 10.0
"""How long a topic may seem to be shorter, or gone, while a broker takes over from another one."""
_PAUSE_S = 0.2


class Loss(NamedTuple):
    """What tells that a topic has lost events.

    Attributes:
        what: for people.
        may_pass: whether it may seem so only as long as brokers know nothing newer.
    """

    what: str
    may_pass: bool = True


class SmallFile(Protocol):
    """A file that is written as a whole."""

    def read(self) -> bytes | None:
        """Return its content; None: there is none."""

    def write(self, content: bytes) -> None:
        """Replace its content."""


class WrittenTopics:
    """Where each topic of a query ended after the last micro-batch with events of it.

    What is remembered may be less than what was written, if the file is lost or an older one, but not more. A topic
    doesn't become shorter by its retention or by compaction, which only remove records at its begin or in between.

    Args:
        brokers: they have the topics.
        file: in which it is remembered.
        goes_on: whether events that are lost are only logged.

    Raises:
        TargetChangedError: a topic lacks events, or is another one.
        TargetError: the brokers don't answer.
    """

    def __init__(self, brokers: Brokers, file: SmallFile, goes_on: bool) -> None:
        self._brokers = brokers
        self._file = file
        self._goes_on = goes_on
        self._known = from_text(file.read())
        self._compared(list(self._known))

    def add(self, topics: Collection[str]) -> None:
        """Remember topics that have got all events of a micro-batch.

        Raises:
            TargetChangedError: one lacks earlier events, or is another one.
            TargetError: the brokers don't answer.
        """
        if not topics:
            return
        for topic, now in self._compared(topics).items():
            before = self._known.get(topic)
            kept = before.ends if before is not None and before.id == now.id else {}
            self._known[topic] = TopicEnds(now.id, {**kept, **now.ends})
        self._file.write(to_text(self._known))

    def _compared(self, topics: Collection[str]) -> dict[str, TopicEnds]:
        """Return what topics are like now, after comparing them with what is known."""
        before = {topic: self._known[topic] for topic in topics if topic in self._known}
        until = time.monotonic() + _PATIENCE_S
        while True:
            found = self._brokers.ends(topics)
            lost = list(losses(found, before))
            if not all(one.may_pass for one in lost) or not lost or time.monotonic() > until:
                break
            time.sleep(_PAUSE_S)
        if lost and not self._goes_on:
            raise lost_events(lost[0].what)
        for one in lost:
            log.warning("kafka_has_lost_events", reason=one.what)
        if lost:
            # At once: the next start would wait for them and tell of them again.
            self._known = {topic: found.get(topic, one) for topic, one in self._known.items()}
            for topic in before.keys() - found.keys():
                del self._known[topic]
            self._file.write(to_text(self._known))
        return found


def losses(found: Mapping[str, TopicEnds], before: Mapping[str, TopicEnds]) -> Iterator[Loss]:
    """Yield what tells that topics have lost events."""
    for topic, one in before.items():
        now = found.get(topic)
        if now is None:
            yield Loss(f"the topic '{topic}' isn't there any more")
        elif one.id and now.id and one.id != now.id:
            yield Loss(f"the topic '{topic}' is another one than the query has written, of the same name", False)
        else:
            for partition, end in sorted(one.ends.items()):
                ends = now.ends.get(partition, end)
                if ends < end:
                    yield Loss(
                        f"partition {partition} of the topic '{topic}' had {end} records, and now ends after {ends}"
                    )


def to_text(topics: Mapping[str, TopicEnds]) -> bytes:
    """Return the content of the file."""
    content = {
        topic: [one.id, {str(partition): end for partition, end in one.ends.items()}] for topic, one in topics.items()
    }
    return sealed(_NAME, json.dumps(content).encode() + b"\n")


def from_text(content: bytes | None) -> dict[str, TopicEnds]:
    """Return what a file holds; nothing of one that is damaged, by a power failure or otherwise."""
    if content is None:
        return {}
    try:
        found = json.loads(opened(_NAME, content))
        return {
            topic: TopicEnds(str(number), {int(partition): int(end) for partition, end in ends.items()})
            for topic, (number, ends) in found.items()
        }
    except (DamagedFileError, ValueError, TypeError, AttributeError):
        return {}
