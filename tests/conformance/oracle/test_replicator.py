"""All events of the whole connector with the adapter ``olr``, beside Debezium's on the same stand-ins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.oracle.cases.case import Case
from tests.conformance.oracle.cases.replicated import REPLICATED
from tests.conformance.oracle.cases.transactions import TRANSACTIONS
from tests.conformance.oracle.cases.values import TIMES
from tests.conformance.oracle.golden import Golden, goldens, payload
from tests.conformance.oracle.test_connector import compared, delivered, is_read, prove_equal
from tests.support.oracle.replicator.documents import DEBEZIUM_3_6, PROTOBUF, Format

FORMATS = {"as for Debezium 3.6": DEBEZIUM_3_6, "preset": Format(), "whole transactions": Format(whole=True)}
BUFFERED = {one.name for one in TRANSACTIONS}
_ALWAYS = {"T6", "Z0", "Z6"}
OTHER_TIMES = {
    **dict.fromkeys(("values", "values_schemas", "time_connect", "interval_string"), _ALWAYS),
    **{name: {*_ALWAYS, "DAY"} for name in ("time_microseconds", "time_nanoseconds")},
    "time_isostring": {*_ALWAYS, "DAY", "T3", "T9"},
}
"""Columns of which Debezium's adapter ``olr`` shows times in another way than its snapshots and its other adapters.

Nanoseconds since the epoch that take more than 64 bits overflow. DATE is always in milliseconds, whatever the mode's
unit is, and in ISO 8601 times before 1970 are null. A zoned time without a fraction has a point, and one at UTC ends
with ``+00:00``. Floodmark shows each time as Debezium does with LogMiner, so that rows of snapshots and of the log are
alike.
"""


@pytest.mark.parametrize(
    "format_",
    [
        pytest.param(one, id=name, marks=[] if one == DEBEZIUM_3_6 else pytest.mark.long)
        for name, one in FORMATS.items()
    ],
)
@pytest.mark.parametrize("case", REPLICATED, ids=lambda case: case.name)
def test_all_events_of_openlogreplicator(case: Case, format_: Format, tmp_path: Path) -> None:
    ours, theirs = list(compared(delivered(case, tmp_path, sent_as=format_))), list(compared(goldens(case)))
    mined = list(compared(goldens(replace(case, adapter="logminer"))))
    assert with_times_of(mined, theirs) == OTHER_TIMES.get(case.name, set())
    if format_.whole:
        # A message has one time, that of its transaction's beginning.
        for one in (*ours, *theirs):
            source = payload(one).get("source", {})
            source.update(dict.fromkeys({"ts_ms", "ts_us", "ts_ns"} & source.keys()))
    assert len(theirs) > 10
    prove_equal(case, [without_comments(one) for one in ours if not is_comment(one)], theirs)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(one, id=one.name, marks=[] if number == 0 else pytest.mark.long)
        for number, one in enumerate(one for one in REPLICATED if one.name in BUFFERED)
    ],
)
def test_all_events_of_openlogreplicator_in_protocol_buffers(case: Case, tmp_path: Path) -> None:
    ours, theirs = list(compared(delivered(case, tmp_path, sent_as=PROTOBUF))), list(compared(goldens(case)))
    assert len(theirs) > 10
    prove_equal(case, ours, theirs)


def without_comments(one: Golden) -> Golden:
    """Return an event without the comment that COMMENT ON has given to a column."""
    return replace(one, key=_without_comments(one.key), value=_without_comments(one.value))


def _without_comments(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_comments(one) for one in value]
    if isinstance(value, dict):
        return {name: _without_comments(one) for name, one in value.items() if (name, one) != ("doc", "A value")}
    return value


def is_comment(one: Golden) -> bool:
    """Return whether an event is of COMMENT ON, which Debezium's adapter ``olr`` leaves out."""
    return str(payload(one).get("ddl")).startswith("COMMENT ON")


def with_times_of(mined: list[Golden], events: list[Golden]) -> set[str]:
    """Give events the times of others, and return the columns in which they differed."""
    found = set()
    changes = ([one for one in some if "op" in payload(one) and not is_read(one)] for some in (mined, events))
    for other, one in zip(*changes, strict=False):
        for side in ("before", "after"):
            row, wanted = payload(one)[side] or {}, payload(other)[side] or {}
            for name in {name for name in TIMES if name in row and row[name] != wanted[name]}:
                found.add(name)
                row[name] = wanted[name]
    return found
