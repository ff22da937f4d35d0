"""Cases for one or both of the servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.conformance.cases.case import Case

FLAVORS = ("mysql", "mariadb")
QUIET = {"include.schema.changes": "false"}
"""The schema change topic has cases of its own."""


def both(
    name: str,
    setup: Sequence[str],
    statements: Sequence[str],
    options: dict[str, str] | None = None,
    schemas: bool = False,
    settings: dict[str, str] | None = None,
    flavors: Sequence[str] = FLAVORS,
) -> tuple[Case, ...]:
    """Return a case for each of the servers."""
    case = Case(name, tuple(setup), tuple(statements), {**QUIET, **(options or {})}, schemas, settings=settings or {})
    return tuple(replace(case, connector=flavor) for flavor in flavors)
