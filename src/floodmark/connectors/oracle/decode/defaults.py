"""Converts columns' defaults from the text of an expression to the value that schemas show.

Expressions aren't evaluated: only literals count, and calls whose result a literal determines. As in Debezium, a time
that can't be NULL has the epoch as its default where the expression is another one, such as the current time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from floodmark.codecs.codec import Codec
from floodmark.connectors.oracle.ddl.tokens import NUMBER, STRING, WORD, Token, scan
from floodmark.connectors.oracle.structures.table import Column
from floodmark.connectors.oracle.values import texts
from floodmark.errors import DdlError, DecodeError

_EPOCH, _UTC = "1970-01-01 00:00:00", " +00:00"
_FLOATS = {"BINARY_FLOAT": pa.float32(), "BINARY_DOUBLE": pa.float64()}
_TEXTS = {"VARCHAR2", "NVARCHAR2", "CLOB", "NCLOB"}
_PADDED = {"CHAR", "NCHAR"}
# Oracle Database SQL Language Reference: "Datetime Format Models"; the parts that have one meaning in every language.
_PARTS = {
    "YYYY": r"(?P<year>\d{4})",
    "MM": r"(?P<month>\d\d)",
    "DD": r"(?P<day>\d\d)",
    "HH24": r"(?P<hour>\d\d)",
    "MI": r"(?P<minute>\d\d)",
    "SS": r"(?P<second>\d\d)",
    "TZH": r"(?P<zone>[+-]\d\d)",
    "TZM": r"(?P<zone_minute>\d\d)",
}
_OPTIONAL_CLOCK = r"(?: (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9})?)?)?"
_ISO_TIME = re.compile(
    rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d){_OPTIONAL_CLOCK}(?: ?(?P<zone>[+-]\d\d):(?P<zone_minute>\d\d))?"
)
_FORMAT = re.compile(r"YYYY|MM|DD|HH24|MI|SS|X?FF[1-9]?|TZH|TZM|.", re.DOTALL)
_TO_TIME = {"TO_DATE", "TO_TIMESTAMP", "TO_TIMESTAMP_TZ"}


def default_value(column: Column, codec: Codec) -> pa.Array | None:
    """Return the default that schemas show, as one raw value; None if there is none.

    Args:
        column: with its default.
        codec: the column's.
    """
    if column.default is None or codec.schema["type"] == "struct":
        return None
    try:
        tokens = _unwrapped([*scan(column.default)])
    except DdlError:
        return None
    if not tokens or [one.value for one in tokens] == ["NULL"]:
        return None
    kind = column.type
    if kind in _FLOATS:
        number = _number(tokens)
        return None if number is None else pa.array([float(number)], pa.float64()).cast(_FLOATS[kind])
    if kind == "BLOB":
        raw = _bytes(tokens)
        return None if raw is None else pa.array([raw], pa.binary())
    text = _text(tokens, column)
    return None if text is None else pa.array([text], pa.string())


def _text(tokens: Sequence[Token], column: Column) -> str | None:
    kind = column.type
    if kind in ("NUMBER", "FLOAT"):
        return _number_text(tokens, column.scale)
    if kind in _TEXTS:
        return "" if _values(tokens) == ["EMPTY_CLOB", "(", ")"] else _literal(tokens)
    if kind in _PADDED:
        literal = _literal(tokens)
        return None if literal is None else literal.ljust(column.length or 1)
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return _time(tokens, column)
    if kind == "INTERVAL YEAR TO MONTH":
        return _interval(tokens, "TO_YMINTERVAL", texts.month_intervals)
    if kind == "INTERVAL DAY TO SECOND":
        return _interval(tokens, "TO_DSINTERVAL", texts.day_intervals)
    return None


def _unwrapped(tokens: list[Token]) -> list[Token]:
    """Return an expression without parentheses around the whole of it."""
    while len(tokens) > 1 and tokens[0].text == "(" and _closing(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def _closing(tokens: Sequence[Token]) -> int:
    """Return the number of the token that closes the first parenthesis; -1 if none does."""
    depth = 0
    for number, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if not depth:
            return number
    return -1


def _values(tokens: Sequence[Token]) -> list[str]:
    return [one.value for one in tokens]


def _literal(tokens: Sequence[Token]) -> str | None:
    """Return the content of a text; None if it is empty, which is NULL to Oracle, or something else."""
    return tokens[0].value or None if len(tokens) == 1 and tokens[0].kind == STRING else None


def _call(tokens: Sequence[Token], names: set[str]) -> list[str] | None:
    """Return the arguments of a call of one of these functions, if all are texts."""
    arguments = tokens[2:-1:2]
    if len(tokens) < 4 or tokens[0].kind != WORD or tokens[0].value not in names or tokens[-1].text != ")":
        return None
    signs = _values(tokens[1:-1:2])
    if signs != ["(", *[","] * (len(arguments) - 1)] or any(one.kind != STRING for one in arguments):
        return None
    return _values(arguments)


def _number(tokens: Sequence[Token]) -> Decimal | None:
    sign, digits = ("", tokens[0]) if len(tokens) == 1 else (tokens[0].text, tokens[1])
    if len(tokens) > 2 or sign not in ("", "+", "-") or digits.kind != NUMBER:
        return None
    try:
        return Decimal(sign + digits.value.rstrip("fFdD"))
    except InvalidOperation:
        return None


def _number_text(tokens: Sequence[Token], scale: int | None) -> str | None:
    number = _number(tokens)
    if number is None:
        return None
    shown = f"{number:f}"
    whole, _, fraction = shown.partition(".")
    fraction = fraction.rstrip("0")
    if scale is None:
        return f"{whole}.{fraction}" if fraction else whole
    if len(fraction) > max(scale, 0):
        return None
    return f"{whole}.{fraction.ljust(scale, '0')}" if scale > 0 else whole


def _bytes(tokens: Sequence[Token]) -> bytes | None:
    if _values(tokens) == ["EMPTY_BLOB", "(", ")"]:
        return b""
    digits = _call(tokens, {"HEXTORAW"})
    if digits is None or len(digits) != 1:
        return None
    try:
        return bytes.fromhex(digits[0])
    except ValueError:
        return None


def _interval(
    tokens: Sequence[Token], function: str, convert: Callable[[pa.StringArray], pa.StringArray]
) -> str | None:
    literal = _literal(tokens) or next(iter(_call(tokens, {function}) or []), None)
    if literal is None:
        return None
    try:
        return str(convert(pa.array([literal], pa.string()))[0].as_py())
    except DecodeError:
        return None


def _time(tokens: Sequence[Token], column: Column) -> str | None:
    found = _known_time(tokens)
    zoned = column.type.endswith("ZONE")
    if found is None:
        return None if column.optional else _EPOCH + (_UTC if zoned else "")
    time, zone = found
    if not zoned:
        return time
    if zone is None:
        # It would be in the zone of the session that inserts a row.
        return None if column.optional else _EPOCH + _UTC
    return f"{time} {zone}"


def _known_time(tokens: Sequence[Token]) -> tuple[str, str | None] | None:
    """Return a time and its zone's offset, if the expression determines a time."""
    values = _values(tokens)
    if len(tokens) == 2 and values[0] in ("DATE", "TIMESTAMP") and tokens[1].kind == STRING:
        return _matched(_ISO_TIME, values[1].strip())
    arguments = _call(tokens, _TO_TIME)
    if arguments is None or len(arguments) > 2:
        return None
    if len(arguments) == 1:
        return _matched(_ISO_TIME, arguments[0].strip())
    pattern = _pattern(arguments[1].upper())
    return None if pattern is None else _matched(pattern, arguments[0].strip())


