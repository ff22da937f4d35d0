"""Where LogMiner takes names from: dictionaries in the redo logs, and one in a file."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.load import load_options
from floodmark.connectors.oracle.capture.dictionaries import MOST_LOGS
from floodmark.connectors.registry import connector_module
from floodmark.errors import ConfigError, LogGoneError, PrivilegeError, SourceStateError, UnreadableLogError
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.oracle.model import dictionaries
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column
from tests.support.oracle.scene import COLUMNS, SCHEMA, Rows, Scene, applied
from tests.support.patience import within

IN_LOGS = {"log_mining_strategy": "redo_log_catalog"}
FILE = "/dictionaries/shop.ora"
IN_FILE = {"log_mining_strategy": "dictionary_from_file", "log.mining.path.dictionary": FILE}


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


LONG = pytest.mark.long


@pytest.fixture(params=["logminer", pytest.param("logminer_unbuffered", marks=LONG)])
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    with Scene(tmp_path, adapter=request.param) as made:
        yield made


@pytest.fixture
def buffered(tmp_path: Path) -> Iterator[Scene]:
    with Scene(tmp_path) as made:
        yield made


def stopped(scene: Scene, **more: str) -> tuple[InProcess, Rows]:
    query = scene.query(**more)
    rows = query.drain()
    query.stop()
    return query, rows


def asked(scene: Scene, what: str) -> list[str]:
    """Return the statements that have a text."""
    return [one.text for one in scene.database.statements if what in one.text]


def added(scene: Scene) -> list[str]:
    """Return the names of the logs that the last session was given."""
    found = [re.search(r"LOGFILENAME => '([^']+)'.*DBMS_LOGMNR\.(\w+)", text) for text in asked(scene, "ADD_LOGFILE")]
    names = [(one[1], one[2]) for one in found if one]
    begin = max(number for number, (_, option) in enumerate(names) if option == "NEW")
    return [name for name, _ in names[begin:]]


def with_dictionary(scene: Scene) -> list[str]:
    """Return the names of the archived logs in which a dictionary begins or ends."""
    logs = [log for thread in scene.database.threads.values() for log in thread.logs if log.begun or log.ended]
    return [name for log in logs for name in log.archived.values()]


def wider(scene: Scene) -> None:
    """Add a column, and insert a row that has it."""
    with scene.database.lock:
        columns = (*COLUMNS, column("N", "NUMBER(5,0)"))
        scene.database.ddl(scene.table, 'ALTER TABLE "S"."T" ADD ("N" NUMBER(5,0))', columns=columns)
        scene.database.background()
    with scene.change() as transaction:
        transaction.insert(scene.table, ID=Decimal(200), V=Decimal(1), PAD="wide", N=Decimal(7))


def after(rows: Rows) -> list[dict[str, Any]]:
    return [json.loads(row["value"])["after"] for row in rows]


def test_tables_are_known_as_they_were(scene: Scene) -> None:
    query, _ = stopped(scene, **IN_LOGS)
    scene.write(100)
    wider(scene)
    with scene.database.lock:
        fewer = (COLUMNS[0], COLUMNS[2], column("N", "NUMBER(5,0)"))
        scene.database.ddl(scene.table, 'ALTER TABLE "S"."T" DROP COLUMN "V"', columns=fewer)
        scene.database.background()
    with scene.change() as transaction:
        transaction.update(scene.table, {"ID": 200}, PAD="narrow")
    again = scene.query(query.offset, **IN_LOGS)
    found = after(again.drain())
    assert [sorted(row) for row in found] == [*[["ID", "PAD", "V"]] * 2, ["ID", "N", "PAD", "V"], ["ID", "N", "PAD"]]
    assert found[0] == {"ID": 100, "V": 100, "PAD": "new"}
    assert found[3] == {"ID": 200, "PAD": "narrow", "N": 7}
    assert again.offset["aside"] == []


def test_a_table_that_was_dropped_is_known(scene: Scene) -> None:
    other = scene.database.create_table(SCHEMA, "OTHER", COLUMNS, ["ID"], logged=False)
    query, _ = stopped(scene, **IN_LOGS)
    with scene.change() as transaction:
        transaction.insert(other, ID=Decimal(1), V=None, PAD="gone")
    with scene.database.lock:
        scene.database.drop_table(other)
        scene.database.background()
    assert after(scene.query(query.offset, **IN_LOGS).drain()) == [{"ID": 1, "V": None, "PAD": "gone"}]


@LONG
def test_a_table_that_was_created_since_is_known(scene: Scene) -> None:
    query, _ = stopped(scene, **IN_LOGS)
    other = scene.database.create_table(SCHEMA, "OTHER", COLUMNS, ["ID"])
    with scene.change() as transaction:
        transaction.insert(other, ID=Decimal(1), V=None, PAD="new")
    assert after(scene.query(query.offset, **IN_LOGS).drain()) == [{"ID": 1, "V": None, "PAD": "new"}]


@pytest.mark.parametrize("spread", [3, pytest.param(1, marks=LONG)])
def test_the_logs_of_the_dictionary_are_among_those_that_are_read(scene: Scene, spread: int) -> None:
    scene.database.settings.dictionary_logs = spread
    with scene.database.lock:
        for number in range(3):
            scene.database.create_table("X", f"X{number}", COLUMNS, logged=False)
    query, rows = stopped(scene, **IN_LOGS)
    assert len(asked(scene, "DBMS_LOGMNR_D.BUILD")) == 1
    for number in range(100, 104):
        scene.write(number)
        with scene.database.lock:
            scene.database.switch_log()
    rows += scene.query(query.offset, **IN_LOGS).drain()
    assert applied(rows) == scene.expected()
    assert with_dictionary(scene)[0] in added(scene)
    assert len(with_dictionary(scene)) == min(spread, 2)
    # Neither a restart nor a few logs need another one.
    assert len(asked(scene, "DBMS_LOGMNR_D.BUILD")) == 1
    assert all("DICT_FROM_REDO_LOGS + DBMS_LOGMNR.DDL_DICT_TRACKING" in one for one in asked(scene, "START_LOGMNR"))


@LONG
def test_another_dictionary_is_written_when_many_logs_have_followed(scene: Scene) -> None:
    query, rows = stopped(scene, **IN_LOGS)
    first = with_dictionary(scene)
    again = scene.query(query.offset, **IN_LOGS)
    for number in range(100, 100 + 2 * MOST_LOGS):
        scene.write(number)
        with scene.database.lock:
            scene.database.switch_log()
        rows += again.drain()
    scene.write(200)
    rows += again.drain()
    assert applied(rows) == scene.expected()
    assert 2 <= len(asked(scene, "DBMS_LOGMNR_D.BUILD")) <= 4
    used = added(scene)
    assert not set(first) & set(used)
    assert set(with_dictionary(scene)) & set(used)
    assert len(used) < 2 * MOST_LOGS


@LONG
def test_a_dictionary_whose_log_was_deleted_is_replaced(scene: Scene) -> None:
    query = scene.query(**IN_LOGS)
    rows = query.drain()
    scene.write(99)
    rows += query.drain()
    query.stop()
    scene.write(100)
    with scene.database.lock:
        scene.database.switch_log()
        for log in scene.database.threads[1].logs:
            if log.begun or log.ended:
                scene.database.delete_archived(1, log.sequence)
    again = scene.query(query.offset, **IN_LOGS)
    rows += again.drain()
    assert applied(rows) == scene.expected()
    assert len(asked(scene, "DBMS_LOGMNR_D.BUILD")) == 2


@LONG
def test_a_log_between_dictionary_and_position_that_was_deleted(buffered: Scene) -> None:
    query = buffered.query(**IN_LOGS)
    rows = query.drain()
    for number in (100, 101):
        buffered.write(number)
        with buffered.database.lock:
            buffered.database.switch_log()
    buffered.write(102)
    rows += query.drain()
    query.stop()
    with buffered.database.lock:
        sequences = [log.sequence for log in buffered.database.threads[1].logs if log.begun]
        buffered.database.delete_archived(1, sequences[-1] + 1)
        buffered.database.background()
    buffered.write(103)
    rows += buffered.query(query.offset, **IN_LOGS).drain()
    assert applied(rows) == buffered.expected()


@LONG
def test_a_dictionary_that_comes_after_an_altered_table(scene: Scene) -> None:
    """A query that had none: what was logged before the statement can't be shown."""
    query, _ = stopped(scene)
    scene.write(100)
    wider(scene)
    again = scene.query(query.offset, **IN_LOGS)
    assert not [row for row in again.drain() if row["table"] == "T"]
    (aside,) = again.offset["aside"]
    assert aside["name"] == "S.T"


