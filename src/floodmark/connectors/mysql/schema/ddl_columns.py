"""Definitions of columns: their types and attributes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from floodmark.connectors.mysql.schema.charsets import charset_name, collation_name
from floodmark.connectors.mysql.schema.cursor import Cursor, words
from floodmark.connectors.mysql.schema.ddl_types import Charset, ColumnType, parse_type
from floodmark.connectors.mysql.schema.literals import default_text
from floodmark.connectors.mysql.schema.table import Column
from floodmark.connectors.mysql.schema.tokens import BITS, NUMBER, STRING, WORD

NOW = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_ATTRIBUTES = words(
    "NOT NULL DEFAULT ON AUTO_INCREMENT PRIMARY KEY UNIQUE COMMENT COLLATE COLUMN_FORMAT STORAGE CONSTRAINT CHECK "
    "REFERENCES SRID REF_SYSTEM_ID VISIBLE INVISIBLE GENERATED AS COMPRESSED WITH WITHOUT FIRST AFTER SERIAL"
)
_VALUED = words("COLUMN_FORMAT STORAGE SRID REF_SYSTEM_ID ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE COMPRESSED")

_WITHOUT_EFFECT = (("WITH", "SYSTEM", "VERSIONING"), ("WITHOUT", "SYSTEM", "VERSIONING"), ("NOT", "SECONDARY"))
_FIRST_OF_FOREIGN_COLUMNS = 90000
"""MySQL's version from which on ``REFERENCES`` at a column is more than a word."""
_ZERO_TIME = "0000-00-00 00:00:00"


@dataclass
class ColumnDefinition:
    """A column as a statement defines it.

    Attributes:
        optional: None if the statement doesn't tell.
        default_kind: ``none`` if the statement doesn't tell.
        row_time, row_end: whether it is a row's begin or end, or its end, in a table with system versioning.
        primary, unique, foreign: whether the definition makes a key of the column.
        foreign_name: that of the foreign key.
        conditional: whether the statement says IF EXISTS or IF NOT EXISTS of it.
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
        """Return the column, in a table of which ``charset`` is the default."""
        type_ = self.type
        type_.settle(charset, cursor.server, cursor.session)
        optional = self.optional if self.optional is not None else not (self.primary or self.row_time)
        default, kind, on_update = self.default, self.default_kind, self.on_update
        if self.implicitly_required(cursor):
            optional = False
        written = None
        if kind == "literal" and default is not None:
            default = self.literal()
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
        """Whether it can't be NULL, for the session's timestamps can't unless they say so."""
        if self.generated is not None and cursor.server.mariadb:
            return False
        return self.type.name == "timestamp" and not cursor.session.explicit_timestamps and self.optional is None

    def literal(self) -> str:
        """Return the literal default as the server keeps it."""
        return default_text(self.type, self.literal_kind, self.default or "")

    def set_literal(self, kind: str, value: str, written: str) -> None:
        """Take a literal as the default.

        Args:
            kind: kind of its token.
            value: what it means, with its sign.
            written: its text as it stands in the statement, without quotes.
        """
        self.default_kind, self.default, self.written, self.literal_kind = "literal", value, written, kind


def settle_timestamps(columns: Iterable[Column | ColumnDefinition], cursor: Cursor) -> None:
    """Give timestamps the defaults that sessions without ``explicit_defaults_for_timestamp`` give them.

    Args:
        columns: all those of the table, in order: the first timestamp is special. Only definitions get a default.
    """
    if cursor.session.explicit_timestamps:
        return
    first = True
    for column in columns:
        if isinstance(column, Column):
            first = first and column.type != "timestamp"
        elif column.type.name == "timestamp":
            _settle_timestamp(column, first, cursor)
            first = False


def _settle_timestamp(definition: ColumnDefinition, first: bool, cursor: Cursor) -> None:
    if definition.optional or definition.generated is not None or definition.row_time:
        return
    if definition.default_kind == "null" and cursor.server.mariadb:
        definition.default_kind = "none"
    if definition.default_kind != "none":
        return
    if first and not definition.on_update:
        digits = definition.type.scale
        now = "CURRENT_TIMESTAMP" + (f"({digits})" if digits else "")
        definition.default_kind, definition.default, definition.on_update = "expression", now, True
    else:
        definition.set_literal(STRING, _ZERO_TIME, _ZERO_TIME)


