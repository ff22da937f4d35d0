"""What transforms need to know of Connect's types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from floodmark.events.connect_schema import ConnectSchema

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
"""The sizes of whole numbers."""
FLOATS = {"float": pa.float32(), "double": pa.float64()}
"""The floating types, by their names in JSON."""
_PACKAGE = "org.apache.kafka.connect.data"


def decimal_scale(schema: ConnectSchema) -> int | None:
    """Return the scale of Connect's decimals; None: the type is another."""
    parameters = schema.get("parameters")
    if schema.get("name") != f"{_PACKAGE}.Decimal" or not isinstance(parameters, Mapping):
        return None
    return int(str(parameters["scale"]))


def is_date(schema: ConnectSchema) -> bool:
    """Return whether values are dates or times in Connect's own form."""
    return is_days(schema) or schema.get("name") in (f"{_PACKAGE}.Time", f"{_PACKAGE}.Timestamp")


def is_days(schema: ConnectSchema) -> bool:
    """Return whether values are dates in Connect's own form, as days."""
    return schema.get("name") == f"{_PACKAGE}.Date"
