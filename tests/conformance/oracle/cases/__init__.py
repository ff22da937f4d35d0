"""What is done on the stand-in, and with which options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.conformance.oracle.cases.case import Case
from tests.conformance.oracle.cases.ddl import DDL
from tests.conformance.oracle.cases.large_objects import DIFFERENCES, LARGE_OBJECTS
from tests.conformance.oracle.cases.replicated import REPLICATED
from tests.conformance.oracle.cases.transactions import TRANSACTIONS
from tests.conformance.oracle.cases.values import ALTERED, VALUES

CASES: Mapping[str, Case] = {
    f"{case.adapter}/{case.name}": case
    for case in (*VALUES, ALTERED, *TRANSACTIONS, *LARGE_OBJECTS, DIFFERENCES, *DDL, *REPLICATED)
}


def chosen(names: Sequence[str]) -> list[Case]:
    """Return the cases of these names, as ``adapter/name``; all if there are none."""
    return [CASES[name] for name in names] if names else list(CASES.values())
