"""What is done on the stand-in, and with which options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.conformance.oracle.cases.case import Case
from tests.conformance.oracle.cases.ddl import DDL
from tests.conformance.oracle.cases.edges import EDGES
from tests.conformance.oracle.cases.generated import GENERATED
from tests.conformance.oracle.cases.large_objects import DIFFERENCES, LARGE_OBJECTS
from tests.conformance.oracle.cases.names import NAMES
from tests.conformance.oracle.cases.options import OPTIONS
from tests.conformance.oracle.cases.outbound import OUTBOUND
from tests.conformance.oracle.cases.replicated import REPLICATED
from tests.conformance.oracle.cases.snapshots import SNAPSHOTS
from tests.conformance.oracle.cases.transactions import TRANSACTIONS
from tests.conformance.oracle.cases.values import ALTERED, DICTIONARIES, VALUES

CASES: Mapping[str, Case] = {
    f"{case.adapter}/{case.name}": case
    for case in (*VALUES, ALTERED, *TRANSACTIONS, *LARGE_OBJECTS, DIFFERENCES, *DDL, *REPLICATED, *OUTBOUND)
}
_WHOLE_ONLY = (*DICTIONARIES, *OPTIONS, *EDGES, *NAMES, *SNAPSHOTS, *GENERATED)
_UNBUFFERED = re.compile(
    r"values|values_schemas|decimal_string|time_connect|transactions_schemas|redo_sql|skipped_u|no_tombstones|ddl|"
    r"transaction_metadata|large_objects|edges/(numbers|texts|times)|names/odd|names/columns_300|generated/00\d|"
    r"options/(schemas|skipped_c|lob|comments|tables_in|users_in|without_users_regex|message_keys|no_schema_changes)|"
    r"snapshots/(unsupported_skip|override)|dictionaries/.*"
)
"""The names of cases that are recorded with the adapter ``logminer_unbuffered``, too."""


def _whole() -> dict[str, Case]:
    cases = [*CASES.values(), *_WHOLE_ONLY]
    unbuffered = [
        replace(one, adapter="logminer_unbuffered", compact=True)
        for one in cases
        if one.adapter == "logminer" and _UNBUFFERED.fullmatch(one.name)
    ]
    return {f"{one.adapter}/{one.name}": one for one in (*unbuffered, *cases)}


WHOLE: Mapping[str, Case] = _whole()
"""All cases; those that aren't in ``CASES`` are only for whole connectors."""


def chosen(names: Sequence[str]) -> list[Case]:
    """Return the cases of these names, as ``adapter/name``; all if there are none."""
    return [WHOLE[name] for name in names] if names else list(WHOLE.values())
