"""Tables and columns, as Oracle's dictionary describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PRECISIONS = re.compile(r"\(\d+\)")
_LONGEST = {"VARCHAR2": 4000, "NVARCHAR2": 2000}
"""Characters of the longest columns whose values are always in their rows."""
CHARACTERS = frozenset(
    ("CHAR", "VARCHAR2", "NCHAR", "NVARCHAR2", "CLOB", "NCLOB", "LONG", "XMLTYPE", "ROWID", "UROWID")
)
"""Types whose values are texts."""
UNLIMITED_DIGITS = 38
"""The precision of a NUMBER that has a scale but no precision of its own."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: exactly as the dictionary has it.
        type: ``DATA_TYPE`` without precisions, such as ``TIMESTAMP WITH TIME ZONE``.
        optional: whether it may be NULL.
        length: characters or bytes of texts and RAW, digits of NUMBER and FLOAT, and of an interval's years or days;
            None: not given.
        scale: digits after the decimal point of a NUMBER, or of a second's fraction; None: not given.
        default: the expression of its default, as a statement or the dictionary has it; None: it has none.
        comment: its comment; None: it has none.
        stated: whether its type is known by a statement, rather than by the dictionary; Debezium describes it in
            other words then.
        identity: whether the dictionary says that Oracle numbers its values; it isn't taken from statements, as in
            Debezium.
    """

    name: str
    type: str
    optional: bool = True
    length: int | None = None
    scale: int | None = None
    default: str | None = None
    comment: str | None = None
    stated: bool = False
    identity: bool = False

    @property
    def is_large(self) -> bool:
        """Whether LogMiner shows its values apart from the row, and never the old one."""
        return self.type in {"CLOB", "NCLOB", "BLOB", "XMLTYPE"}

    @property
    def is_long_text(self) -> bool:
        """Whether it may have texts that LogMiner shows apart from the row (``MAX_STRING_SIZE=EXTENDED``)."""
        longest = _LONGEST.get(self.type)
        return longest is not None and self.length is not None and self.length > longest

    @property
    def comes_apart(self) -> bool:
        """Whether LogMiner may show its values apart from the row."""
        return self.is_large or self.is_long_text

    @property
    def is_national(self) -> bool:
        """Whether its text is in the national character set."""
        return self.type in {"NCHAR", "NVARCHAR2", "NCLOB"}


@dataclass(frozen=True)
class Table:
    """A table's structure.

    Attributes:
        database: the pluggable database, or the database that has none.
        owner: its schema.
        name: its name.
        columns: in their order.
        key: names of the columns that make an event's key; empty if there is none.
        key_name: the name of the constraint that makes the key; None: it isn't known.
        virtual: names of columns that are computed, which the log doesn't have and ``columns`` leaves out.
        comment: its comment; None: it has none.
        is_exact: whether the columns have the places that they had when it was so, rather than when the dictionary was
            read: only then can they be known by their numbers.
    """

    database: str
    owner: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    key_name: str | None = None
    virtual: tuple[str, ...] = ()
    comment: str | None = None
    is_exact: bool = True

    @property
    def is_numbered(self) -> bool:
        """Whether columns can be known by their numbers; computed ones have some, too."""
        return self.is_exact and not self.virtual


def column_of(
    name: str,
    data_type: str,
    nullable: str,
    char_length: int,
    data_length: int,
    precision: int | None,
    scale: int | None,
    default: str | None = None,
    comment: str | None = None,
    identity: str = "NO",
) -> Column:
    """Return a column by its row of ``ALL_TAB_COLUMNS``.

    Args:
        name: ``COLUMN_NAME``.
        data_type: ``DATA_TYPE``.
        nullable: ``NULLABLE``.
        char_length: ``CHAR_LENGTH``.
        data_length: ``DATA_LENGTH``.
        precision: ``DATA_PRECISION``.
        scale: ``DATA_SCALE``.
        default: ``DATA_DEFAULT``.
        comment: ``COMMENTS`` of ``ALL_COL_COMMENTS``.
        identity: ``IDENTITY_COLUMN``.
    """
    kind = _PRECISIONS.sub("", data_type)
    length: int | None = None
    if kind == "NUMBER":
        length = UNLIMITED_DIGITS if precision is None and scale is not None else precision
    elif kind == "FLOAT":
        length, scale = precision, None
    elif kind.startswith("INTERVAL"):
        length = precision
    elif kind == "RAW":
        length = data_length
    elif char_length:
        length = char_length
    return Column(
        name, kind, nullable == "Y", length, scale, default or None, comment or None, identity=identity == "YES"
    )
