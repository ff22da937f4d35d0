"""What is done on the stand-in, and with which options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.conformance.oracle.cases.adapters import of_other_adapters
from tests.conformance.oracle.cases.case import Case
from tests.conformance.oracle.cases.ddl import DDL
from tests.conformance.oracle.cases.edges import EDGES
from tests.conformance.oracle.cases.generated import GENERATED
from tests.conformance.oracle.cases.large_objects import DIFFERENCES, LARGE_OBJECTS
from tests.conformance.oracle.cases.names import NAMES
from tests.conformance.oracle.cases.options import OPTIONS
from tests.conformance.oracle.cases.outbound import OUTBOUND
from tests.conformance.oracle.cases.replicated import REPLICATED
from tests.conformance.oracle.cases.services import SERVICES
from tests.conformance.oracle.cases.snapshots import SNAPSHOTS
from tests.conformance.oracle.cases.transactions import TRANSACTIONS
from tests.conformance.oracle.cases.values import ALTERED, DICTIONARIES, VALUES

CASES: Mapping[str, Case] = {
    f"{case.adapter}/{case.name}": case
    for case in (*VALUES, ALTERED, *TRANSACTIONS, *LARGE_OBJECTS, DIFFERENCES, *DDL, *REPLICATED, *OUTBOUND)
}
_WHOLE_ONLY = (*DICTIONARIES, *OPTIONS, *EDGES, *NAMES, *SNAPSHOTS, *SERVICES, *GENERATED)


def _whole() -> dict[str, Case]:
    cases = [*CASES.values(), *_WHOLE_ONLY]
    return {f"{one.adapter}/{one.name}": one for one in (*of_other_adapters(cases), *cases)}


WHOLE: Mapping[str, Case] = _whole()
"""All cases; those that aren't in ``CASES`` are only for whole connectors."""


def chosen(names: Sequence[str]) -> list[Case]:
    """Return the cases of these names, as ``adapter/name``; all if there are none."""
    return [WHOLE[name] for name in names] if names else list(WHOLE.values())
