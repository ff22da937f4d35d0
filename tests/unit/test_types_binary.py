"""Byte strings and bit strings beside Python's own base64."""

from __future__ import annotations

import base64
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_types_helpers import codec, encoded, strings

BYTES = st.lists(st.none() | st.binary(max_size=40))


@given(BYTES)
def test_bytea(values: list[bytes | None]) -> None:
    texts = [None if value is None else rf"\x{value.hex()}" for value in values]
    encoders: dict[str, Callable[[bytes], str]] = {
        "bytes": lambda raw: base64.b64encode(raw).decode(),
        "base64": lambda raw: base64.b64encode(raw).decode(),
        "base64-url-safe": lambda raw: base64.urlsafe_b64encode(raw).decode(),
        "hex": lambda raw: raw.hex(),
    }
    for mode, encode in encoders.items():
        want = ["null" if value is None else f'"{encode(value)}"' for value in values]
        assert encoded(codec("bytea", binary_handling_mode=mode), texts) == want
    assert codec("bytea").to_arrow(strings(texts)).to_pylist() == values


def little_endian(bits: str) -> str:
    number = int(bits or "0", 2)
    return base64.b64encode(number.to_bytes((number.bit_length() + 7) // 8, "little")).decode()


@given(st.lists(st.none() | st.text("01", max_size=70)))
def test_bits_of_varying_length(values: list[str | None]) -> None:
    want = ["null" if value is None else f'"{little_endian(value)}"' for value in values]
    assert encoded(codec("varbit"), values) == want


@given(st.integers(2, 80).flatmap(lambda width: st.lists(st.text("01", min_size=width, max_size=width))))
def test_bits(values: list[str]) -> None:
    width = len(values[0]) if values else 2
    assert encoded(codec("bit", width), values) == [f'"{little_endian(value)}"' for value in values]


def test_very_long_bits() -> None:
    values = ["01" * 3000, "1", None, "0" * 5000]
    want = [f'"{little_endian(value)}"' if value is not None else "null" for value in values]
    assert encoded(codec("varbit"), values) == want


def test_one_bit_is_a_boolean() -> None:
    for kind in ("bit", "varbit"):
        assert codec(kind, 1).schema == {"type": "boolean"}
        assert encoded(codec(kind, 1), ["1", "0", None]) == ["true", "false", "null"]
