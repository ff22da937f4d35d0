"""The interface of converters, which decide how events show the values of some columns.

The counterpart of Debezium's ``io.debezium.spi.converter.CustomConverter``, for whole columns. A package offers one as
an entry point of the group ``floodmark.converters``; the option ``converters`` names those that are used. Converters
run in the driver and in executors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import pyarrow as pa

from floodmark.json_data import Json

KINDS: dict[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
}
"""Connect's types that a converter can return, and the corresponding Arrow types."""


@dataclass(frozen=True)
class SourceColumn:
    """A column of a table.

    Attributes:
        schema: the table's schema.
        type_name: the type; in PostgreSQL ``pg_type.typname``: ``int4``, ``varchar``, ``_text`` (an array), ``mood``.
        length: in characters or digits.
        optional: whether it may hold NULL.
    """

    schema: str
    table: str
    name: str
    type_name: str
    length: int
    scale: int
    optional: bool

    @property
    def full_name(self) -> str:
        """``schema.table.column``."""
        return f"{self.schema}.{self.table}.{self.name}"


@dataclass(frozen=True)
class Conversion:
    """How a column's values are shown.

    Attributes:
        kind: Connect's name of the type, one of ``KINDS``.
        convert: turns raw values (in PostgreSQL the server's text), null for NULL, into an array of as many rows, of
            the type in ``KINDS``.
        name: the schema's semantic name.
        version: of the semantic type.
        parameters: of the schema.
    """

    kind: str
    convert: Callable[[pa.StringArray], pa.Array]
    name: str | None = None
    version: int | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> dict[str, Json]:
        """The Connect schema."""
        members: dict[str, Json] = {
            "type": self.kind,
            "name": self.name,
            "version": self.version,
            "parameters": dict(self.parameters),
        }
        return {key: value for key, value in members.items() if value}


@runtime_checkable
class Converter(Protocol):
    """Decides which columns it converts, and how."""

    def configure(self, options: Mapping[str, str]) -> None:  # noqa: ARG002
        """Receive the options that begin with the converter's name, without it and in lower case; called once."""
        return

    @abstractmethod
    def converter_for(self, column: SourceColumn) -> Conversion | None:
        """Return how a column's values are shown, or None to leave it to others. Called for each table version."""