def parse_column(cursor: Cursor, conditional: bool = False) -> ColumnDefinition:
    """Return the definition of the column that comes next, with its place.

    Args:
        conditional: whether IF EXISTS or IF NOT EXISTS stands before it.
    """
    name = cursor.column_name()
    definition = ColumnDefinition(name, parse_type(cursor), conditional=conditional)
    if definition.type.serial:
        definition.optional, definition.auto_increment, definition.unique = False, True, True
    while _parse_attribute(cursor, definition):
        pass
    if cursor.accept("FIRST"):
        definition.place = ""
    elif cursor.accept("AFTER"):
        definition.place = cursor.column_name()
    return definition


def _parse_attribute(cursor: Cursor, definition: ColumnDefinition) -> bool:
    if cursor.accept("NOT", "NULL"):
        definition.optional = False
    elif cursor.accept("NULL"):
        definition.optional = True
    elif cursor.accept("DEFAULT"):
        parse_default(cursor, definition)
    elif cursor.accept("ON", "UPDATE"):
        parse_now(cursor)
        definition.on_update = True
    elif cursor.accept("AUTO_INCREMENT"):
        definition.auto_increment, definition.optional = True, False
    elif cursor.accept("SERIAL", "DEFAULT", "VALUE"):
        definition.auto_increment, definition.unique, definition.optional = True, True, False
    elif cursor.accept("PRIMARY"):
        cursor.accept("KEY")
        definition.primary = True
    elif cursor.accept("UNIQUE"):
        cursor.accept("KEY")
        definition.unique = True
    elif cursor.accept("KEY"):
        definition.primary = True
    elif cursor.accept("COMMENT"):
        definition.comment = cursor.string() or None
    elif cursor.accept("COLLATE"):
        cursor.accept("=")
        definition.type.collation = collation_name(cursor.string())
    elif cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
        definition.type.charset = charset_name(cursor.string())
    elif cursor.accept("BINARY"):
        definition.type.binary = True
    elif cursor.accept("INVISIBLE"):
        definition.invisible = True
    elif cursor.accept("VISIBLE"):
        definition.invisible = False
    else:
        return _parse_generated(cursor, definition) or _parse_rest(cursor, definition)
    return True


def _parse_generated(cursor: Cursor, definition: ColumnDefinition) -> bool:
    always = cursor.accept("GENERATED", "ALWAYS")
    if not cursor.accept("AS"):
        return False
    if cursor.accept("ROW"):
        definition.row_end = cursor.take().value == "END"
        definition.row_time, definition.generated = True, "stored"
        return True
    if not cursor.sees("("):
        cursor.fail("(" if always else "an expression")
    cursor.in_parentheses()
    stored = cursor.accept_any("STORED", "PERSISTENT")
    if not stored:
        cursor.accept("VIRTUAL")
    definition.generated = "stored" if stored else "virtual"
    return True


def _parse_rest(cursor: Cursor, definition: ColumnDefinition) -> bool:
    symbol = None
    if cursor.accept("CONSTRAINT") and not cursor.sees("CHECK") and cursor.is_name():
        symbol = cursor.name()
    if cursor.accept("CHECK"):
        cursor.in_parentheses()
        cursor.accept("NOT")
        cursor.accept("ENFORCED")
    elif cursor.sees("REFERENCES"):
        parse_references(cursor)
        definition.foreign = cursor.server.mariadb or cursor.server.version >= _FIRST_OF_FOREIGN_COLUMNS
        definition.foreign_name = symbol
    elif cursor.accept("SRID"):
        definition.srid = cursor.number()
    elif any(cursor.accept(*phrase) for phrase in _WITHOUT_EFFECT):
        pass
    elif cursor.sees_any(_VALUED):
        compressed = cursor.take().value == "COMPRESSED"
        if cursor.accept("=") or not compressed:
            cursor.take()
    elif cursor.is_name() and cursor.ahead(1).value == "=" and cursor.ahead(1).kind != STRING:
        cursor.at += 3
    else:
        return False
    return True


def parse_default(cursor: Cursor, definition: ColumnDefinition, altered: bool = False) -> None:
    """Take what stands behind DEFAULT.

    Args:
        altered: whether it is ``ALTER COLUMN``'s, where MySQL takes a literal in parentheses for the literal, too.
    """
    begin = cursor.next
    if cursor.sees("("):
        at = cursor.at
        text = cursor.in_parentheses()
        taken = (cursor.server.mariadb or altered) and _is_simple(cursor, definition, at)
        if not taken:
            _set_expression(definition, text)
        return
    if _parse_simple(cursor, definition) and _ends_here(cursor):
        return
    cursor.at = cursor.tokens.index(begin)
    _skip_expression(cursor)
    _set_expression(definition, cursor.slice(cursor.tokens.index(begin), cursor.at - 1))


