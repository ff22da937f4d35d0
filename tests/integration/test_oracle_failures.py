"""Oracle's error numbers, through its own driver: what follows from each class of them, as docs/oracle.md says."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.load import load_options
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.server import failures
from floodmark.connectors.oracle.server.connection import close, connect, run
from floodmark.errors import (
    CaptureError,
    ConnectError,
    FloodmarkError,
    LockTimeoutError,
    LoginError,
    NotReadyError,
    PrivilegeError,
    ReadPointGoneError,
    SourceStateError,
    StatementTimeoutError,
    UnreadableLogError,
)
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.oracle.model.failing import CONNECTING, LOGGING_IN, Failing
from tests.support.oracle.scene import Rows, Scene, applied

DOCS = Path(__file__).parents[2] / "docs" / "oracle.md"
CLASSES: Mapping[str, tuple[frozenset[int], type[FloodmarkError]]] = {
    "the session is lost": (failures.LOST, ConnectError),
    "another session may do it": (failures.STALE, ConnectError),
    "rows as of a number are gone": (failures.READ_POINT_LOST, ReadPointGoneError),
    "somebody else holds a lock": (failures.LOCKED, LockTimeoutError),
    "it took too long": (failures.TOO_LONG, StatementTimeoutError),
    "a log can't be read": (failures.UNREADABLE, UnreadableLogError),
    "a right is missing": (failures.NO_RIGHT, PrivilegeError),
    "no such pluggable database": (failures.PDB, SourceStateError),
    "any other": (frozenset((4043, 903, 1422)), SourceStateError),
}
"""The classes of statements' errors, as the documentation names them."""
AT_LOGIN: Mapping[str, tuple[frozenset[int], type[FloodmarkError]]] = {
    "the login is refused": (failures.LOGIN, LoginError),
    "the database isn't ready": (failures.NOT_READY, NotReadyError),
}
LISTENERS = sorted(number for number in failures.NOT_READY if 12500 <= number < 12530)
CONTENTS, START, ADD, ROWS = "V$LOGMNR_CONTENTS", "START_LOGMNR", "ADD_LOGFILE", 'FROM "S"."T"'
HARMLESS = "SELECT 1 FROM DUAL"


def first_of(rows: Sequence[Any]) -> list[Any]:
    """Return rows of a table, of which ``make test`` runs the first one."""
    given = [row if isinstance(row, tuple) else (row,) for row in rows]
    return [pytest.param(*row, marks=pytest.mark.long if place else ()) for place, row in enumerate(given)]


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Scene(tmp_path) as made:
        yield made


def options(scene: Scene, **more: str) -> OracleOptions:
    found = load_options(scene.options(**more))
    assert isinstance(found, OracleOptions)
    return found


def documented() -> dict[str, set[int]]:
    """Return the numbers of each class that the documentation lists."""
    section = DOCS.read_text(encoding="utf-8").split("### What follows from Oracle's errors\n")[1].split("\n#")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("|")]
    return {row[1].strip(): {int(one) for one in re.findall(r"\d+", row[2])} for row in rows[2:]}


def test_the_documentation_lists_all_numbers() -> None:
    classes = {**CLASSES, **AT_LOGIN}
    found = documented()
    assert found.pop("any other") == set()
    assert found == {name: numbers for name, (numbers, _) in classes.items() if name != "any other"}


def test_each_number_is_of_one_class() -> None:
    numbers = [number for some, _ in CLASSES.values() for number in some]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("name", CLASSES)
def test_statements_that_fail(scene: Scene, name: str) -> None:
    numbers, kind = CLASSES[name]
    each_is(scene, sorted(numbers)[:1], kind)


@pytest.mark.long
@pytest.mark.parametrize("name", CLASSES)
def test_all_statements_that_fail(scene: Scene, name: str) -> None:
    numbers, kind = CLASSES[name]
    each_is(scene, sorted(numbers), kind)


def each_is(scene: Scene, numbers: Iterable[int], kind: type[FloodmarkError]) -> None:
    """Prove that errors of some numbers are of a kind, and say what was done and what helps."""
    for number in numbers:
        conn = connect(options(scene))
        scene.database.failing = [Failing(number, HARMLESS)]
        with pytest.raises(FloodmarkError, match=rf"ORA-{number:05d}: the stand-in was told to fail") as caught:
            run(conn, HARMLESS, "asking for something")
        scene.database.failing = []
        close(conn)
        assert type(caught.value) is kind, number
        assert "asking for something" in caught.value.what
        assert caught.value.cure


@pytest.mark.long
@pytest.mark.parametrize("name", AT_LOGIN)
def test_logins_that_fail(scene: Scene, name: str) -> None:
    numbers, kind = AT_LOGIN[name]
    for number in sorted(numbers.difference(LISTENERS)):
        refused(scene, Failing(number, LOGGING_IN), kind)


@pytest.mark.parametrize("number", first_of(LISTENERS))
def test_listeners_that_refuse(scene: Scene, number: int) -> None:
    refused(scene, Failing(number, CONNECTING), NotReadyError)


def refused(scene: Scene, failing: Failing, kind: type[FloodmarkError]) -> None:
    scene.database.failing = [failing]
    with pytest.raises(FloodmarkError, match=f"ORA-{failing.code:05d}") as caught:
        connect(options(scene))
    assert type(caught.value) is kind, failing
    assert "dbz" not in caught.value.what
    assert caught.value.cure


def begun(scene: Scene, **more: str) -> tuple[InProcess, Rows]:
    """Return a query behind its snapshot, and its rows."""
    query = scene.query(**more)
    rows = query.drain()
    query.restart()
    scene.write(100)
    return query, rows


