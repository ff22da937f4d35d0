"""Spark's connector for Kafka: which release goes with which Spark, and what its errors mean."""

from __future__ import annotations

import re

from pyspark.version import __version__

from floodmark.errors import TargetError
from floodmark.sinks.kafka.failures import (
    no_answer,
    no_login,
    no_name,
    no_rights,
    no_topic,
    refused_as_too_large,
    too_large,
)
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
        return no_topic(found[1])
    if found := _TOO_LARGE.search(text):
        return too_large(found[1], found[2])
    if _REFUSED_AS_TOO_LARGE.search(text):
        return refused_as_too_large()
    for pattern, error in (
        (_NO_RIGHTS, no_rights),
        (_NO_LOGIN, no_login),
        (_NO_NAME, no_name),
        (_NO_ANSWER, no_answer),
    ):
        if found := pattern.search(text):
            return error(found[1] or "")
    return None
