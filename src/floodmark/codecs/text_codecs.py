"""Codecs of types whose JSON is the server's text, or nearly: integers, booleans, strings."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.codec import Codec, Settings, bare, semantic, unchanged
from floodmark.events.json_text import Fragment, string


def integer(kind: str, arrow_type: pa.DataType, settings: Settings) -> Codec:
    """Return the codec of an integer type.

    Args:
        kind: Connect's name of the type, ``int16``, ``int32`` or ``int64``.
        arrow_type: its type in typed rows.
        settings: the options.
    """
    return Codec({"type": kind}, bare, "0", settings.placeholder, arrow_type, lambda text: text.cast(arrow_type))


def boolean(settings: Settings, true: str = "t") -> Codec:
    """Return the codec of ``boolean``, and of ``bit(1)``, where ``true`` is another text."""

    def encode(text: pa.StringArray) -> Fragment:
        return Fragment(pc.if_else(pc.equal(text, true), "true", "false"))

    return Codec(
        {"type": "boolean"},
        encode,
        "false",
        settings.placeholder,
        pa.bool_(),
        lambda text: pc.equal(text, true),
    )


def text(settings: Settings, name: str = "", parameters: dict[str, str] | None = None) -> Codec:
    """Return the codec of a type that is a string in JSON.

    Args:
        settings: the options.
        name: the schema's semantic name.
        parameters: the schema's parameters.
    """
    schema = semantic("string", name, parameters=parameters) if name else {"type": "string"}
    return Codec(schema, string, '""', settings.placeholder, pa.string(), unchanged)
