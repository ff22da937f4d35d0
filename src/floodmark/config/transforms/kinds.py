"""Lists the types of transforms and predicates. A new transform is a line here, with its options and its module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from floodmark.config.model import Options
from floodmark.config.transforms.debezium import (
    ByLogicalTableRouterOptions,
    ExtractChangedRecordStateOptions,
    ExtractNewRecordStateOptions,
)
from floodmark.config.transforms.kafka import RegexRouterOptions
from floodmark.config.transforms.predicates import HasHeaderKeyOptions, NoOptions, TopicNameMatchesOptions


@dataclass(frozen=True)
class TransformKind:
    """A type of transforms.

    Attributes:
        options: the model of its options.
        maker: ``<module>:<class>``, which takes ``TransformSettings``; only what decodes events imports it.
    """

    options: type[Options]
    maker: str


TRANSFORMS: Mapping[str, TransformKind] = {
    "io.debezium.transforms.ExtractNewRecordState": TransformKind(
        ExtractNewRecordStateOptions,
        "floodmark.transforms.debezium.extract_new_record_state:ExtractNewRecordState",
    ),
    "io.debezium.transforms.ExtractChangedRecordState": TransformKind(
        ExtractChangedRecordStateOptions,
        "floodmark.transforms.debezium.extract_changed_record_state:ExtractChangedRecordState",
    ),
    "io.debezium.transforms.ByLogicalTableRouter": TransformKind(
        ByLogicalTableRouterOptions,
        "floodmark.transforms.debezium.by_logical_table_router:ByLogicalTableRouter",
    ),
    "org.apache.kafka.connect.transforms.RegexRouter": TransformKind(
        RegexRouterOptions,
        "floodmark.transforms.kafka.regex_router:RegexRouter",
    ),
}
"""The transforms that there are, by their type."""
PREDICATES: Mapping[str, type[Options]] = {
    "org.apache.kafka.connect.transforms.predicates.TopicNameMatches": TopicNameMatchesOptions,
    "org.apache.kafka.connect.transforms.predicates.HasHeaderKey": HasHeaderKeyOptions,
    "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone": NoOptions,
}
"""The options of the predicates that there are, by their type."""
