"""All events of the whole connector, through Oracle's own driver, beside Debezium's on the same stand-in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.oracle.beside_rows import apart, applied
from tests.conformance.oracle.cases import WHOLE
from tests.conformance.oracle.cases.case import END, SCHEMA, Case, Pause
from tests.conformance.oracle.differences import as_debezium, take_unasked
from tests.conformance.oracle.golden import Golden, goldens, payload
from tests.conformance.oracle.test_events import PREFIX, event, shown
from tests.conformance.oracle.test_schema_changes import with_known_lengths
from tests.support.inprocess import InProcess
from tests.support.oracle.fronts.tns.server import TnsServer
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.outbound.server import OutboundServer
from tests.support.oracle.replicator.documents import Format
from tests.support.oracle.replicator.server import ReplicatorServer

MINED = [
    one for one in WHOLE.values() if one.adapter not in ("olr", "xstream") and one.name != "large_objects_differences"
]
SPREAD = 12
"""``make test`` runs every so many of the generated cases and of other adapters', and ``make chaos`` the rest."""
LEAVING_OUT = {"snapshots/unsupported_warn", "snapshots/unsupported_skip"}
WHILE_CHANGES_COME = {"services/incremental_while_changes_come"}
ALWAYS = {"always", "configuration_based"}
"""Modes in which a query that goes on reads all tables again."""
GENERATED = [one for one in MINED if one.name.startswith("generated/")]
UNBUFFERED = [one for one in MINED if one.adapter == "logminer_unbuffered" and one not in GENERATED]
OPTIONS = [one for one in MINED if one.adapter == "logminer" and one.name.startswith("options/")]
LEFT = [
    *(one for one in GENERATED if int(one.name[-3:]) % SPREAD),
    *(one for place, one in enumerate(UNBUFFERED) if place % SPREAD),
    *OPTIONS[::2],
]
WITH_LOCAL_ZONE = re.compile(r"LN?\d+(_R)?")
"""Names of columns of the type TIMESTAMP WITH LOCAL TIME ZONE."""
SNAPSHOT = {"true", "first", "last", "first_in_data_collection", "last_in_data_collection"}
"""What ``snapshot`` of the source block may be for rows that were read; here it is always ``true``."""


def case_name(case: Case) -> str:
    return f"{case.adapter}-{case.name}"


def options_of(case: Case, database: OracleDatabase, ports: Sequence[int], state: Path) -> dict[str, str]:
    given = dict(case.options)
    schemas = {given.pop(f"{part}.converter.schemas.enable", "false") for part in ("key", "value")}
    return {
        "connector": "oracle",
        "topic.prefix": PREFIX,
        "state.dir": str(state),
        "database.connection.adapter": case.adapter,
        "database.hostname": "127.0.0.1",
        "database.port": str(ports[0]),
        "rac.nodes": ",".join(f"127.0.0.1:{port}" for port in ports) if len(ports) > 1 else "",
        "database.user": database.account,
        "database.password": "dbz",
        "database.dbname": database.settings.name,
        "database.pdb.name": database.pluggable,
        "table.include.list": rf"{SCHEMA}\..*",
        "log.mining.poll.interval.ms": "50",
        "schemas.enable": max(schemas),
        **given,
    }


def delivered(
    case: Case, state: Path, database: OracleDatabase | None = None, sent_as: Format | None = None
) -> list[Golden]:
    """Return all events that the connector makes of a case, those that its end makes as well.

    Args:
        case: the case.
        state: the connector's directory.
        database: on which it happens, as ``Case.prepared`` returns it; None: one of its own.
        sent_as: what OpenLogReplicator sends; None: LogMiner is asked.
    """
    database = database or case.prepared()
    with ExitStack() as stack:
        ports = [stack.enter_context(TnsServer(database, thread=number)).port for number in database.threads]
        options = options_of(case, database, ports, state)
        if sent_as is not None:
            del options["log.mining.poll.interval.ms"]
            options |= stack.enter_context(ReplicatorServer(database, sent_as)).options()
        if case.adapter == "xstream":
            del options["log.mining.poll.interval.ms"]
            options |= stack.enter_context(OutboundServer(database)).options()
        query = InProcess(options)
        try:
            rows = _before(case, query)
            for step in [*case.steps, Pause()]:
                if not isinstance(step, Pause):
                    with database.step():
                        step(database)
                    if case.name in WHILE_CHANGES_COME:
                        rows += query.step()
                    continue
                if not step.text:
                    case.end(database)
                rows += query.drain()
                if step.text:
                    # What a signal asks for is read by the next query.
                    query.restart()
                    rows += query.drain()
                    query.restart()
        finally:
            query.stop()
    return [event(row) for row in rows if row["topic"]]


def is_no_window(one: Golden) -> bool:
    """Return whether an event isn't one of the marks that Debezium writes around what it reads on request."""
    return not str((payload(one).get("after") or {}).get("TYPE")).startswith("snapshot-window-")


def without_moment(one: Golden) -> Golden:
    """Return an event without when its row was read: on request, each connector reads at its own time."""
    source: dict[str, Any] = payload(one).get("source") or {}
    if is_read(one):
        source |= dict.fromkeys(set(source) - {"db", "schema", "table"})
    return one


