"""Where a read point may lie."""

from __future__ import annotations

import numpy as np
import pytest

from floodmark.connectors.postgres.position import position
from floodmark.connectors.postgres.snapshot.commit_log import CommitLog
from floodmark.connectors.postgres.snapshot.read_point import HEADERS, PAGE, PostgresReadPoint
from floodmark.connectors.postgres.snapshot.token import ReadPointToken

START = 7 * PAGE


def point(lsn: int) -> PostgresReadPoint:
    made = PostgresReadPoint.__new__(PostgresReadPoint)
    made._token = ReadPointToken("s", "100:100:", 100, 0, lsn, None)
    return made


@pytest.mark.parametrize("header", HEADERS)
def test_the_log_was_delivered_up_to_behind_the_header_of_an_empty_page(header: int) -> None:
    made = point(START)
    assert made.settle(CommitLog(), frozenset(), position(START + header))
    assert made.position == position(START)


def test_a_point_before_what_was_delivered_is_none() -> None:
    assert not point(START).settle(CommitLog(), frozenset(), position(START + 48))
    assert not point(START).settle(CommitLog(), frozenset(), position(START + HEADERS[0], 1))
    hidden = CommitLog()
    hidden.add(np.array([START - 80], np.int64), np.array([100], np.int64))
    assert not point(START).settle(hidden, frozenset(), position(START))