@LONG
def test_a_query_may_change_to_dictionaries_in_the_log_and_back(scene: Scene) -> None:
    query, rows = stopped(scene)
    for number, options in enumerate((IN_LOGS, {}, IN_LOGS)):
        scene.write(100 + number)
        query = scene.query(query.offset, **options)
        rows += query.drain()
        query.stop()
        assert applied(rows) == scene.expected()


@LONG
def test_two_instances(tmp_path: Path) -> None:
    with Scene(tmp_path, OracleDatabase(threads=2)) as scene:
        more = {"rac_nodes": f"127.0.0.1,127.0.0.1:{scene.nodes[0].port}", **IN_LOGS}
        query, rows = stopped(scene, **more)
        for number in range(100, 106):
            scene.write(number, thread=1 + number % 2)
            with scene.database.lock:
                scene.database.switch_log(1 + number % 2)
        rows += scene.query(query.offset, **more).drain()
        assert applied(rows) == scene.expected()


@LONG
def test_a_long_transaction_that_began_before_the_dictionary(scene: Scene) -> None:
    with scene.database.lock:
        early = scene.database.begin()
        early.insert(scene.table, ID=Decimal(50), V=Decimal(1), PAD="open")
        scene.database.switch_log()
    query, rows = stopped(scene, **IN_LOGS)
    with scene.database.lock:
        early.update(scene.table, {"ID": 50}, V=Decimal(2))
        early.commit()
        scene.database.background()
    rows += scene.query(query.offset, **IN_LOGS).drain()
    assert applied(rows) == scene.expected()


