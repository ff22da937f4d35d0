"""All events of the whole connector with the adapter ``xstream``, beside those of Debezium's adapter.

Both run on the same Java classes of our own (``tests/support/oracle/outbound``), which stand in for Oracle's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.oracle.cases.case import Case
from tests.conformance.oracle.cases.outbound import OUTBOUND
from tests.conformance.oracle.golden import goldens
from tests.conformance.oracle.test_connector import compared, delivered, prove_equal

SHORT = "large_objects"
"""The case that ``make test`` runs; it leaves the others to ``make chaos``."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(one, id=one.name, marks=[] if one.name == SHORT else pytest.mark.long) for one in OUTBOUND],
)
def test_all_events_of_xstream(case: Case, tmp_path: Path) -> None:
    ours, theirs = list(compared(delivered(case, tmp_path))), list(compared(goldens(case)))
    assert len(theirs) > 10
    prove_equal(case, ours, theirs)
