"""A column as a statement defines it, and the column that results from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from floodmark.connectors.mysql.ddl.column_types import Charset, ColumnType
from floodmark.connectors.mysql.ddl.cursor import Cursor
from floodmark.connectors.mysql.ddl.literals import default_text
from floodmark.connectors.mysql.ddl.temporal_literals import Clock
from floodmark.connectors.mysql.ddl.tokens import STRING
from floodmark.connectors.mysql.structures.table import Column

_ZERO_TIME = "0000-00-00 00:00:00"


@dataclass
class ColumnDefinition:
    """A column as a statement defines it.

    Attributes:
        optional: None if the statement doesn't declare it.
        default_kind: ``none`` if the statement declares no default.
        row_time, row_end: whether it holds a row's begin or end, or its end, in a table with system versioning.
        primary, unique, foreign: whether the definition makes the column such a key.
        foreign_name: name of the foreign key.
        conditional: whether IF EXISTS or IF NOT EXISTS applies to it.
        place: ``""`` for FIRST, the name of the column that it comes after, or None.
    """

    name: str
    type: ColumnType
    optional: bool | None = None
    default: str | None = None
    default_kind: str = "none"
    written: str | None = None
    auto_increment: bool = False
    on_update: bool = False
    generated: str | None = None
    row_time: bool = False
    row_end: bool = False
    invisible: bool = False
    comment: str | None = None
    srid: int | None = None
    primary: bool = False
    unique: bool = False
    foreign: bool = False
    foreign_name: str | None = None
    place: str | None = None
    conditional: bool = False
    literal_kind: str = STRING

    def column(self, charset: Charset, cursor: Cursor) -> Column:
        """Return the column in a table whose default character set is ``charset``."""
        type_ = self.type
        type_.settle(charset, cursor.server, cursor.session)
        optional = self.optional if self.optional is not None else not (self.primary or self.row_time)
        default, kind, on_update = self.default, self.default_kind, self.on_update
        if self.implicitly_required(cursor):
            optional = False
        written = None
        if kind == "literal" and type_.without_literal and not cursor.server.mariadb:
            # MySQL accepts only '' here, and drops it with a warning.
            default, kind = None, "none"
        if kind == "literal" and default is not None:
            default = self.literal(cursor.clock)
            written = self.written if self.written != default else None
        if kind == "null":
            default = None
        if kind == "none" and optional and self.generated is None and not self.auto_increment:
            kind = "null"
        if kind == "null" and not optional:
            kind = "none"
        return Column(
            name=self.name,
            type=type_.name,
            length=type_.length,
            scale=type_.scale,
            unsigned=type_.unsigned,
            zerofill=type_.zerofill,
            charset=type_.charset,
            collation=type_.collation,
            optional=optional,
            default=default,
            default_kind=kind,
            auto_increment=self.auto_increment,
            generated=self.generated,
            invisible=self.invisible,
            comment=self.comment,
            values=type_.values,
            srid=self.srid,
            on_update=on_update,
            declared=type_.declared if type_.declared != type_.name.upper() else None,
            written=written,
        )

    def implicitly_required(self, cursor: Cursor) -> bool:
        """Return whether it is NOT NULL because the session makes timestamps so unless they are declared NULL."""
        if self.generated is not None and cursor.server.mariadb:
            return False
        return self.type.name == "timestamp" and not cursor.session.explicit_timestamps and self.optional is None

    def literal(self, clock: Clock) -> str:
        """Return the literal default in the form that the server stores."""
        return default_text(self.type, self.literal_kind, self.default or "", clock)

    def set_literal(self, kind: str, value: str, written: str) -> None:
        """Set a literal as the default.

        Args:
            kind: kind of its token.
            value: its value, with its sign.
            written: its text as it is written in the statement, without quotes.
        """
        self.default_kind, self.default, self.written, self.literal_kind = "literal", value, written, kind


def settle_timestamps(columns: Iterable[Column | ColumnDefinition], cursor: Cursor) -> list[Column | ColumnDefinition]:
    """Return columns with the defaults that the server gives to times by itself.

    It gives more of them in sessions without ``explicit_defaults_for_timestamp``.

    Args:
        columns: all those of the table, in order: the first timestamp is special.
    """
    settled: list[Column | ColumnDefinition] = []
    first = not cursor.session.explicit_timestamps
    for column in columns:
        type_ = column.type.name if isinstance(column, ColumnDefinition) else column.type
        if type_ == "timestamp":
            if isinstance(column, ColumnDefinition):
                _settle_definition(column, first, cursor)
            elif first:
                column = _promoted(column, cursor)
            first = False
        elif type_ == "datetime" and isinstance(column, ColumnDefinition) and cursor.server.mariadb:
            _settle_updated(column)
        settled.append(column)
    return settled


def _settle_definition(definition: ColumnDefinition, first: bool, cursor: Cursor) -> None:
    implicit, mariadb = not cursor.session.explicit_timestamps, cursor.server.mariadb
    if definition.optional or definition.generated is not None or definition.row_time:
        return
    if implicit and mariadb and definition.default_kind == "null":
        definition.default_kind = "none"
    if definition.default_kind != "none":
        return
    if first and not definition.on_update:
        definition.default_kind, definition.default = "expression", now(definition.type.scale)
        definition.on_update = True
    elif implicit:
        definition.set_literal(STRING, _ZERO_TIME, _ZERO_TIME)
    elif mariadb:
        _settle_updated(definition)


def _settle_updated(definition: ColumnDefinition) -> None:
    """Give a zero default to MariaDB's times that are NOT NULL and have ON UPDATE but no default."""
    if definition.on_update and definition.optional is False and definition.default_kind == "none":
        definition.set_literal(STRING, _ZERO_TIME, _ZERO_TIME)


def _promoted(column: Column, cursor: Cursor) -> Column:
    """Return the first timestamp of an altered table: without a default, it gets ON UPDATE CURRENT_TIMESTAMP."""
    if column.optional or column.generated is not None or column.on_update or column.default_kind != "none":
        return column
    if not cursor.server.mariadb:
        # MySQL gives it no default.
        return replace(column, on_update=True)
    return replace(column, default_kind="expression", default=now(column.scale), on_update=True)


def now(digits: int | None) -> str:
    """Return the default CURRENT_TIMESTAMP with these digits of a second's fraction."""
    return "CURRENT_TIMESTAMP" + (f"({digits})" if digits else "")


def zero_time(digits: int | None) -> str:
    """Return MariaDB's default of a NOT NULL time with ON UPDATE, with these digits of a second's fraction."""
    return default_text(ColumnType("datetime", "", scale=digits), STRING, _ZERO_TIME)