@pytest.mark.parametrize(
    ("number", "at"),
    first_of(
        [
            *((number, CONTENTS) for number in (28, 600, 3113, 604, 4030)),
            *((number, START) for number in (1089, 1327, 1333)),
            *((number, LOGGING_IN) for number in (1033, 20)),
            *((number, CONNECTING) for number in (12514, 12528, 12519)),
        ]
    ),
)
def test_what_goes_on_in_a_new_session(scene: Scene, number: int, at: str) -> None:
    query, rows = begun(scene)
    scene.server.cut_connections()
    failing = Failing(number, at, times=2)
    scene.database.failing = [failing]
    rows += query.drain()
    assert failing.met == 2
    assert applied(rows) == scene.expected()


@pytest.mark.parametrize(("number", "at"), first_of([(308, CONTENTS), (310, CONTENTS), (1291, START), (1284, ADD)]))
def test_logs_that_can_be_read_later(scene: Scene, number: int, at: str) -> None:
    query, rows = begun(scene)
    failing = Failing(number, at, times=3)
    scene.database.failing = [failing]
    rows += query.drain()
    assert failing.met == 3
    assert applied(rows) == scene.expected()


@pytest.mark.parametrize("number", first_of(sorted(failures.READ_POINT_LOST)))
def test_rows_that_are_gone_are_read_at_another_read_point(scene: Scene, number: int) -> None:
    failing = Failing(number, ROWS, times=1)
    scene.database.failing = [failing]
    query = scene.query()
    rows = query.drain()
    assert failing.met == 1
    assert applied(rows) == scene.expected()


@pytest.mark.parametrize("number", first_of(sorted(failures.LOCKED)))
def test_a_flush_table_that_is_locked_stops_nothing(scene: Scene, number: int) -> None:
    failing = Failing(number, "UPDATE LOG_MINING_FLUSH", times=1)
    scene.database.failing = [failing]
    query, rows = begun(scene)
    rows += query.drain()
    assert failing.met == 1
    assert applied(rows) == scene.expected()


@pytest.mark.parametrize(
    ("failing", "kind", "cure"),
    first_of(
        [
            (Failing(1017, LOGGING_IN), LoginError, "database.password"),
            (Failing(28000, LOGGING_IN), LoginError, "locked"),
            (Failing(1031, CONTENTS), PrivilegeError, "floodmark check"),
            (Failing(942, "V$ARCHIVED_LOG"), PrivilegeError, "GRANT SELECT ON V_"),
            (Failing(6550, START), PrivilegeError, "GRANT EXECUTE ON DBMS_LOGMNR"),
            (Failing(65011, "SET CONTAINER"), SourceStateError, "database.pdb.name"),
            (Failing(1013, CONTENTS), StatementTimeoutError, "database.query.timeout.ms"),
            (Failing(1555, CONTENTS), ReadPointGoneError, "undo_retention"),
            (Failing(1422, CONTENTS), SourceStateError, "Oracle Database Error Messages"),
            (Failing(54, START), LockTimeoutError, "holds the lock"),
        ]
    ),
)
def test_what_ends_a_query_at_once(scene: Scene, failing: Failing, kind: type[FloodmarkError], cure: str) -> None:
    query, _ = begun(scene)
    scene.server.cut_connections()
    scene.database.failing = [Failing(failing.code, failing.at)]
    with pytest.raises(FloodmarkError, match=f"ORA-{failing.code:05d}") as caught:
        query.drain()
    assert type(caught.value) is kind
    assert cure in caught.value.cure
    assert scene.database.failing[0].met == 1


@pytest.mark.parametrize(
    ("number", "at", "cure"),
    first_of(
        [
            (28, CONTENTS, "alert log"),
            (604, START, "alert log"),
            (12514, CONNECTING, "database.dbname"),
            (1034, LOGGING_IN, "database is open"),
        ]
    ),
)
def test_retries_come_to_an_end(scene: Scene, number: int, at: str, cure: str) -> None:
    query, _ = begun(scene)
    scene.server.cut_connections()
    scene.database.failing = [Failing(number, at)]
    with pytest.raises(CaptureError, match=f"after 3 retries.*ORA-{number:05d}") as caught:
        query.drain()
    assert cure in str(caught.value)
    assert scene.database.failing[0].met >= 4


@pytest.mark.parametrize(("number", "at"), first_of([(308, CONTENTS), (1291, START), (1284, ADD)]))
def test_logs_that_can_never_be_read(scene: Scene, number: int, at: str) -> None:
    query, _ = begun(scene, log_mining_log_wait_ms="100")
    scene.database.failing = [Failing(number, at)]
    with pytest.raises(UnreadableLogError, match=f"ORA-{number:05d}") as caught:
        query.drain()
    assert "archived logs" in caught.value.cure


@pytest.mark.long
def test_a_server_that_does_not_answer_for_a_while(scene: Scene) -> None:
    query, rows = begun(scene, database_query_timeout_ms="300")
    ended = threading.Event()

    def hold() -> None:
        with scene.database.lock:
            ended.wait(1)

    holder = threading.Thread(target=hold)
    holder.start()
    rows += query.drain()
    holder.join()
    assert applied(rows) == scene.expected()


def test_a_table_that_is_locked_when_a_query_begins(scene: Scene) -> None:
    scene.database.failing = [Failing(54, "LOCK TABLE")]
    with pytest.raises(LockTimeoutError, match="ORA-00054") as caught:
        scene.query().drain()
    assert "holds the lock" in caught.value.cure
