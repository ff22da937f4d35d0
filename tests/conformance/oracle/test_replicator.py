"""All events of the whole connector with the adapter ``olr``, beside Debezium's on the same stand-ins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.oracle.cases import WHOLE
from tests.conformance.oracle.cases.case import Case
from tests.conformance.oracle.cases.replicated import REPLICATED
from tests.conformance.oracle.cases.transactions import TRANSACTIONS
from tests.conformance.oracle.differences import placeholders
from tests.conformance.oracle.golden import Golden, goldens, payload
from tests.conformance.oracle.test_connector import SPREAD, both_sides, compared, delivered, is_read, prove_equal
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.replicator.documents import DEBEZIUM_3_6, PROTOBUF, Format

FORMATS = {"as for Debezium 3.6": DEBEZIUM_3_6, "preset": Format(), "whole transactions": Format(whole=True)}
MORE = [one for one in WHOLE.values() if one.adapter == "olr" and one not in REPLICATED]
SHORT = MORE[::SPREAD]
COMMENTS = ("A value", "About ")
"""What comments of columns begin with that COMMENT ON has given them."""
ZONED = ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH LOCAL TIME ZONE")
BUFFERED = {one.name for one in TRANSACTIONS}
NANOSECONDS = 1_000_000
"""In a millisecond."""
_WHOLE_SECOND = re.compile(r"(:\d\d)(Z|[+-]\d\d:\d\d)$")
_ALWAYS = {"T6", "Z0", "Z6"}
OF_DATES = {"microseconds", "nanoseconds", "isostring"}
"""Modes in which its adapter ``olr`` shows DATE in another way."""
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
    assert compare(case, format_, tmp_path) == OTHER_TIMES.get(case.name, set())


@pytest.mark.parametrize(
    "case", [pytest.param(one, id=one.name, marks=[] if one in SHORT else pytest.mark.long) for one in MORE]
)
def test_all_events_of_more_cases(case: Case, tmp_path: Path) -> None:
    compare(case, DEBEZIUM_3_6, tmp_path)


def compare(case: Case, format_: Format, state: Path) -> set[str]:
    """Prove that events are Debezium's; return the columns in which its times aren't those that it has of LogMiner."""
    database = case.prepared()
    ours, theirs = both_sides(case, state, database, format_)
    mined = list(compared(goldens(replace(case, adapter="logminer"))))
    found = with_times_of(mined, ours, theirs, times_of(database, case))
    if format_.whole:
        # A message has one time, that of its transaction's beginning.
        for one in (*ours, *theirs):
            source = payload(one).get("source", {})
            source.update(dict.fromkeys({"ts_ms", "ts_us", "ts_ns"} & source.keys()))
    for one in (*ours, *theirs):
        if payload(one).get("op") == "t":
            # Debezium has the row before, and the number of the statement; Floodmark that of the transaction.
            payload(one)["source"] |= {"row_id": None, "scn": None}
    ours = [without_comments(one) for one in ours if not is_comment(one)]
    ours, theirs = without_unended(ours, theirs), without_empty(theirs)
    take_lost(case, *([one for one in events if not is_read(one)] for events in (ours, theirs)))
    prove_equal(case, ours, theirs)
    return found


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


def without_empty(events: list[Golden]) -> list[Golden]:
    """Return events without the transactions of which ``skipped.operations`` leaves nothing.

    Debezium's adapter ``olr`` announces them, which neither Floodmark nor its other adapters do.
    """
    empty = {payload(one)["id"] for one in events if payload(one).get("event_count") == 0}
    return [one for one in events if payload(one).get("id") not in empty]


def without_unended(ours: list[Golden], theirs: list[Golden]) -> list[Golden]:
    """Return events without the ends of the transactions of TRUNCATE, which Debezium's adapter ``olr`` doesn't end."""
    ended = {payload(one)["id"] for one in theirs if payload(one).get("status") == "END"}
    truncates = {payload(one)["source"]["txId"] for one in ours if payload(one).get("op") == "t"} - ended
    return [one for one in ours if payload(one).get("status") != "END" or payload(one)["id"] not in truncates]


def without_comments(one: Golden) -> Golden:
    """Return an event without the comment that COMMENT ON has given to a column."""
    return replace(one, key=_without_comments(one.key), value=_without_comments(one.value))


def _without_comments(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_comments(one) for one in value]
    if isinstance(value, dict):
        return {
            name: _without_comments(one)
            for name, one in value.items()
            if name != "doc" or not str(one).startswith(COMMENTS)
        }
    return value


def is_comment(one: Golden) -> bool:
    """Return whether an event is of COMMENT ON, which Debezium's adapter ``olr`` leaves out."""
    return str(payload(one).get("ddl")).startswith("COMMENT ON")


