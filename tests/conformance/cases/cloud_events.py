"""Cases of ``CloudEventsConverter``, with records of all kinds."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.routing import ALTERED, BEATS, REGEX, chained
from tests.conformance.cases.transforms import EVERY_OPERATION, METADATA, STATEMENTS, TABLES

CONVERTER = "value.converter"
CLOUD_EVENTS = {CONVERTER: "io.debezium.converters.CloudEventsConverter"}
WITHOUT_SCHEMAS = {f"{CONVERTER}.json.schemas.enable": "false"}
WITHOUT_EXTENSIONS = {f"{CONVERTER}.extension.attributes.enable": "false"}
AS_NULL = {f"{CONVERTER}.json.replace.null.with.default": "false"}
GENERATED = {f"{CONVERTER}.metadata.source": "value,id:generate,type:generate,dataSchemaName:generate"}


def cloud_events(name: str, options: dict[str, str], schemas: bool = False) -> Case:
    """Return a case with rows, keyless ones among them, messages, transactions and heartbeats."""
    every = {**CLOUD_EVENTS, **EVERY_OPERATION, **BEATS, **options}
    return Case(f"cloud_events_{name}", TABLES, (*STATEMENTS, *ALTERED), every, schemas)


CASES = (
    cloud_events("default", {}),
    cloud_events("key_schemas", WITHOUT_SCHEMAS, schemas=True),
    cloud_events("transactions", {**METADATA, **WITHOUT_SCHEMAS, **GENERATED}),
    cloud_events("bare", {**METADATA, **WITHOUT_EXTENSIONS, **AS_NULL}),
    cloud_events(
        "routed",
        {**WITHOUT_SCHEMAS, **chained(every={"type": REGEX, "regex": r"golden\.(.*)", "replacement": "all.$1"})},
    ),
)
