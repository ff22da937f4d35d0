"""Table ids at the end of what was received."""

from __future__ import annotations

import numpy as np
import pytest

from floodmark.connectors.mysql.binlog.event_types import AT_BODY
from floodmark.connectors.mysql.binlog.table_map import table_ids
from floodmark.errors import DecodeError


def test_an_event_that_ends_inside_its_table_s_id() -> None:
    whole = np.arange(AT_BODY + 8, dtype=np.uint8)
    assert len(table_ids(whole, np.zeros(1, np.int64))) == 1
    for size in range(AT_BODY, len(whole)):
        with pytest.raises(DecodeError, match="ends inside"):
            table_ids(whole[:size], np.zeros(1, np.int64))
