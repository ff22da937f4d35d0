"""Defines codecs, and helpers that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from floodmark.config.common import HEX
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment, closed, escape
from floodmark.json_data import Json


@dataclass(frozen=True)
class Codec:
    """How values of one type, with one modifier and under given options, are represented.

    Raw values are Arrow arrays in the form that the connector uses for the type, the same from log and tables: for
    PostgreSQL, the server's text.

    Attributes:
        schema: the field's Connect schema without ``optional``, ``default`` and ``field``; its keys in
            the order of Debezium's JSON: type, fields, name, version, doc, parameters.
        encode: turns raw values into JSON; null stays null.
        zero: JSON text that stands for a NOT NULL column which a delete's old row lacks.
        unavailable: JSON text that stands for a large value which the log lacks.
        arrow_type: type of the column with ``format=rows``.
        to_arrow: turns raw values into ``arrow_type``; what does not fit becomes null.
        known: whether events hold columns of this type.
        always_optional: whether the schema is optional even if the column is NOT NULL.
    """

    schema: ConnectSchema
    encode: Callable[[pa.Array], Fragment]
    zero: str
    unavailable: str
    arrow_type: pa.DataType
    to_arrow: Callable[[pa.Array], pa.Array]
    known: bool = True
    always_optional: bool = False


@dataclass(frozen=True)
class Settings:
    """The options that codecs of every database depend on, named as in ``CommonOptions``."""

    decimal_handling_mode: str
    time_precision_mode: str
    binary_handling_mode: str
    unavailable_value_placeholder: str

    @property
    def placeholder_bytes(self) -> bytes:
        """The placeholder of an unavailable value."""
        text = self.unavailable_value_placeholder
        return bytes.fromhex(text[len(HEX) :]) if text.startswith(HEX) else text.encode()

    @property
    def placeholder(self) -> str:
        """The placeholder of an unavailable value as a JSON string."""
        return json_string(self.placeholder_bytes.decode(errors="replace"))


def semantic(kind: str, name: str, version: int = 1, parameters: dict[str, str] | None = None) -> dict[str, Json]:
    """Return the schema of a primitive type with a semantic name."""
    schema: dict[str, Json] = {"type": kind, "name": name, "version": version}
    if parameters is not None:
        schema["parameters"] = parameters
    return schema


def json_string(text: str) -> str:
    """Return a string as JSON text."""
    return f'"{escape(pa.array([text], pa.string()))[0].as_py()}"'


def bare(text: pa.StringArray) -> Fragment:
    """Return a fragment of text that already is complete JSON."""
    return Fragment(text)


def quoted(text: pa.StringArray) -> Fragment:
    """Return a fragment of strings that contain nothing to escape."""
    return Fragment(text, quoted=True)


def unchanged(values: pa.Array) -> pa.Array:
    """Return raw values unchanged: ``to_arrow`` of types that typed rows hold in raw form."""
    return values


def one_json(codec: Codec, value: pa.Array) -> str | None:
    """Return one raw value as JSON; None if it is null."""
    fragment = codec.encode(value)
    return None if fragment.text.null_count else str(closed(fragment)[0].as_py())
