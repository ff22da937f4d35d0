"""What is remembered of Kafka's topics, and what tells that they have lost events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from floodmark.sinks.kafka.brokers import TopicEnds
from floodmark.sinks.kafka.written_topics import from_text, losses, to_text

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
