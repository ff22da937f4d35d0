"""The kinds of values that statements have, and how their calls begin."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """What the content of a value is."""

    NONE = 0
    """There is none: the value is null, can't be shown, or isn't in the statement."""
    TEXT = 1
    DATE = 2
    TIMESTAMP = 3
    ZONED_TIMESTAMP = 4
    DAY_INTERVAL = 5
    MONTH_INTERVAL = 6
    HEX = 7
    EMPTY_CLOB = 8
    EMPTY_BLOB = 9
    OTHER = 10
    """An expression as it stands in the statement, such as a number."""


CALLS = {
    b"TO_DATE('": Kind.DATE,
    b"TO_TIMESTAMP('": Kind.TIMESTAMP,
    b"TO_TIMESTAMP_TZ('": Kind.ZONED_TIMESTAMP,
    b"TO_DSINTERVAL('": Kind.DAY_INTERVAL,
    b"TO_YMINTERVAL('": Kind.MONTH_INTERVAL,
    b"HEXTORAW('": Kind.HEX,
    b"UNISTR('": Kind.TEXT,
    b"EMPTY_CLOB()": Kind.EMPTY_CLOB,
    b"EMPTY_BLOB()": Kind.EMPTY_BLOB,
}
"""By how they begin, calls of which the first literal is the content, and others as a whole."""
NEXT_NATIONAL_TEXT = b"') || UNISTR('"
"""What is between the literals of a text that ``UNISTR`` has in several calls; its content is all of them."""
