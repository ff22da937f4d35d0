"""Parses DEFAULT clauses."""

from __future__ import annotations

from floodmark.connectors.mysql.ddl.cursor import Cursor, words
from floodmark.connectors.mysql.ddl.definition import ColumnDefinition
from floodmark.connectors.mysql.ddl.tokens import BITS, NUMBER, STRING, WORD
from floodmark.connectors.mysql.structures.charsets import charset_name, decoded

NOW = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_ATTRIBUTES = words(
    "NOT NULL DEFAULT ON AUTO_INCREMENT PRIMARY KEY UNIQUE COMMENT COLLATE COLUMN_FORMAT STORAGE CONSTRAINT CHECK "
    "REFERENCES SRID REF_SYSTEM_ID VISIBLE INVISIBLE GENERATED AS COMPRESSED WITH WITHOUT FIRST AFTER SERIAL"
)


def parse_default(cursor: Cursor, definition: ColumnDefinition, altered: bool = False) -> None:
    """Parse what follows DEFAULT.

    Args:
        altered: whether it belongs to ``ALTER COLUMN``, where MySQL, too, takes a literal in parentheses for a literal.
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
    """Parse the current time, NULL or a literal as the default; return whether there was one."""
    if cursor.sees_any(NOW):
        digits = parse_now(cursor)
        _set_expression(definition, "CURRENT_TIMESTAMP" + (f"({digits})" if digits else ""))
    elif cursor.accept("NULL"):
        definition.default_kind = "null"
    else:
        return _parse_literal(cursor, definition)
    return True


def _is_simple(cursor: Cursor, definition: ColumnDefinition, at: int) -> bool:
    """Parse a default from token ``at`` on that means the same without its parentheses; return whether it does.

    The cursor is after the parentheses, before and afterwards.
    """
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
    token, charset = cursor.next, ""
    if token.kind == WORD and (
        (token.text.startswith("_") and cursor.ahead(1).kind in (STRING, BITS))
        or (token.value in ("DATE", "TIME", "TIMESTAMP") and cursor.ahead(1).kind == STRING)
    ):
        charset = charset_name(token.value.removeprefix("_"), cursor.session.utf8)
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
        if charset in ("", "binary"):
            definition.set_literal(BITS, token.value, digits)
        else:
            definition.set_literal(STRING, decoded(bytes.fromhex(token.value), charset), digits)
    elif token.kind == WORD and token.value in ("TRUE", "FALSE"):
        cursor.at += 1
        definition.set_literal(NUMBER, "1" if token.value == "TRUE" else "0", token.text)
    else:
        return False
    return True


def _ends_here(cursor: Cursor) -> bool:
    """Return whether a default ends with its literal; else it is MariaDB's expression without parentheses."""
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
    """Consume the current time and return its digits of a second's fraction."""
    if not cursor.sees_any(NOW):
        cursor.fail("CURRENT_TIMESTAMP")
    cursor.at += 1
    digits = 0
    if cursor.accept("("):
        if not cursor.sees(")"):
            digits = cursor.number()
        cursor.expect(")")
    return digits
