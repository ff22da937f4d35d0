"""The same cases with the log from OpenLogReplicator."""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.oracle.cases.ddl import DDL
from tests.conformance.oracle.cases.large_objects import LARGE_OBJECTS
from tests.conformance.oracle.cases.transactions import TRANSACTIONS
from tests.conformance.oracle.cases.values import VALUES

_OTHERS = ("redo_sql", "large_objects_random", "large_objects_base64", "large_objects_base64_url_safe")
"""What has no meaning without LogMiner, or differs from other cases in nothing that depends on the log."""
REPLICATED = tuple(
    replace(one, adapter="olr")
    for one in (*VALUES, *TRANSACTIONS, *LARGE_OBJECTS, *DDL)
    if one.adapter == "logminer" and one.name not in _OTHERS
)
