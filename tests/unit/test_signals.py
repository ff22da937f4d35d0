"""Signals: what is read from them, and what is said about mistakes."""

from __future__ import annotations

import contextlib
import json
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.config.table_names import TableNames
from floodmark.errors import SignalError
from floodmark.notifications.records import IncrementalSnapshotNotifications
from floodmark.signals.records import (
    TYPES,
    WINDOW_CLOSE,
    WINDOW_OPEN,
    Action,
    Condition,
    ExecuteSnapshot,
    LogMessage,
    PauseSnapshot,
    ResumeSnapshot,
    Signal,
    StopSnapshot,
    WindowClosed,
    WindowOpened,
    expand,
    parse_signal,
    read_signal,
)
from floodmark.snapshots import control
from floodmark.snapshots.incremental.engine import IncrementalEngine
from floodmark.snapshots.incremental.state import IncrementalState


def parse(kind: str, data: Any = None) -> Action:
    text = data if isinstance(data, str) else "" if data is None else json.dumps(data)
    return parse_signal(Signal("s1", kind, text))


def problem(kind: str, data: Any = None) -> str:
    with pytest.raises(SignalError) as caught:
        parse(kind, data)
    return str(caught.value)


TABLES = {"data-collections": [" public\\.orders ", "shop\\..*"]}
PATTERNS = ("public\\.orders", "shop\\..*")


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("execute-snapshot", TABLES, ExecuteSnapshot("s1", PATTERNS)),
        ("execute-snapshot", {**TABLES, "type": "Incremental"}, ExecuteSnapshot("s1", PATTERNS)),
        ("execute-snapshot", {**TABLES, "type": "BLOCKING"}, ExecuteSnapshot("s1", PATTERNS, blocking=True)),
        (
            "execute-snapshot",
            {
                **TABLES,
                "additional-conditions": [{"data-collection": "public\\.orders", "filter": "id > 5"}],
                "surrogate-key": "code",
            },
            ExecuteSnapshot("s1", PATTERNS, False, (Condition("public\\.orders", "id > 5"),), "code"),
        ),
        (
            "execute-snapshot",
            {**TABLES, "additional-condition": "id > 5", "surrogate-key": ""},
            ExecuteSnapshot("s1", PATTERNS, False, (Condition(".*", "id > 5"),)),
        ),
        (
            "execute-snapshot",
            {**TABLES, "type": "blocking", "additional-condition": "id > 5"},
            ExecuteSnapshot("s1", PATTERNS, blocking=True),
        ),
        ("stop-snapshot", TABLES, StopSnapshot("s1", PATTERNS)),
        ("stop-snapshot", {"type": "incremental"}, StopSnapshot("s1")),
        ("stop-snapshot", " ", StopSnapshot("s1")),
        ("pause-snapshot", None, PauseSnapshot("s1")),
        ("pause-snapshot", {"type": "incremental"}, PauseSnapshot("s1")),
        ("resume-snapshot", {}, ResumeSnapshot("s1")),
        ("log", {"message": "at {}"}, LogMessage("s1", "at {}")),
        (WINDOW_OPEN, {"openWindowTimestamp": "2026-01-01T00:00:00Z"}, WindowOpened("s1")),
        (WINDOW_CLOSE, "not read", WindowClosed("s1")),
    ],
)
def test_signal_becomes_an_action_that_survives_the_offset(kind: str, data: Any, expected: Action) -> None:
    action = parse(kind, data)
    assert action == expected
    if isinstance(action, ExecuteSnapshot):
        assert ExecuteSnapshot.from_json(json.loads(json.dumps(action.to_json()))) == action
        assert json.loads(json.dumps(action.to_json())) == action.to_json()


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("execute-snapshots", None, "unknown type 'execute-snapshots'. Did you mean 'execute-snapshot'?"),
        ("x", None, "Known: execute-snapshot, stop-snapshot, pause-snapshot, resume-snapshot, log."),
        ("execute-snapshot", "{", "is not JSON: "),
        ("execute-snapshot", "[" * 100_000, "is not JSON: "),
        ("execute-snapshot", "[]", "is not a JSON object"),
        ("execute-snapshot", None, "the field 'data-collections' is wrong"),
        ("execute-snapshot", {"data-collections": []}, "not empty"),
        ("execute-snapshot", {"data-collections": "a.b"}, "it must be a list"),
        ("execute-snapshot", {"data-collections": [1]}, "must be a text"),
        ("execute-snapshot", {"data-collections": ["a.b", " "]}, "must be a text, and not empty"),
        ("execute-snapshot", {"data-collections": ["("]}, "'(' is not a regular expression"),
        ("execute-snapshot", {"data-collections": ["a{99999999999999999999}"]}, "is not a regular expression"),
        ("execute-snapshot", '{"data-collections": ["\\ud800"]}', "surrogate pair"),
        ("execute-snapshot", {**TABLES, "type": "full"}, "it must be incremental or blocking"),
        ("execute-snapshot", {**TABLES, "type": 1}, "it must be a text"),
        ("execute-snapshot", {**TABLES, "additional-conditions": ["x"]}, "'data-collection' and 'filter'"),
        ("execute-snapshot", {**TABLES, "additional-conditions": [{"filter": "x"}]}, "regular expression"),
        ("execute-snapshot", {**TABLES, "surrogate-key": ["id"]}, "'surrogate-key' is wrong"),
        ("stop-snapshot", {"type": "blocking"}, "only an incremental snapshot can be stopped"),
        ("execute-snapshot", {"data-collections": ["a"] * 10_001}, "more than 10000 items"),
        ("execute-snapshot", {"data-collections": [r"(a+)\1"]}, "references to groups"),
        ("log", '{"message": "' + "x" * (1 << 20) + '"}', "more than 1048576 characters"),
        ("x" * 1001, None, "the field 'type' has more than 1000 characters"),
        ("log\nerror forged", None, "control characters"),
        ("log", None, "the field 'message' is wrong"),
        ("log", {"message": ""}, "the field 'message' is wrong"),
    ],
)
def test_malformed_signals_say_what_is_wrong(kind: str, data: Any, expected: str) -> None:
    assert expected in problem(kind, data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
FIELDS = st.sampled_from(
    ["data-collections", "type", "additional-conditions", "additional-condition", "surrogate-key", "message"]
)
DATA = st.text() | st.dictionaries(FIELDS, JSON | st.lists(st.text())).map(json.dumps) | JSON.map(json.dumps)


@given(st.text(), st.sampled_from([*TYPES, WINDOW_OPEN]) | st.text(), DATA)
def test_parsing_raises_nothing_else(name: str, kind: str, data: str) -> None:
    with contextlib.suppress(SignalError):
        action = parse_signal(Signal(name, kind, data))
        if isinstance(action, ExecuteSnapshot):
            assert ExecuteSnapshot.from_json(json.loads(json.dumps(action.to_json()))) == action


@given(DATA | JSON.map(lambda value: json.dumps({"id": value, "type": "log", "data": value})))
def test_reading_raises_nothing_else(text: str) -> None:
    with contextlib.suppress(SignalError):
        signal = read_signal(text)
        assert Signal.from_json(json.loads(json.dumps(signal.to_json()))) == signal


def test_a_line_of_a_file_is_a_signal() -> None:
    assert read_signal('{"id":"a","type":"log","data":{"message":"x"}}') == Signal("a", "log", '{"message": "x"}')
    assert read_signal('{"id":7,"type":"log","data":"{}"}') == Signal("7", "log", "{}")
    assert read_signal('{"id":"a","type":"pause-snapshot"}') == Signal("a", "pause-snapshot", "")
    for text in (
        "",
        "x",
        "[]",
        "{}",
        '{"id":"","type":"log"}',
        '{"id":true,"type":"log"}',
        '{"id":"\\ud800","type":"log"}',
    ):
        with pytest.raises(SignalError):
            read_signal(text)


def test_patterns_are_expanded_in_their_order_and_unknown_tables_stay() -> None:
    tables = ["public.a", "public.b", "shop.a"]
    assert expand(["shop\\..*", "public\\.nothing", ".*\\.a"], tables) == ["shop.a", "public\\.nothing", "public.a"]
    assert expand(["PUBLIC\\.a"], tables) == ["PUBLIC\\.a"]


def test_names_may_begin_with_the_database_if_the_source_has_one() -> None:
    names, tables = TableNames("PDB1"), ["S.A", "S.B"]
    assert expand(["PDB1\\.S\\.B", "PDB1.S.A"], tables, names) == ["S.B", "S.A"]
    assert expand([".*\\.S\\.A"], tables, names) == ["S.A"]
    assert expand(["S\\..*", "OTHER\\.S\\.A"], tables, names) == ["S.A", "S.B", "OTHER\\.S\\.A"]
    assert expand(["PDB1\\.S\\.A"], tables) == ["PDB1\\.S\\.A"]
    action = ExecuteSnapshot("s", (".*",), conditions=(Condition("pdb1\\.s\\.a", "x"),))
    assert [action.filter_of(name, names) for name in tables] == ["x", None]


def test_the_reason_is_told_if_a_name_has_another_database() -> None:
    names = TableNames("PDB1")
    for text in ("OTHER\\.S\\.A", "OTHER.S.A", "OTHER\\.S\\..*"):
        assert names.mistake(text) == "it names the database OTHER, and the query captures PDB1"
    for text in ("S\\.A", "S\\..*", "S.*", ".*", "PDB1\\.S\\.NONE", "pdb1.s.none"):
        assert names.mistake(text) == ""
    assert TableNames().mistake("OTHER.S.A") == ""


def test_the_first_matching_condition_counts() -> None:
    conditions = (Condition("public\\.a", "x"), Condition("PUBLIC\\..*", "y"))
    action = ExecuteSnapshot("s", (".*",), conditions=conditions)
    assert [action.filter_of(name) for name in ("public.a", "public.b", "shop.a")] == ["x", "y", None]


def test_the_log_message_names_the_offset() -> None:
    assert LogMessage("s", "at {}, {}").text("p1") == "at p1, {}"


def test_marks_of_windows_ask_for_nothing_and_are_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(control.log, "info", lambda event, **_: lines.append(event))
    state = IncrementalState(name="running")
    engine, notifications = Mock(spec=IncrementalEngine), Mock(spec=IncrementalSnapshotNotifications)
    signals = [
        Signal("a-open", WINDOW_OPEN, "{}"),
        Signal("a-close", WINDOW_CLOSE),
        Signal("b", "log", '{"message":"m"}'),
    ]
    applied = control.SignalControl(engine, notifications, Mock()).apply(state, signals, "1")
    assert (applied, state) == ([], IncrementalState(name="running"))
    assert lines == ["signal_received", "signal_message"]
