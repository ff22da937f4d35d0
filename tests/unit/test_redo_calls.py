from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.oracle.redo.calls import contents
from floodmark.connectors.oracle.redo.kinds import Kind
from floodmark.connectors.oracle.redo.national_text import decoded
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.errors import DecodeError

TEXT = st.text(st.sampled_from("aé漢🐘\\'\0 \U0010ffff"), max_size=8)


def found_in(*values: str) -> list[tuple[str, str | None]]:
    """Return kind and content of values of a column, each in a statement of its own."""
    statements = [f'insert into "T"("A","B") values ({value},\'1\');' for value in values]
    read = StatementReader(["A", "B"]).read(pa.array(statements, pa.string()))
    assert read.problems == {}
    found = contents(read, Side.NEW, 0)
    return [(Kind(kind).name, text) for kind, text in zip(found.kinds, found.texts.to_pylist(), strict=True)]


def national(text: str, pairs: bool = True) -> str:
    """Return the argument of UNISTR that means a text."""
    result = ""
    for char in text:
        if char == "\\" and pairs:
            result += "\\\\"
        elif char.isascii() and char != "\\":
            result += char
        else:
            units = char.encode("utf-16-be").hex().upper()
            result += "".join(f"\\{units[at : at + 4]}" for at in range(0, len(units), 4))
    return result


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def test_each_kind() -> None:
    expected = {
        "NULL": ("NONE", None),
        "Unsupported Type": ("NONE", None),
        "'it''s TO_DATE(''x'')'": ("TEXT", "it's TO_DATE('x')"),
        "''": ("TEXT", ""),
        "TO_DATE('2026-01-02 03:04:05', 'YYYY-MM-DD HH24:MI:SS')": ("DATE", "2026-01-02 03:04:05"),
        "TO_TIMESTAMP('2026-01-02 03:04:05.')": ("TIMESTAMP", "2026-01-02 03:04:05."),
        "TO_TIMESTAMP_TZ('2026-01-02 03:04:05.1 +05:30')": ("ZONED_TIMESTAMP", "2026-01-02 03:04:05.1 +05:30"),
        "TO_DSINTERVAL('+01 02:03:04.500000')": ("DAY_INTERVAL", "+01 02:03:04.500000"),
        "TO_YMINTERVAL('+01-02')": ("MONTH_INTERVAL", "+01-02"),
        "HEXTORAW('00ff')": ("HEX", "00ff"),
        "HEXTORAW('')": ("HEX", ""),
        "EMPTY_CLOB()": ("EMPTY_CLOB", "EMPTY_CLOB()"),
        "EMPTY_BLOB()": ("EMPTY_BLOB", "EMPTY_BLOB()"),
        "-1.5E+003": ("OTHER", "-1.5E+003"),
        "SYS.XMLTYPE('<a/>')": ("OTHER", "SYS.XMLTYPE('<a/>')"),
        "UNISTR('\\0412''\\\\')": ("TEXT", "В'\\"),
        "UNISTR('\\D83D') || 'x'": ("OTHER", "UNISTR('\\D83D') || 'x'"),
        "UNISTR('a\\D83D') || UNISTR('\\DC18')": ("TEXT", "a🐘"),
        "UNISTR('a') || UNISTR('') || UNISTR('''\\0062')": ("TEXT", "a'b"),
    }
    assert found_in(*expected) == list(expected.values())
    for value, one in expected.items():
        assert found_in(value, value) == [one, one]


def test_an_expression_with_an_odd_number_of_quotes() -> None:
    """A quote between double quotes begins no literal; other values are found beside it."""
    assert found_in('f("it\'s")', "HEXTORAW('00')") == [("OTHER", 'f("it\'s")'), ("HEX", "00")]
    assert found_in('f("it\'s")') == [("OTHER", 'f("it\'s")')]


@given(st.lists(st.lists(TEXT, max_size=3), min_size=1, max_size=6), st.booleans())
def test_national_text(texts: list[list[str]], pairs: bool) -> None:
    values = [" || ".join(f"UNISTR({quoted(national(one, pairs))})" for one in some or [""]) for some in texts]
    assert found_in(*values) == [("TEXT", "".join(some)) for some in texts]


@given(st.lists(TEXT, min_size=1, max_size=6), st.integers(0, 5))
def test_a_slice_of_texts(texts: list[str], first: int) -> None:
    given_texts = pa.array([national(text) for text in texts], pa.string()).slice(first)
    assert decoded(given_texts).to_pylist() == texts[first:]


@pytest.mark.parametrize("text", ["\\", "\\00", "\\00e", "\\00g0", "a\\ 0041", "\\\\\\"])
def test_a_backslash_without_digits(text: str) -> None:
    with pytest.raises(DecodeError, match="a backslash without four hexadecimal digits"):
        decoded(pa.array(["0041", text, "0041"], pa.string()))


@pytest.mark.parametrize("text", ["\\D83D", "\\DC18", "\\D83Dx\\DC18", "\\DC18\\D83D"])
def test_half_of_a_character(text: str) -> None:
    with pytest.raises(DecodeError, match="half of a character"):
        decoded(pa.array(["\\0041", text, "\\DC18"], pa.string()))
