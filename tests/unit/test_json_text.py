from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.events.json_text import closed, dumps, escape, string

ANY = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from('"\\\x00\x1f\x20\x7f\ud7ff\ue000\uffff😀')))
MIXED = st.lists(st.none() | ANY)
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def reference(text: str) -> str:
    """Escape as Jackson does, character by character."""
    out = []
    for char in text:
        code = ord(char)
        if char in SHORT:
            out.append(SHORT[char])
        elif code < 0x20:
            out.append(f"\\u{code:04X}")
        elif code > 0xFFFF:
            code -= 0x10000
            out.append(f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}")
        else:
            out.append(char)
    return "".join(out)


@given(MIXED)
def test_escape_equals_the_reference(values: list[str | None]) -> None:
    got = escape(pa.array(values, pa.string())).to_pylist()
    assert got == [None if value is None else reference(value) for value in values]
    assert [None if text is None else json.loads(f'"{text}"') for text in got] == values


@given(MIXED, st.integers(0, 5), st.integers(0, 5))
def test_slices_and_takes(values: list[str | None], start: int, length: int) -> None:
    array = pa.array(values, pa.string())
    part = values[start : start + length]
    want = [None if value is None else reference(value) for value in part]
    assert escape(array.slice(start, length)).to_pylist() == want
    taken = array.take(pa.array(range(len(values))[::-1], pa.int64()))
    assert escape(taken).to_pylist() == [None if value is None else reference(value) for value in values[::-1]]


def test_bytes_below_a_null_do_not_make_it_a_value() -> None:
    raw = pa.array(["a😀", "b😀", "c"], pa.string()).buffers()
    array = pa.StringArray.from_buffers(3, raw[1], raw[2], pa.py_buffer(b"\x05"))
    assert escape(array).to_pylist() == ["a\\uD83D\\uDE00", None, "c"]


def test_untouched_values_are_not_copied() -> None:
    array = pa.array(["plain", None, "日本 é"], pa.string())
    assert escape(array) is array


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_pieces_and_blocks_join_seamlessly(rows: int) -> None:
    long = "x" * 100_000 + "😀" + "é" * 1000 + '"'
    assert escape(pa.array([long, "plain"] * rows, pa.string())).to_pylist() == [reference(long), "plain"] * rows


@pytest.mark.parametrize("char", ['"', "\\", "\x01", "😀"])
def test_no_byte_is_overlooked(char: str) -> None:
    for size in (0, 65_532, 65_535, 65_536, 131_071):
        text = "x" * size + char
        assert escape(pa.array([text], pa.string())).to_pylist() == [reference(text)]


def test_hexadecimal_digits_are_upper_case() -> None:
    everything = "".join(map(chr, range(0x20)))
    text = escape(pa.array([everything], pa.string()))[0].as_py()
    assert not re.search(r"\\u[0-9A-F]*[a-f]", text)
    assert "\\u001F" in text


def test_constants_are_escaped_as_values_are() -> None:
    texts = ["😀 a", "\x1f", "\\u001f", "\\\x0b", 'é"\n', "\ufffd\U0010ffff"]
    assert [dumps(text) for text in texts] == closed(string(pa.array(texts))).to_pylist()
