"""The differences to Debezium's MySQL and MariaDB connectors that are intended; docs/differences.md gives the reasons."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.cases.case import Case
from tests.conformance.differences import compare


def expected_difference(case: Case, got: str, want: str) -> list[str]:
    """Compare two values; return what differs beyond the intended differences."""
    if got == want:
        return []
    mine, theirs = json.loads(got), json.loads(want)
    found = list(compare("", mine, theirs))
    if not found:
        return [f"{case.name}: same values, other text: {got} != {want}"]
    payload = theirs.get("payload", theirs)
    return [
        f"{case.connector} {case.name}: {path}: {a!r} != {b!r}"
        for path, a, b in found
        if not intended(case, path, a, b, payload)
    ]


def intended(case: Case, path: str, got: Any, want: Any, payload: dict[str, Any]) -> bool:
    """Tell whether a difference is one that docs/differences.md lists."""
    if path.endswith(".source.snapshot"):
        return bool(payload.get("op") == "r" and got == "true")
    if path.endswith(".source.row"):
        return bool(payload.get("op") == "t" and got == 0)
    return False
