"""Renames topics, as ``org.apache.kafka.connect.transforms.RegexRouter`` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from floodmark.config.transforms.kafka import RegexRouterOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.transforms.failures import failure
from floodmark.transforms.records import Records


class RegexRouter:
    """The transform.

    Args:
        settings: its name and its options.
    """

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings
        self._renaming = cast(RegexRouterOptions, settings.options).renaming

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return records with their new topics.

        Raises:
            SourceStateError: a topic would have no name.
        """
        return (records.with_topics(lambda topic: self._new_topic(topic, records)),)

    def _new_topic(self, topic: str, records: Records) -> str:
        renamed = self._renaming(topic)
        if renamed == "":
            raise failure(
                self._settings, "replacement", records, f"their topic {topic} would become a text without content"
            )
        return topic if renamed is None else renamed
