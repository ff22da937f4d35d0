"""Describes a notebook's tables to the code that makes events from their rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from floodmark.changes.structure import SourceType
from floodmark.codecs import text_codecs
from floodmark.codecs.codec import Codec, Settings
from floodmark.config.common import CommonOptions
from floodmark.events.json_text import dumps
from tests.toy.notebook.database.notebook import SCHEMA, Column, Table
from tests.toy.notebook.decode.source_block import SOURCE_SCHEMA


@dataclass(frozen=True)
class TableStructure:
    """A ``Structure``: a table as events describe it. Raw values are texts, as in the log."""

    definition: Table

    @property
    def number(self) -> int:
        """The number that identifies the table."""
        return self.definition.number

    @property
    def schema(self) -> str:
        """The schema of all tables."""
        return SCHEMA

    @property
    def table(self) -> str:
        """The table's name."""
        return self.definition.name

    @property
    def columns(self) -> Sequence[Column]:
        """The columns in the order of rows."""
        return self.definition.columns

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the key's columns."""
        return self.definition.key

    @property
    def source_schema(self) -> Mapping[str, Any]:
        """The Connect schema of the source block."""
        return SOURCE_SCHEMA

    @property
    def source_pieces(self) -> tuple[str, ...]:
        """The part of the source block's text that names the table."""
        return (dumps(self.table),)

    def layout_key(self) -> Hashable | None:
        """Return a value that is equal for tables with the same layout."""
        return self.columns, self.key

    def codec(self, column: int, options: CommonOptions) -> Codec:
        """Return the codec of a column."""
        settings = Settings(
            options.decimal_handling_mode,
            options.time_precision_mode,
            options.binary_handling_mode,
            options.unavailable_value_placeholder,
        )
        if self.columns[column].type == "integer":
            return text_codecs.integer("int64", pa.int64(), settings)
        return text_codecs.text(settings)

    def source_type(self, column: int) -> SourceType:
        """Return a column's type as JDBC describes it."""
        kind = self.columns[column].type
        return SourceType(kind, -1, -1, kind == "text")

    def comment(self, column: int, options: CommonOptions) -> str:
        """Return no comment: columns have none."""
        del column, options
        return ""

    def default(self, column: int, codec: Codec) -> pa.Array | None:
        """Return None: columns have no defaults."""
        del column, codec
        return None
