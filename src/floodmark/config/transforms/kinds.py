"""Lists the types of transforms and predicates. A new transform is a line here, with its options and its module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from floodmark.config.model import Options
from floodmark.config.transforms.debezium import (
    ByLogicalTableRouterOptions,
    ExtractChangedRecordStateOptions,
    ExtractNewRecordStateOptions,
    ExtractSchemaToNewRecordOptions,
    HeaderToValueOptions,
)
from floodmark.config.transforms.kafka import (
    CastOptions,
    ExtractFieldOptions,
    HoistFieldOptions,
    InsertFieldOptions,
    MaskFieldOptions,
    RegexRouterOptions,
    ReplaceFieldOptions,
    ValueToKeyOptions,
)
from floodmark.config.transforms.outbox import EventRouterOptions
from floodmark.config.transforms.partitions import PartitionRoutingOptions
from floodmark.config.transforms.predicates import HasHeaderKeyOptions, NoOptions, TopicNameMatchesOptions
from floodmark.config.transforms.scripting import ContentBasedRouterOptions, FilterOptions
from floodmark.config.transforms.timezones import TimezoneConverterOptions

Side: TypeAlias = Literal["key", "value"]
"""What of a record a transform changes whose type ends in ``$Key`` or ``$Value``."""


@dataclass(frozen=True)
class TransformKind:
    """A type of transforms.

    Attributes:
        options: the model of its options.
        maker: ``<module>:<class>``, which takes ``TransformSettings``; only what decodes events imports it.
        side: what it changes, if its type says that.
    """

    options: type[Options]
    maker: str
    side: Side = "value"


def _sides(name: str, options: type[Options], maker: str) -> dict[str, TransformKind]:
    """Return Kafka Connect's transforms of keys and of values."""
    maker = f"floodmark.transforms.kafka.{maker}"
    return {
        f"org.apache.kafka.connect.transforms.{name}$Key": TransformKind(options, maker, "key"),
        f"org.apache.kafka.connect.transforms.{name}$Value": TransformKind(options, maker, "value"),
    }


TRANSFORMS: Mapping[str, TransformKind] = {
    "io.debezium.transforms.ExtractNewRecordState": TransformKind(
        ExtractNewRecordStateOptions,
        "floodmark.transforms.debezium.extract_new_record_state:ExtractNewRecordState",
    ),
    "io.debezium.transforms.ExtractChangedRecordState": TransformKind(
        ExtractChangedRecordStateOptions,
        "floodmark.transforms.debezium.extract_changed_record_state:ExtractChangedRecordState",
    ),
    "io.debezium.transforms.ExtractSchemaToNewRecord": TransformKind(
        ExtractSchemaToNewRecordOptions,
        "floodmark.transforms.debezium.extract_schema_to_new_record:ExtractSchemaToNewRecord",
    ),
    "io.debezium.transforms.VectorToJsonConverter": TransformKind(
        NoOptions,
        "floodmark.transforms.debezium.vector_to_json_converter:VectorToJsonConverter",
    ),
    "io.debezium.transforms.HeaderToValue": TransformKind(
        HeaderToValueOptions,
        "floodmark.transforms.debezium.header_to_value:HeaderToValue",
    ),
    "io.debezium.transforms.ByLogicalTableRouter": TransformKind(
        ByLogicalTableRouterOptions,
        "floodmark.transforms.debezium.by_logical_table_router:ByLogicalTableRouter",
    ),
    "io.debezium.transforms.TimezoneConverter": TransformKind(
        TimezoneConverterOptions,
        "floodmark.transforms.debezium.timezone_converter:TimezoneConverter",
    ),
    "io.debezium.transforms.partitions.PartitionRouting": TransformKind(
        PartitionRoutingOptions,
        "floodmark.transforms.debezium.partition_routing:PartitionRouting",
    ),
    "io.debezium.transforms.outbox.EventRouter": TransformKind(
        EventRouterOptions,
        "floodmark.transforms.outbox.event_router:EventRouter",
    ),
    "io.debezium.transforms.Filter": TransformKind(
        FilterOptions,
        "floodmark.transforms.debezium.filter:Filter",
    ),
    "io.debezium.transforms.ContentBasedRouter": TransformKind(
        ContentBasedRouterOptions,
        "floodmark.transforms.debezium.content_based_router:ContentBasedRouter",
    ),
    "org.apache.kafka.connect.transforms.RegexRouter": TransformKind(
        RegexRouterOptions,
        "floodmark.transforms.kafka.regex_router:RegexRouter",
    ),
    "org.apache.kafka.connect.transforms.ValueToKey": TransformKind(
        ValueToKeyOptions,
        "floodmark.transforms.kafka.value_to_key:ValueToKey",
    ),
    **_sides("InsertField", InsertFieldOptions, "insert_field:InsertField"),
    **_sides("ReplaceField", ReplaceFieldOptions, "replace_field:ReplaceField"),
    **_sides("MaskField", MaskFieldOptions, "mask_field:MaskField"),
    **_sides("ExtractField", ExtractFieldOptions, "extract_field:ExtractField"),
    **_sides("HoistField", HoistFieldOptions, "hoist_field:HoistField"),
    **_sides("Cast", CastOptions, "cast:Cast"),
}
"""The transforms that there are, by their type."""
PREDICATES: Mapping[str, type[Options]] = {
    "org.apache.kafka.connect.transforms.predicates.TopicNameMatches": TopicNameMatchesOptions,
    "org.apache.kafka.connect.transforms.predicates.HasHeaderKey": HasHeaderKeyOptions,
    "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone": NoOptions,
}
"""The options of the predicates that there are, by their type."""