def _pattern(model: str) -> re.Pattern[str] | None:
    """Return what matches times in a format; None if it has parts that aren't known, or one twice."""
    parts = _FORMAT.findall(model)
    known = [one for one in parts if len(one) > 1 or one.isalpha()]
    if any(one not in _PARTS and "FF" not in one for one in known) or len(set(known)) < len(known):
        return None
    if not {"YYYY", "MM", "DD"} <= set(known):
        # The rest would be taken from the current date.
        return None
    return re.compile("".join(_part(one) for one in parts))


def _part(part: str) -> str:
    if "FF" in part:
        return (r"\." if part.startswith("X") else "") + r"(?P<fraction>\d{1,9})"
    return _PARTS.get(part) or re.escape(part)


def _matched(pattern: re.Pattern[str], text: str) -> tuple[str, str | None] | None:
    found = pattern.fullmatch(text)
    if found is None:
        return None
    parts = found.groupdict()
    clock = ":".join(parts.get(name) or "00" for name in ("hour", "minute", "second"))
    fraction = parts.get("fraction")
    zone = parts.get("zone")
    shown = f"{parts['year']}-{parts['month']}-{parts['day']} {clock}{f'.{fraction}' if fraction else ''}"
    return shown, None if zone is None else f"{zone}:{parts.get('zone_minute') or '00'}"