def _parse_simple(cursor: Cursor, definition: ColumnDefinition) -> bool:
    """Take the current time, NULL or a literal as the default; tell whether there was one."""
    if cursor.sees_any(NOW):
        digits = parse_now(cursor)
        _set_expression(definition, "CURRENT_TIMESTAMP" + (f"({digits})" if digits else ""))
    elif cursor.accept("NULL"):
        definition.default_kind = "null"
    else:
        return _parse_literal(cursor, definition)
    return True


def _is_simple(cursor: Cursor, definition: ColumnDefinition, at: int) -> bool:
    """Take what means the same without its parentheses; the cursor stands behind them."""
    end = cursor.at
    cursor.at = at
    while cursor.accept("("):
        pass
    expression = not cursor.server.mariadb and (cursor.sees_any(NOW) or cursor.sees("-"))
    found = not expression and _parse_simple(cursor, definition)
    while found and cursor.at < end and cursor.accept(")"):
        pass
    found = found and cursor.at == end
    cursor.at = end
    return found


def _set_expression(definition: ColumnDefinition, text: str) -> None:
    definition.default_kind, definition.default, definition.written = "expression", text, None


def _parse_literal(cursor: Cursor, definition: ColumnDefinition) -> bool:
    sign = cursor.accept_any("-", "+") or ""
    token = cursor.next
    if token.kind == WORD and (
        (token.text.startswith("_") and cursor.ahead(1).kind in (STRING, BITS))
        or (token.value in ("DATE", "TIME", "TIMESTAMP") and cursor.ahead(1).kind == STRING)
    ):
        cursor.at += 1
        token = cursor.next
    if token.kind == STRING:
        texts = []
        while cursor.next.kind == STRING:
            texts.append(cursor.take())
        value = "".join(text.value for text in texts)
        definition.set_literal(STRING, value, "''".join(text.text.lstrip("nN")[1:-1] for text in texts))
    elif token.kind == NUMBER:
        cursor.at += 1
        number = token.value
        definition.set_literal(NUMBER, number if sign != "-" else f"-{number}", sign + number)
    elif token.kind == BITS:
        cursor.at += 1
        digits = token.text[2:].strip("'")
        definition.set_literal(BITS, token.value, digits)
    elif token.kind == WORD and token.value in ("TRUE", "FALSE"):
        cursor.at += 1
        definition.set_literal(NUMBER, "1" if token.value == "TRUE" else "0", token.text)
    else:
        return False
    return True


def _ends_here(cursor: Cursor) -> bool:
    """Tell whether a default ends with its literal, rather than being MariaDB's expression without parentheses."""
    return cursor.next.kind == WORD or cursor.sees(",") or cursor.sees(")") or cursor.at_end()


def _skip_expression(cursor: Cursor) -> None:
    begin = cursor.at
    while not (cursor.sees(",") or cursor.sees(")") or cursor.at_end()):
        if cursor.at > begin and cursor.sees_any(_ATTRIBUTES):
            break
        if cursor.sees("("):
            cursor.in_parentheses()
        else:
            cursor.at += 1
    if cursor.at == begin:
        cursor.fail("a default")


def parse_now(cursor: Cursor) -> int:
    """Go behind the current time and return its fraction digits."""
    if not cursor.sees_any(NOW):
        cursor.fail("CURRENT_TIMESTAMP")
    cursor.at += 1
    digits = 0
    if cursor.accept("("):
        if not cursor.sees(")"):
            digits = cursor.number()
        cursor.expect(")")
    return digits


def parse_references(cursor: Cursor) -> None:
    """Go behind the clause of a foreign key that tells what it refers to."""
    cursor.expect("REFERENCES")
    cursor.table_name()
    if cursor.sees("("):
        cursor.in_parentheses()
    while True:
        if cursor.accept("MATCH"):
            cursor.take()
        elif cursor.accept("ON", "DELETE") or (cursor.sees("ON", "UPDATE") and not _is_now(cursor)):
            cursor.accept("ON", "UPDATE")
            cursor.accept_any("SET", "NO")
            cursor.take()
        else:
            return


def _is_now(cursor: Cursor) -> bool:
    return cursor.ahead(2).value in NOW