def times_of(database: OracleDatabase, case: Case) -> set[tuple[str, str]]:
    """Return tables and columns whose times Debezium's adapter ``olr`` may show in another way."""
    mode = case.options.get("time.precision.mode", "")
    return {
        (structure.name, one.name)
        for table in database.tables
        for structure in (table.structure, *table.past.values())
        for one in structure.columns
        if one.type.base in ZONED or (one.type.base == "DATE" and mode in OF_DATES)
    }


def _placed(events: Iterable[Golden]) -> dict[tuple[str, ...], list[Golden]]:
    """Return changes by their transaction, row and kind."""
    found: dict[tuple[str, ...], list[Golden]] = {}
    for one in events:
        value = payload(one)
        if "op" in value and not is_read(one):
            found.setdefault((value["source"]["txId"], one.topic, repr(one.key), value["op"]), []).append(one)
    return found


def take_lost(case: Case, ours: list[Golden], theirs: list[Golden]) -> None:
    """Give Debezium's events what Floodmark has of large objects that can't be null, and that a deleted row had.

    The log doesn't have them, and the server shows null: Debezium delivers nothing, and Floodmark the placeholder.
    """
    forms = placeholders(case)
    for one, other in zip(ours, theirs, strict=False):
        row, lost = (payload(found).get("before") or {} for found in (one, other))
        lost |= {name: row[name] for name, value in lost.items() if value == "" and row.get(name) in forms}


def with_times_of(
    mined: list[Golden], ours: list[Golden], theirs: list[Golden], times: set[tuple[str, str]]
) -> set[str]:
    """Give Debezium's events the times that it has of LogMiner, and return the columns in which they differed."""
    found = set()
    of_ours, of_others = _placed(ours), _placed(mined)
    for place, changes in _placed(theirs).items():
        columns = {column for table, column in times if table == payload(changes[0])["source"]["table"]}
        same, others = of_ours.get(place, []), of_others.get(place, [])
        if len(same) != len(changes):
            continue
        if len(others) != len(changes):
            # LogMiner doesn't see changes of large objects alone, unless it is told to.
            others = [Golden("", None, None, {})] * len(changes)
        for one, other, logged in zip(same, changes, others, strict=True):
            for side in ("before", "after"):
                row, shown, wanted = (payload(event).get(side) or {} for event in (one, other, logged))
                for column in columns & row.keys() & shown.keys():
                    if row[column] == shown[column]:
                        continue
                    if column in wanted or shown[column] in of_replicator(row[column]):
                        found.add(column)
                        shown[column] = wanted.get(column, row[column])
    return found


def of_replicator(time: Any) -> set[Any]:
    """Return what Debezium's adapter ``olr`` may show a time as; see ``OTHER_TIMES``."""
    if isinstance(time, int):
        return {((time * NANOSECONDS + (1 << 63)) % (1 << 64) - (1 << 63)) // NANOSECONDS}
    pointed = _WHOLE_SECOND.sub(r"\1.\2", str(time))
    early = {None} if re.match(r"-|0|1[0-8]|19[0-6]", pointed) else set()
    return {pointed, re.sub("Z$", "+00:00", pointed), *early}