def without_log(one: Golden) -> Golden:
    """Return an event without the place in the log that its change is at."""
    source: dict[str, Any] = payload(one).get("source") or {}
    source |= dict.fromkeys(set(source) & {"rs_id"})
    return one


def _before(case: Case, query: InProcess) -> list[dict[str, Any]]:
    """Return the rows of the snapshot, behind which a query streams."""
    if case.options.get("snapshot.mode") not in ALWAYS:
        rows = query.drain()
        query.restart()
        return rows
    rows = []
    while found := query.step():
        rows += found
    return rows


def is_read(one: Golden) -> bool:
    return payload(one).get("op") == "r" or payload(one).get("source", {}).get("snapshot") in SNAPSHOT


def compared(events: Iterable[Golden]) -> Iterator[Golden]:
    """Yield events without what can't be equal, and without the change that a case ends with."""
    for one in events:
        if END in one.topic or END in str(payload(one).get("data_collections")):
            continue
        value = None if one.value is None else shown(one.value)
        found = {} if value is None else value.get("payload", value)
        source = found.get("source")
        if source is not None:
            # Debezium has null there, if nulls aren't written as the default.
            snapshot = source["snapshot"] or "false"
            source["snapshot"] = "true" if snapshot in SNAPSHOT else snapshot
        if found.get("op") == "t":
            # Debezium has the number of the commit, and Floodmark that of the statement.
            found["source"] |= {"commit_scn": None}
        if source is not None and "tableChanges" in found:
            # Debezium says when it made the event, and what transaction and row it saw last.
            source |= dict.fromkeys(("txId", "commit_scn", "user_name", "txSeq", "row_id"))
            if source["snapshot"] == "true":
                source |= {"ts_ms": 0, "ts_us": 0, "ts_ns": 0}
            found["ddl"] = found["ddl"].removesuffix(";")
            tables = {change["id"]: change["table"] for change in found["tableChanges"] if change["table"]}
            with_known_lengths(tables)
        after = found.get("after") or {}
        if found.get("op") == "r":
            # The stand-in's JDBC driver gives Debezium no zone of its session's.
            for name in filter(WITH_LOCAL_ZONE.fullmatch, after):
                after[name] = None
        yield Golden(one.topic, one.key, value, one.headers)


@pytest.mark.parametrize("case", [one for one in MINED if one not in LEFT], ids=case_name)
def test_all_events(case: Case, tmp_path: Path) -> None:
    compare(case, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("case", LEFT, ids=case_name)
def test_all_events_of_more_cases(case: Case, tmp_path: Path) -> None:
    compare(case, tmp_path)


def compare(case: Case, state: Path) -> None:
    prove_equal(case, *both_sides(case, state))


def both_sides(
    case: Case, state: Path, database: OracleDatabase | None = None, sent_as: Format | None = None
) -> tuple[list[Golden], list[Golden]]:
    """Return the events of Floodmark's and Debezium's that must be equal; see ``delivered``."""
    delivered_events = delivered(case, state, database, sent_as)
    # Floodmark tells of what it leaves out.
    kept = [one for one in delivered_events if not one.topic.endswith(".gap")]
    assert len(delivered_events) - len(kept) == (case.name in LEAVING_OUT)
    ours, theirs = list(compared(kept)), list(compared(goldens(case)))
    for event_of_ours in ours:
        as_debezium(case, payload(event_of_ours))
    (ours, said), (theirs, wanted) = apart(ours), apart(theirs)
    if case.options.get("snapshot.mode") == "no_data":
        # Debezium reads structures, and tells of that as of a snapshot; here nothing is read.
        wanted = [one.replace("'COMPLETED'", "'SKIPPED'") for one in wanted if "'STARTED'" not in one]
    assert said == wanted
    if case.name in WHILE_CHANGES_COME:
        # What is read when is another matter each time, and what comes of it is the same.
        assert applied(filter(is_no_window, ours)) == applied(filter(is_no_window, theirs))
        ours, theirs = ([one for one in events if not is_read(one)] for events in (ours, theirs))
    # Floodmark has the dictionary written before the snapshot, and Debezium afterwards.
    moved = case.options.get("log.mining.strategy") == "redo_log_catalog"
    if moved or any(isinstance(step, Pause) and step.text for step in case.steps):
        ours, theirs = (list(map(without_moment, filter(is_no_window, events))) for events in (ours, theirs))
        # Debezium announces a table again before a blocking snapshot.
        theirs = [one for place, one in enumerate(theirs) if "ddl" not in payload(one) or one not in theirs[:place]]
    if moved:
        # So their changes are in other logs.
        ours, theirs = (list(map(without_log, events)) for events in (ours, theirs))
    if case.options.get("snapshot.mode") == "no_data":
        # Floodmark announces tables with their rows, and here there are none.
        theirs = [one for one in theirs if not is_read(one)]
    assert len(theirs) > 3
    return ours, theirs


def prove_equal(case: Case, ours: list[Golden], theirs: list[Golden]) -> None:
    """Prove that events are Debezium's."""
    # Tables are read in parallel, so rows come in any order.
    assert sorted(map(repr, filter(is_read, ours))) == sorted(map(repr, filter(is_read, theirs)))
    changes, wanted = ([one for one in events if not is_read(one)] for events in (ours, theirs))
    for found, one in zip(changes, wanted, strict=False):
        take_unasked(case, found, one)
        assert found == one
    assert len(changes) == len(wanted)
