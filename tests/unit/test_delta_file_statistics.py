"""Statistics of data files for values that JSON's readers, or Python, have no date for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from floodmark.sinks.delta.format.statistics import statistics

DAY, INSTANT, LOCAL = pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")
A_DAY_US = 86_400_000_000


@pytest.mark.parametrize(("kind", "unit"), [(DAY, 1), (INSTANT, A_DAY_US), (LOCAL, A_DAY_US)])
@pytest.mark.parametrize("day", [2_932_897, -719_163, 30_000_000, -2_000_000])
def test_days_that_python_does_not_have(kind: pa.DataType, unit: int, day: int) -> None:
    days = pa.array([0, day * unit], pa.int32() if kind == DAY else pa.int64()).cast(kind)
    found = statistics(pa.table({"at": days, "_position": ["1", "2"]}), [], "_position")
    assert found["minValues"] == {"_position": "1"}
    assert found["maxValues"] == {"_position": "2"}
    assert found["nullCount"] == {"at": 0, "_position": 0}
