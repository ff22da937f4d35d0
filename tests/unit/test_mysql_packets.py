"""Packets: whatever they hold and however many, the chain is found."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.mysql.binlog.packets import FULL, find_packets, join
from floodmark.errors import DecodeError


def chain(payloads: list[bytes], number: int) -> bytes:
    return b"".join(
        len(payload).to_bytes(3, "little") + bytes([(number + i) & 0xFF]) + payload
        for i, payload in enumerate(payloads)
    )


def plain(data: bytes) -> tuple[list[int], int]:
    starts, at = [], 0
    while at + 4 <= len(data):
        after = at + 4 + int.from_bytes(data[at : at + 3], "little")
        if after > len(data):
            break
        starts.append(at)
        at = after
    return starts, at


def check(data: bytes, number: int) -> None:
    found = find_packets(np.frombuffer(data, np.uint8), number)
    starts, end = plain(data)
    assert found.starts.tolist() == starts
    assert found.end == (end if starts else 0)
    assert found.number == (number + len(starts)) & 0xFF
    assert not found.continued


@given(st.lists(st.binary(max_size=40), max_size=90), st.integers(0, 255), st.integers(0, 60))
def test_few(payloads: list[bytes], number: int, cut: int) -> None:
    data = chain(payloads, number)
    check(data[: max(len(data) - cut, 0)], number)


# Payloads that look like packets themselves make wrong begins likely.
KINDS: dict[str, Callable[[random.Random], bytes]] = {
    "zeros": lambda r: bytes(r.randrange(80)),
    "random": lambda r: r.randbytes(r.randrange(80)),
    "packets": lambda r: chain([r.randbytes(r.randrange(4)) for _ in range(12)], r.randrange(256)),
    "empty": lambda r: r.randbytes(0),
    "mixed": lambda r: r.randbytes(r.choice([0, 1, 30, 50, 50, 50, 3000])),
    "rarely large": lambda r: r.randbytes(30) if r.random() < 0.999 else r.randbytes(200_000),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_many(kind: str, seed: int) -> None:
    r = random.Random(seed)
    number = r.randrange(256)
    data = chain([KINDS[kind](r) for _ in range(20_000)], number)
    check(data, number)
    for _ in range(3):
        check(data[: r.randrange(len(data))], number)


def test_a_chain_that_repeats_inside_its_packets() -> None:
    inner = chain([b"x" * 20] * 250, 7)
    data = chain([b"y" * 30] * 100 + [inner] * 400 + [b"z" * 10] * 5000, 0)
    check(data, 0)


def test_large_packets_are_joined() -> None:
    payloads = [b"a" * 10, b"b" * FULL, b"c" * FULL, b"d" * 3, b"e", b"f" * FULL, b"", b"g" * 9]
    data = np.frombuffer(chain(payloads, 250) + b"\x05\0\0", np.uint8).copy()
    found = find_packets(data, 250)
    assert found.continued
    whole, filled = join(data, found, len(data))
    texts = [bytes(data[a + 4 : b]) for a, b in zip(whole.starts, [*whole.starts[1:], whole.end], strict=True)]
    assert texts == [payloads[0], b"".join(payloads[1:4]), payloads[4], payloads[5], payloads[7]]
    assert (whole.number, bytes(data[whole.end : filled])) == ((250 + 8) & 0xFF, b"\x05\0\0")


def test_a_large_packet_whose_rest_is_missing_is_not_complete() -> None:
    data = np.frombuffer(chain([b"a", b"b" * FULL, b"c" * FULL], 0) + b"\x01\0\0\x03", np.uint8)
    found = find_packets(data, 0)
    assert (found.starts.tolist(), found.end, found.number, found.continued) == ([0], 5, 1, False)


@pytest.mark.parametrize("count", [3, 5000])
def test_numbers_must_count_up(count: int) -> None:
    data = bytearray(chain([b"payload"] * count, 9))
    data[11 * (count // 2) + 3] ^= 1
    with pytest.raises(DecodeError, match="count up"):
        find_packets(np.frombuffer(bytes(data), np.uint8), 9)
    with pytest.raises(DecodeError, match="count up"):
        find_packets(np.frombuffer(chain([b"payload"] * count, 9), np.uint8), 10)
