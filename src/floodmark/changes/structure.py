"""The protocols by which a connector describes tables to the code that makes their events."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from floodmark.codecs.codec import Codec
from floodmark.config.common import CommonOptions
from floodmark.events.connect_schema import ConnectSchema


@dataclass(frozen=True)
class SourceType:
    """A column's type as JDBC describes it; Debezium writes it into schemas and cuts hashes to the length.

    Attributes:
        name: of the type.
        length: in characters or digits; negative if it is unknown.
        scale: digits after the point; negative if it is unknown, or if ``rounded``.
        text: whether it is text for JDBC; only text is masked.
        rounded: whether a negative scale says how many digits before the point are always 0.
    """

    name: str
    length: int
    scale: int
    text: bool
    rounded: bool = False


class ColumnNames(Protocol):
    """A column: its name, and whether it may be null."""

    @property
    def name(self) -> str:
        """Its name in the database."""

    @property
    def optional(self) -> bool:
        """Whether it may be NULL."""


class Structure(Protocol):
    """One version of a table."""

    @property
    def number(self) -> int:
        """The number that identifies the table."""

    @property
    def schema(self) -> str:
        """The schema or database that its name begins with."""

    @property
    def table(self) -> str:
        """The table's own name."""

    @property
    def columns(self) -> Sequence[ColumnNames]:
        """The columns in the order of rows."""

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the columns that make an event's key; empty if there is none."""

    @property
    def source_schema(self) -> ConnectSchema:
        """The Connect schema of the source block."""

    @property
    def source_pieces(self) -> tuple[str, ...]:
        """The parts of the source block's text that name the table."""

    def layout_key(self) -> Hashable | None:
        """Return a value that is equal for tables with the same layout, whatever their names are.

        None for something that is not a table, though the log has rows of it.
        """

    def codec(self, column: int, options: CommonOptions) -> Codec:
        """Return the codec of a column."""

    def source_type(self, column: int) -> SourceType:
        """Return a column's type as JDBC describes it."""

    def comment(self, column: int, options: CommonOptions) -> str:
        """Return a column's comment if schemas include it, else an empty text."""

    def default(self, column: int, codec: Codec) -> pa.Array | None:
        """Return a column's default as one raw value; None if it has none.

        Args:
            column: its index.
            codec: the column's codec.
        """
