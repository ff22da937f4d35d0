"""Spark's connector for Kafka: which release goes with which Spark, and what its errors mean."""

from __future__ import annotations

import re

from pyspark.version import __version__

from floodmark.errors import TargetError
from floodmark.spark.versions import minor_version

ARTIFACT = "spark-sql-kafka-0-10"
SCALA = "2.13"
"""The version of Scala that all releases of PySpark 4 are built with."""
RELEASES: dict[tuple[int, ...], str] = {(4, 0): "4.0.0", (4, 1): "4.1.1", (4, 2): "4.2.0", (4, 3): "4.2.0"}
"""By Spark's version, the release that is tested with it: Maven Central gets them later than PyPI gets Spark."""

_EXCEPTION = r"org\.apache\.kafka\.common\.errors\.{}: "
_NO_TOPIC = re.compile(_EXCEPTION.format("TimeoutException") + r"Topic (\S+) not present in metadata")
_TOO_LARGE = re.compile(
    _EXCEPTION.format("RecordTooLargeException")
    + r"The message is (\d+) bytes when serialized which is larger than (\d+)"
)
_REFUSED_AS_TOO_LARGE = re.compile(_EXCEPTION.format("RecordTooLargeException"))
_NO_RIGHTS = re.compile(_EXCEPTION.format(r"\w*AuthorizationException") + r"([^\n]*)")
_NO_LOGIN = re.compile(_EXCEPTION.format(r"\w*AuthenticationException") + r"([^\n]*)")
_NO_NAME = re.compile(_EXCEPTION.format("InvalidTopicException") + r"([^\n]*)")
_NO_ANSWER = re.compile(
    _EXCEPTION.format("TimeoutException") + r"(?:Expiring \d+ record\S* for (\S+?)-\d+[:\s]|Timed? ?out waiting)"
)
_GO_ON = "Start the query again then; nothing is lost."
_LEAVE_OUT = "or leave large columns out (column.exclude.list)"


def kafka_package(version: str = __version__) -> str:
    """Return the coordinates of the connector for a version of Spark."""
    release = RELEASES.get(minor_version(version), version)
    return f"org.apache.spark:{ARTIFACT}_{SCALA}:{release}"


def goes_with(scala: str, release: str, version: str) -> bool:
    """Return whether a release of the connector works with a version of Spark."""
    minor = minor_version(version)
    return scala == SCALA and minor_version(release) in (minor, minor_version(RELEASES.get(minor, version)))


def kafka_error(text: str) -> TargetError | None:
    """Return the error that an exception of Kafka's producer stands for; None if there is none in a text."""
    if found := _NO_TOPIC.search(text):
        what = f"Kafka has no topic '{found[1]}', and doesn't make it (auto.create.topics.enable=false), or no broker"
        return TargetError(f"{what} answers.", f"Create the topic, or start the brokers. {_GO_ON}")
    if found := _TOO_LARGE.search(text):
        return TargetError(
            f"An event has {found[1]} bytes, more than the {found[2]} that the producer sends.",
            f"Raise kafka.max.request.size in sink.options, and max.message.bytes of the topic, {_LEAVE_OUT}. {_GO_ON}",
        )
    if _REFUSED_AS_TOO_LARGE.search(text):
        return TargetError(
            "An event is larger than its topic takes.", f"Raise max.message.bytes of the topic, {_LEAVE_OUT}. {_GO_ON}"
        )
    if found := _NO_RIGHTS.search(text):
        return TargetError(
            f"Kafka refuses to take events: {found[1].strip().rstrip('.')}.",
            f"Let the producer write and describe the topics, or create them. {_GO_ON}",
        )
    if found := _NO_LOGIN.search(text):
        return TargetError(
            f"Kafka refuses the login: {found[1].strip().rstrip('.')}.",
            f"Correct kafka.sasl.… or kafka.ssl.… in sink.options. {_GO_ON}",
        )
    if found := _NO_NAME.search(text):
        return TargetError(
            f"Kafka doesn't allow a topic's name: {found[1].strip().rstrip('.')}.",
            f"Choose another topic.prefix or topic.naming.strategy. {_GO_ON}",
        )
    if found := _NO_ANSWER.search(text):
        where = f" of the topic '{found[1]}'" if found[1] else ""
        return TargetError(f"Kafka has not taken events{where} in time.", f"See to its brokers. {_GO_ON}")
    return None
