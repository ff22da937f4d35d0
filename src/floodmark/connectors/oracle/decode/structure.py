"""Describes a table's structure to the code that makes events from its rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from floodmark.changes.structure import SourceType
from floodmark.codecs.codec import Codec
from floodmark.config.common import CommonOptions
from floodmark.connectors.oracle.decode.defaults import default_value
from floodmark.connectors.oracle.source_block import source_schema, table_pieces
from floodmark.connectors.oracle.structures.described import described_type
from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.connectors.oracle.types.registry import codec_with
from floodmark.connectors.oracle.types.settings import OracleSettings
from floodmark.json_data import Json
from floodmark.packing import table_number

_NOT_GIVEN = -1


@dataclass(frozen=True)
class TableStructure:
    """One version of a table.

    Attributes:
        definition: the table.
        settings: what its codecs depend on.
        comments: whether schemas include comments (``include.schema.comments``).
    """

    definition: Table
    settings: OracleSettings
    comments: bool = False

    @cached_property
    def number(self) -> int:
        """The table's number (``table_number``)."""
        return table_number(self.schema, self.table)

    @property
    def schema(self) -> str:
        """The table's schema."""
        return self.definition.owner

    @property
    def table(self) -> str:
        """The table's name, without the schema."""
        return self.definition.name

    @property
    def full_name(self) -> str:
        """The table's name with its database and schema."""
        return f"{self.definition.database}.{self.schema}.{self.table}"

    @property
    def columns(self) -> Sequence[Column]:
        """The columns in the order of rows."""
        return self.definition.columns

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the columns that make an event's key; empty if there is none."""
        return self.definition.key

    @property
    def source_schema(self) -> Mapping[str, Json]:
        """The Connect schema of the source block."""
        return source_schema()

    @property
    def source_pieces(self) -> tuple[str, ...]:
        """The parts of the source block's text that name the table."""
        return table_pieces(self.definition.database, self.schema, self.table)

    def layout_key(self) -> Hashable:
        """Return a value that is equal for tables whose rows become events in the same way, except for names."""
        return self.definition.columns, self.definition.key

    def codec(self, column: int, options: CommonOptions) -> Codec:
        """Return the codec of a column."""
        codec = codec_with(replace(self.columns[column], default=None, comment=None), self.settings)
        comment = self.comment(column, options)
        return replace(codec, schema={**codec.schema, "doc": comment}) if comment else codec

    def comment(self, column: int, options: CommonOptions) -> str:
        """Return a column's comment if schemas include comments, else an empty text."""
        del options
        return (self.columns[column].comment or "") if self.comments else ""

    def source_type(self, column: int) -> SourceType:
        """Return a column's type as Debezium knows it."""
        kind = described_type(self.columns[column])
        length = _NOT_GIVEN if kind.length is None else kind.length
        scale = _NOT_GIVEN if kind.scale is None else kind.scale
        text = self.columns[column].type in ("CHAR", "VARCHAR2", "NCHAR", "NVARCHAR2", "CLOB", "NCLOB")
        return SourceType(kind.name, length, scale, text, rounded=kind.scale is not None and kind.scale < 0)

    def default(self, column: int, codec: Codec) -> pa.Array | None:
        """Return a column's default as one raw value; None if it has none."""
        return default_value(self.columns[column], codec)
