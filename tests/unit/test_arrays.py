"""Lists that are the same in each row."""

from __future__ import annotations

import pyarrow as pa
import pytest

from floodmark.codecs.arrays import repeated

NAMES = pa.list_(pa.field("element", pa.string()))


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("value", [[], ["id"], ["größer", "b"], None, [None, "c"]])
def test_repeated_lists(value: list[str | None] | None, rows: int) -> None:
    found = repeated(pa.scalar(value, NAMES), rows)
    found.validate(full=True)
    assert found.type == NAMES
    assert found.to_pylist() == [value] * rows
