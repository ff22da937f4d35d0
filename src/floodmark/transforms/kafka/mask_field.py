"""Replaces the values of fields, as ``org.apache.kafka.connect.transforms.MaskField`` does."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.decimals import unscaled_base64
from floodmark.codecs.floats import java_number
from floodmark.config.transforms.kafka import MaskFieldOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment, dumps
from floodmark.transforms.kafka.one_side import OneSide
from floodmark.transforms.kafka.types import BITS, FLOATS, decimal_scale, is_date
from floodmark.transforms.records import Part, Records
from floodmark.transforms.structs import NULL, Struct, Values

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_ZEROS = {"boolean": "false", **dict.fromkeys(BITS, "0"), **dict.fromkeys(FLOATS, "0.0"), "string": '""', "array": "[]"}


class MaskField(OneSide):
    """The transform.

    Args:
        settings: its name, its type and its options.
    """

    option = "fields"

    def __init__(self, settings: TransformSettings) -> None:
        super().__init__(settings)
        self._options = cast(MaskFieldOptions, settings.options)

    def _applied(self, part: Part | None, records: Records) -> Part | None:
        struct = self._with_defaults(self._struct(part, records))
        masked = [
            self._masked(name, schema, values, records) if name in self._options.fields else values
            for name, schema, values in struct.members()
        ]
        return Struct(struct.schema, masked)

    def _masked(self, name: str, schema: ConnectSchema, values: Values, records: Records) -> Values:
        """Return the values of a field with a mask in the place of those that aren't null."""
        text = values.text if isinstance(values, Fragment) else None
        if text is None:
            absent = values.values is None if isinstance(values, Struct) else values == NULL
        else:
            absent = text.null_count == len(text)
        if absent:
            return values
        mask = _zero(schema) if self._options.replacement is None else _converted(self._options.replacement, schema)
        if mask is None:
            kind = schema.get("name", schema["type"])
            by = "" if self._options.replacement is None else f" by '{self._options.replacement}'"
            raise self._failure(records, f"the field '{name}' of the type {kind} can't be masked{by}")
        if text is None or not text.null_count:
            return mask
        return Fragment(pc.if_else(pc.is_null(text), pa.scalar(None, pa.string()), mask))


def _zero(schema: ConnectSchema) -> str | None:
    """Return what masks values of a type, as JSON; None: they can't be."""
    kind = str(schema["type"])
    if kind == "bytes":
        # Zero has no digits behind its point, so that Kafka Connect can't write it as a number of another scale.
        return '"AA=="' if decimal_scale(schema) == 0 else None
    if kind == "map":
        keys = cast(ConnectSchema, schema["keys"])
        return "{}" if keys["type"] == "string" else "[]"
    return _ZEROS.get(kind)


def _converted(text: str, schema: ConnectSchema) -> str | None:
    """Return a replacement as a value of a type, as JSON; None: it isn't one."""
    kind = str(schema["type"])
    if kind == "string":
        return dumps(text)
    if is_date(schema) or not _NUMBER.fullmatch(text):
        return None
    if kind in BITS:
        # As Java narrows numbers: to 64 bits, then to fewer.
        half = 1 << (BITS[kind] - 1)
        return str((int(Decimal(text)) + half) % (2 * half) - half)
    if kind in FLOATS:
        return cast(
            str,
            java_number(pa.array([repr(float(text))]).cast(FLOATS[kind]).cast(pa.string()), FLOATS[kind])[0].as_py(),
        )
    scale = decimal_scale(schema)
    number = Decimal(text).as_tuple()
    if scale is None or number.exponent != -scale:
        return None
    digits = ("-" if number.sign else "") + "".join(map(str, number.digits))
    return f'"{unscaled_base64(pa.array([digits]))[0].as_py()}"'
