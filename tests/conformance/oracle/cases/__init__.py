"""What is done on the stand-in, and with which options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.conformance.oracle.cases.case import Case
from tests.conformance.oracle.cases.values import VALUES

CASES: Mapping[str, Case] = {case.name: case for case in (*VALUES,)}


def chosen(names: Sequence[str]) -> list[Case]:
    """Return the cases of these names; all if there are none."""
    return [CASES[name] for name in names] if names else list(CASES.values())
