"""Describes a table's structure to the code that makes events from its rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import pyarrow as pa

from floodmark.changes.structure import SourceType
from floodmark.codecs.codec import Codec
from floodmark.config.common import CommonOptions
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.source_block import source_schema, table_pieces
from floodmark.connectors.mysql.structures.table import Column, Table
from floodmark.connectors.mysql.types.defaults import default_value
from floodmark.connectors.mysql.types.registry import codec_for
from floodmark.connectors.mysql.types.source_types import source_type
from floodmark.json_data import Json
from floodmark.packing import table_number

Flavor = Literal["mysql", "mariadb"]


def flavor_of(options: BinlogOptions) -> Flavor:
    """Return the kind of the server."""
    return "mariadb" if options.connector == "mariadb" else "mysql"


@dataclass(frozen=True)
class TableStructure:
    """One version of a table.

    Attributes:
        definition: the table as in the schema history.
        flavor: the server's kind.
    """

    definition: Table
    flavor: Flavor

    @cached_property
    def number(self) -> int:
        """The table's number (``table_number``)."""
        return table_number(self.schema, self.table)

    @property
    def schema(self) -> str:
        """The database."""
        return self.definition.database

    @property
    def table(self) -> str:
        """The table's name, without the database."""
        return self.definition.name

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
        return source_schema(self.flavor)

    @property
    def source_pieces(self) -> tuple[str, ...]:
        """The parts of the source block's text that name the table."""
        return table_pieces(self.schema, self.table)

    def layout_key(self) -> Hashable | None:
        """Return a value that is equal for tables whose rows become events in the same way, except for names.

        It is None for MariaDB's sequences.
        """
        return None if self.definition.sequence else (self.definition.columns, self.definition.key)

    def codec(self, column: int, options: CommonOptions) -> Codec:
        """Return the codec of a column."""
        assert isinstance(options, BinlogOptions)
        codec = codec_for(self.columns[column], options)
        comment = self.comment(column, options)
        return replace(codec, schema={**codec.schema, "doc": comment}) if comment else codec

    def comment(self, column: int, options: CommonOptions) -> str:
        """Return a column's comment if schemas include comments, else an empty text."""
        assert isinstance(options, BinlogOptions)
        return (self.columns[column].comment or "") if options.includes_comments else ""

    def source_type(self, column: int) -> SourceType:
        """Return a column's type as JDBC reports it."""
        return source_type(self.columns[column])

    def default(self, column: int, codec: Codec) -> pa.Array | None:
        """Return a column's default as one raw value; None if it has none."""
        return default_value(self.columns[column], codec)
