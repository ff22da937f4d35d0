"""Values that Floodmark and Debezium deliver differently on purpose: Debezium loses them, or takes them for others."""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.conformance.oracle.cases.case import Case
from tests.conformance.oracle.golden import Golden, payload

OLD_KEY = "__debezium.oldkey"
"""The header of the event of a row that has got another key."""
PLACEHOLDER = "__debezium_unavailable_value"


@dataclass(frozen=True)
class Difference:
    """Values of columns.

    Attributes:
        why: why they differ.
        cases: a pattern of the cases' names.
        columns: the columns.
        values: Debezium's by Floodmark's.
        in_snapshots: whether rows that are read differ, too.
    """

    why: str
    cases: str
    columns: frozenset[str]
    values: Mapping[Any, Any]
    in_snapshots: bool = True


DIFFERENCES = (
    Difference(
        "Debezium can't read these values in SQL_REDO.",
        r"edges/floats",
        frozenset(("SINGLE", "DOUBLE")),
        {"Infinity": None, "-Infinity": None, "NaN": None},
        in_snapshots=False,
    ),
    Difference(
        "Debezium takes texts that look like calls for calls.",
        r"edges/texts.*",
        frozenset("V"),
        {"EMPTY_CLOB()": None, "UNISTR('\\0041')": "A", "HEXTORAW('00')": "\x00"},
    ),
    Difference(
        "Debezium takes nine digits of a second's fraction for microseconds.",
        r"edges/times.*",
        frozenset(("DS9",)),
        {
            123456: 123456789,
            -8639999999999: -8640998999999,
            "P0Y0M0DT0H0M0.123456S": "P0Y0M0DT0H0M123.456789S",
            "P0Y0M-99DT-23H-59M-59.999999S": "P0Y0M-99DT-23H-59M-1058.999999S",
        },
    ),
)


def take_unasked(case: Case, ours: Golden, theirs: Golden) -> None:
    """Give Debezium's event the values that Floodmark doesn't have of a row whose key has changed.

    Debezium asks the database for the large objects of such a row, which may have others by then.
    """
    row, other = (payload(one).get("after") or {} for one in (ours, theirs))
    if OLD_KEY in ours.headers:
        forms = placeholders(case)
        other |= {
            name: value for name, value in row.items() if name in other and isinstance(value, str) and value in forms
        }


def placeholders(case: Case) -> set[str]:
    """Return the placeholder of values that aren't known, as text and as bytes."""
    text = case.options.get("unavailable.value.placeholder", PLACEHOLDER)
    raw = text.encode()
    return {text, raw.hex(), b64encode(raw).decode(), urlsafe_b64encode(raw).decode()}


def as_debezium(case: Case, payload: dict[str, Any]) -> dict[str, Any]:
    """Return an event of Floodmark's with Debezium's values."""
    for one in DIFFERENCES:
        if not re.fullmatch(one.cases, case.name) or (payload.get("op") == "r" and not one.in_snapshots):
            continue
        for side in ("before", "after"):
            row = payload.get(side) or {}
            row |= {name: one.values[row[name]] for name in one.columns & set(row) if row[name] in one.values}
    return payload
