"""Options of Debezium's router of an outbox table's events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeAlias, cast, get_args

from pydantic import model_validator

from floodmark.config.java_patterns import Renaming
from floodmark.config.model import NO_EFFECT, Options, Words, option
from floodmark.config.transforms.renaming import checked_renaming

Placement: TypeAlias = Literal["header", "envelope", "partition"]
"""Where a further field of the outbox table goes."""
_NO_TRACING = NO_EFFECT + "events aren't traced."


@dataclass(frozen=True)
class AdditionalField:
    """A further field of the outbox table that records get.

    Attributes:
        field: its name in the table.
        placement: where it goes.
        name: the name that it gets there.
    """

    field: str
    placement: Placement
    name: str

    @classmethod
    def parse(cls, text: str) -> AdditionalField:
        """Return what a text such as ``type:header:eventType`` means.

        Raises:
            ValueError: it means nothing.
        """
        parts = [part.strip() for part in text.split(":")]
        placement = parts[1].lower() if len(parts) > 1 else ""
        if len(parts) not in (2, 3) or "" in parts or placement not in get_args(Placement):
            raise ValueError(
                f"Option 'table.fields.additional.placement' is wrong: '{text}' is not of the form "
                "<field>:<placement> or <field>:<placement>:<name>, with one of the placements "
                f"{', '.join(get_args(Placement))}."
            )
        return cls(parts[0], cast(Placement, placement), parts[-1] if len(parts) == 3 else parts[0])


class EventRouterOptions(Options):
    """Options of ``io.debezium.transforms.outbox.EventRouter``."""

    table_field_event_id: str = option("table.field.event.id", "id", "The column that becomes the header `id`.")
    table_field_event_key: str = option("table.field.event.key", "aggregateid", "The column that becomes the key.")
    table_field_event_payload: str = option(
        "table.field.event.payload", "payload", "The column that becomes the value."
    )
    table_field_event_type: str = option("table.field.event.type", "type", NO_EFFECT + "as with Debezium.")
    table_field_event_timestamp: str = option(
        "table.field.event.timestamp", "", NO_EFFECT + "records get their time from Kafka."
    )
    table_field_event_schema_version: str = option(
        "table.field.event.schema.version",
        "",
        "The column with the version of the value's schema, if fields are placed in the envelope; an INT.",
    )
    table_fields_additional_placement: Words = option(
        "table.fields.additional.placement",
        (),
        "Further columns: `<column>:<header, envelope or partition>`, each with `:<name>` behind it or not.",
    )
    table_field_additional_missing: Literal["error", "ignore"] = option(
        "table.field.additional.missing", "error", "What becomes of rows that lack such a column."
    )
    table_expand_json_payload: bool = option(
        "table.expand.json.payload", False, "Whether a payload that is a text with a JSON object becomes a structure."
    )
    table_json_payload_null_behavior: Literal["ignore", "optional_bytes"] = option(
        "table.json.payload.null.behavior", "ignore", "Whether it keeps fields that are null."
    )
    table_op_invalid_behavior: Literal["warn", "error", "fatal"] = option(
        "table.op.invalid.behavior", "warn", "What becomes of updates: a line in the log, or an error."
    )
    route_by_field: str = option("route.by.field", "aggregatetype", "The column that names the topic; a text.")
    route_topic_regex: str = option(
        "route.topic.regex", "(?<routedByValue>.*)", "A regular expression that must match the whole of that text."
    )
    route_topic_replacement: str = option(
        "route.topic.replacement", "outbox.event.${routedByValue}", "What its first match is replaced by: the topic."
    )
    route_tombstone_on_empty_payload: bool = option(
        "route.tombstone.on.empty.payload", False, "Whether null, or a text of blanks, becomes a tombstone."
    )
    tracing_span_context_field: str = option("tracing.span.context.field", "tracingspancontext", _NO_TRACING)
    tracing_operation_name: str = option("tracing.operation.name", "debezium-read", _NO_TRACING)
    tracing_with_context_field_only: bool = option("tracing.with.context.field.only", False, _NO_TRACING)

    refused: ClassVar[Mapping[str, str]] = {
        "table.json.payload.empty.array.behavior": "it is new in Debezium 3.7; empty arrays are left out, as in 3.6",
    }

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        self.renaming  # noqa: B018
        for name, text in (
            ("table.field.event.id", self.table_field_event_id),
            ("table.field.event.key", self.table_field_event_key),
            ("table.field.event.payload", self.table_field_event_payload),
            ("route.by.field", self.route_by_field),
        ):
            if not text:
                raise ValueError(f"Option '{name}' must not be empty.")
        names = [one.name for one in self.additional if one.placement == "envelope"]
        for name in names:
            if name == "payload" or names.count(name) > 1:
                raise ValueError(
                    f"Option 'table.fields.additional.placement' is wrong: the envelope would have two fields '{name}'."
                )
        if len(self.placed("partition")) > 1:
            raise ValueError("Option 'table.fields.additional.placement' is wrong: two columns give the partition.")
        return self

    @property
    def additional(self) -> tuple[AdditionalField, ...]:
        """The further fields."""
        return tuple(map(AdditionalField.parse, self.table_fields_additional_placement))

    def placed(self, placement: Placement) -> tuple[AdditionalField, ...]:
        """Return those of the further fields that go to a place."""
        return tuple(one for one in self.additional if one.placement == placement)

    @property
    def renaming(self) -> Renaming:
        """What makes topics."""
        return checked_renaming(
            "route.topic.regex", self.route_topic_regex, "route.topic.replacement", self.route_topic_replacement
        )

    def column(self, option_name: str, connector: str) -> str:
        """Return the column that an option names; if it isn't given, Oracle's is in upper case, as with Debezium.

        Args:
            option_name: the name of the model's field.
            connector: as source blocks name it.
        """
        name = str(getattr(self, option_name))
        return name.upper() if connector == "oracle" and option_name not in self.model_fields_set else name
