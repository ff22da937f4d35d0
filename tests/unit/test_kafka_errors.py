"""Which connector for Kafka goes with which Spark, and what the producer's errors become."""

from __future__ import annotations

import pytest

from floodmark.spark.failures import explain
from floodmark.spark.sinks.kafka import goes_with, kafka_error, kafka_package

EXCEPTION = "Job aborted: Lost task 1.0 in stage 2.0: org.apache.kafka.common.errors."
AT = "\n\tat org.apache.kafka.clients.producer.KafkaProducer.send(KafkaProducer.java:1)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "TimeoutException: Topic t.public.orders not present in metadata after 60000 ms.",
            "no topic 't.public.orders'",
        ),
        (
            "RecordTooLargeException: The message is 2000596 bytes when serialized which is larger than 1048576, which "
            "is the value of the max.request.size configuration.",
            "An event has 2000596 bytes, more than the 1048576",
        ),
        (
            "RecordTooLargeException: The request included a message larger than the max message size the server will "
            "accept.",
            "larger than its topic takes",
        ),
        (
            "TopicAuthorizationException: Not authorized to access topics: [t.public.orders]",
            "refuses to take events: Not authorized to access topics: [t.public.orders].",
        ),
        (
            "SaslAuthenticationException: Authentication failed: Invalid username or password",
            "refuses the login: Authentication failed: Invalid username or password.",
        ),
        (
            "InvalidTopicException: Invalid topics: [a b]",
            "doesn't allow a topic's name: Invalid topics: [a b].",
        ),
        (
            "TimeoutException: Expiring 3 record(s) for t.public.orders-0:120000 ms has passed since batch creation",
            "has not taken events of the topic 't.public.orders' in time",
        ),
    ],
)
def test_errors_of_the_producer(text: str, words: str) -> None:
    found = explain(RuntimeError(EXCEPTION + text + AT))
    assert words in str(found)
    assert "nothing is lost" in found.cure


def test_other_errors_are_no_ones() -> None:
    assert kafka_error("java.util.concurrent.TimeoutException: Topic t not present in metadata") is None


@pytest.mark.parametrize(
    ("version", "release"),
    [("4.0.5", "4.0.0"), ("4.1.4", "4.1.1"), ("4.2.1", "4.2.0"), ("4.3.0", "4.2.0"), ("4.9.0", "4.9.0")],
)
def test_the_release_that_goes_with_a_spark(version: str, release: str) -> None:
    assert kafka_package(version) == f"org.apache.spark:spark-sql-kafka-0-10_2.13:{release}"
    assert goes_with("2.13", release, version)
    assert not goes_with("2.12", release, version)
    assert not goes_with("2.13", "3.5.1", version)