def test_a_dictionary_that_is_archived_late_is_waited_for(buffered: Scene) -> None:
    query, rows = stopped(buffered)
    buffered.write(100)
    buffered.database.settings.archives = False
    again = buffered.query(query.offset, **IN_LOGS)
    deadline = time.monotonic() + within(30)
    while not asked(buffered, "DBMS_LOGMNR_D.BUILD") and time.monotonic() < deadline:
        assert again.step() == []
    for _ in range(5):
        assert again.step() == []
    assert len(asked(buffered, "DBMS_LOGMNR_D.BUILD")) == 1
    with buffered.database.lock:
        buffered.database.archive()
    rows += again.drain()
    assert applied(rows) == buffered.expected()


def test_an_account_that_may_not_write_a_dictionary(scene: Scene) -> None:
    scene.database.accounts[scene.database.account].denied.add("DBMS_LOGMNR_D")
    with pytest.raises(PrivilegeError, match="writing the dictionary into the redo logs") as caught:
        scene.query(**IN_LOGS).drain()
    assert "GRANT EXECUTE ON DBMS_LOGMNR_D" in caught.value.cure
    finding = next(one for one in checked(scene, **IN_LOGS) if one.check == "dictionary")
    assert finding.status == "error"
    assert "GRANT EXECUTE ON DBMS_LOGMNR_D" in finding.fix


def test_nothing_is_written_if_that_is_forbidden(scene: Scene) -> None:
    more = {**IN_LOGS, "log_mining_read_only": "true"}
    with pytest.raises(SourceStateError, match=r"log\.mining\.read\.only=true forbids to write one") as caught:
        scene.query(**more).drain()
    assert "DBMS_LOGMNR_D.BUILD" in caught.value.cure
    assert next(one for one in checked(scene, **more) if one.check == "dictionary").status == "error"
    with scene.database.lock:
        dictionaries.write_into_logs(scene.database, 1)
        scene.database.background()
    query = scene.query(**more)
    rows: Rows = []
    deadline = time.monotonic() + within(30)
    scene.write(100)
    # Without a commit of the query's own, the last change may stay in the server's memory.
    while applied(rows) != scene.expected() and time.monotonic() < deadline:
        rows += query.step()
        with scene.database.lock:
            scene.database.background()
    assert applied(rows) == scene.expected()
    assert not asked(scene, "DBMS_LOGMNR_D.BUILD")
    assert next(one for one in checked(scene, **more) if one.check == "dictionary").status == "ok"


