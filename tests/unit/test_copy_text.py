"""COPY's text format, against its definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.postgres.snapshot.copy_text import split_rows

ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
VALUES = st.none() | st.text(st.sampled_from('ab\\N\n\t\r\v\f\b"é😀'), max_size=6)


def written(value: str | None) -> str:
    return "\\N" if value is None else "".join(ESCAPES.get(char, char) for char in value)


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*[VALUES] * n), min_size=1, max_size=10)))
def test_splits_what_the_server_writes(rows: list[tuple[str | None, ...]]) -> None:
    data, starts = b"", []
    for row in rows:
        data += b"\0" * 5
        starts.append(len(data))
        data += ("\t".join(map(written, row)) + "\n").encode()
    columns = split_rows(np.frombuffer(data, np.uint8), np.array(starts), len(rows[0]))
    assert [tuple(row) for row in zip(*(column.values.to_pylist() for column in columns), strict=True)] == rows
