"""What is remembered of Kafka's topics, and what tells that they have lost events."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.errors import TargetChangedError
from floodmark.sinks.kafka import written_topics
from floodmark.sinks.kafka.brokers import TopicEnds
from floodmark.sinks.kafka.written_topics import WrittenTopics, from_text, losses, to_text

ENDS = st.dictionaries(st.integers(0, 5), st.integers(0, 100), max_size=4)
TOPICS = st.dictionaries(st.text(max_size=5), st.builds(TopicEnds, st.sampled_from(["", "a", "b"]), ENDS), max_size=4)


@given(TOPICS)
def test_what_is_written_is_read(topics: dict[str, TopicEnds]) -> None:
    assert from_text(to_text(topics)) == topics


@given(TOPICS, st.data())
def test_nothing_is_read_from_a_damaged_file(topics: dict[str, TopicEnds], data: st.DataObject) -> None:
    content = bytearray(to_text(topics))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    assert from_text(bytes(content)) == {}
    assert from_text(bytes(to_text(topics)[:place])) == {}


@given(TOPICS, TOPICS)
def test_a_topic_has_lost_events_where_a_partition_is_shorter(
    now: dict[str, TopicEnds], before: dict[str, TopicEnds]
) -> None:
    expected = False
    for topic, one in before.items():
        found = now.get(topic)
        expected |= found is None
        if found is not None:
            expected |= "" not in (found.id, one.id) and found.id != one.id
            expected |= any(found.ends.get(partition, end) < end for partition, end in one.ends.items())
    assert bool(list(losses(now, before))) == expected


class Told:
    """Brokers with some topics, and a file in memory."""

    def __init__(self, topics: dict[str, TopicEnds]) -> None:
        self.topics = topics
        self.content: bytes | None = None

    def ends(self, topics: Collection[str]) -> dict[str, TopicEnds]:
        return {topic: self.topics[topic] for topic in topics if topic in self.topics}

    def read(self) -> bytes | None:
        return self.content

    def write(self, content: bytes) -> None:
        self.content = content

    def start(self, goes_on: bool) -> WrittenTopics:
        brokers: Any = self
        return WrittenTopics(brokers, self, goes_on)


def test_a_loss_is_told_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Even if the topics get no event after it, so that the next start doesn't wait for what is lost."""
    monkeypatch.setattr(written_topics, "_PATIENCE_S", 0)
    told = Told({"a": TopicEnds("1", {0: 9}), "b": TopicEnds("2", {0: 5}), "c": TopicEnds("3", {0: 7})})
    told.start(goes_on=False).add(["a", "b", "c"])
    told.topics = {"a": TopicEnds("1", {0: 4}), "c": TopicEnds("3", {0: 7})}
    with pytest.raises(TargetChangedError, match=r"'a' had 9 records, and now ends after 4|'b' isn't there"):
        told.start(goes_on=False)
    told.start(goes_on=True)
    assert capsys.readouterr().err.count("kafka_has_lost_events") == 2
    told.start(goes_on=False)
    assert from_text(told.content) == told.topics