def checked(scene: Scene, **more: str) -> list[Any]:
    found: list[Any] = connector_module("oracle", "checks.server").check_source(load_options(scene.options(**more)))
    return found


@LONG
def test_after_a_fail_over_a_new_query_has_another_dictionary_written(scene: Scene) -> None:
    stopped(scene, **IN_LOGS)
    with scene.database.lock:
        scene.database.switch_log()
        scene.database.settings.resetlogs = scene.database.clock.scn
        for thread in scene.database.threads.values():
            thread.current.resetlogs = scene.database.settings.resetlogs
        scene.database.background()
    query = scene.query(**IN_LOGS, topic_prefix="other")
    rows = query.drain()
    scene.write(100)
    rows += query.drain()
    assert applied(rows) == scene.expected()
    assert len(asked(scene, "DBMS_LOGMNR_D.BUILD")) == 2


def file_written(scene: Scene) -> None:
    with scene.database.lock:
        scene.database.dictionary_files[FILE] = dictionaries.made_of(scene.database)


def test_a_dictionary_in_a_file(scene: Scene) -> None:
    file_written(scene)
    query, rows = stopped(scene, **IN_FILE)
    scene.write(100)
    rows += scene.query(query.offset, **IN_FILE).drain()
    assert applied(rows) == scene.expected()
    assert all(f"DICTFILENAME => '{FILE}'" in one and "DICT_FROM" not in one for one in asked(scene, "START_LOGMNR"))


@LONG
def test_a_table_that_was_altered_needs_another_file(scene: Scene) -> None:
    file_written(scene)
    query, rows = stopped(scene, **IN_FILE)
    wider(scene)
    file_written(scene)
    rows += scene.query(query.offset, **IN_FILE).drain()
    assert after(rows)[-1] == {"ID": 200, "V": 1, "PAD": "wide", "N": 7}


def test_a_table_that_is_not_in_the_file_as_it_is(scene: Scene) -> None:
    file_written(scene)
    query, _ = stopped(scene, **IN_FILE)
    wider(scene)
    again = scene.query(query.offset, **IN_FILE)
    assert not [row for row in again.drain() if row["table"] == "T"]
    (aside,) = again.offset["aside"]
    assert aside["name"] == "S.T"


def mined(scene: Scene, **more: str) -> None:
    """Let a query read a change."""
    query, _ = stopped(scene, **IN_FILE)
    scene.write(100)
    scene.query(query.offset, **IN_FILE, **more).drain()


def test_a_file_that_is_missing(scene: Scene) -> None:
    with pytest.raises(UnreadableLogError, match=f"file {FILE} cannot be opened") as caught:
        mined(scene, log_mining_log_wait_ms="100")
    assert "log.mining.path.dictionary" in caught.value.cure


@LONG
def test_a_file_of_another_database(scene: Scene) -> None:
    file_written(scene)
    scene.database.dictionary_files[FILE].database_id += 1
    with pytest.raises(SourceStateError, match="DB_ID mismatch") as caught:
        mined(scene)
    assert "from this database" in caught.value.cure


@pytest.mark.parametrize(
    "more", [{"log_mining_strategy": "dictionary_from_file"}, {"log.mining.path.dictionary": FILE}]
)
def test_a_file_is_named_only_if_it_is_used(buffered: Scene, more: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"log\.mining\.path\.dictionary"):
        load_options(buffered.options(**more))


@LONG
def test_a_dictionary_that_is_never_archived_is_an_error(buffered: Scene) -> None:
    query, _ = stopped(buffered)
    buffered.write(100)
    buffered.database.settings.archives = False
    again = buffered.query(query.offset, **IN_LOGS, log_mining_log_wait_ms="200")
    with pytest.raises(LogGoneError, match="dictionary that was written into the redo logs") as caught:
        again.drain()
    assert "DICTIONARY_END" in caught.value.cure
