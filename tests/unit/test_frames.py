"""Framing: whatever the payload looks like, the chain of frames is found."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.postgres.wire.frames import find_frames

# Bytes that look like frame headers are likelier than chance would have them.
TRICKY = st.lists(st.sampled_from([b"d", b"\0", b"d\0\0\0\x05", b"w", b"x", b"\n", b"\xff"]), max_size=20).map(b"".join)


def frame(payload: bytes) -> bytes:
    return b"d" + struct.pack(">I", len(payload) + 4) + payload


@given(st.lists(TRICKY, max_size=30), st.integers(0, 40), st.sampled_from([b"", b"c\0\0\0\x04", b"E"]))
def test_finds_the_chain(payloads: list[bytes], cut: int, tail: bytes) -> None:
    data = b"".join(map(frame, payloads))
    expected, at = [], 0
    for payload in payloads:
        expected.append(at)
        at += 5 + len(payload)
    shortened = data[: max(len(data) - cut, 0)] if cut else data + tail
    complete = [
        start for start, payload in zip(expected, payloads, strict=True) if start + 5 + len(payload) <= len(shortened)
    ]
    starts, end = find_frames(np.frombuffer(shortened, np.uint8))
    assert starts.tolist() == complete
    assert end == (complete[-1] + 5 + len(payloads[len(complete) - 1]) if complete else 0)


def test_a_frame_of_more_than_16_mib() -> None:
    large = frame(b"x" * (17 << 20))
    data = frame(b"a") + large + frame(b"b") + b"d\0\0"
    starts, end = find_frames(np.frombuffer(data, np.uint8))
    assert starts.tolist() == [0, 6, 6 + len(large)]
    assert end == len(data) - 3
