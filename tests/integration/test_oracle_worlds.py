"""What Oracle's connector meets outside of the happy world: other databases, lost logs, undo, statements, threads."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.load import load_options
from floodmark.connectors.registry import connector_module
from floodmark.errors import (
    CheckpointError,
    ConfigError,
    FloodmarkError,
    ForkedLogError,
    LogGoneError,
    LoginError,
    PrivilegeError,
    SchemaHistoryError,
    SourceStateError,
)
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.oracle.model.clock import PER_SECOND
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.redo import Operation
from tests.support.oracle.model.tables import column
from tests.support.oracle.scene import COLUMNS, SCHEMA, Rows, Scene, applied
from tests.support.patience import within


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


BUFFERED, UNBUFFERED = "logminer", "logminer_unbuffered"
ONLY_COMMITTED = {"database_connection_adapter": UNBUFFERED}


@pytest.fixture(params=[BUFFERED, UNBUFFERED])
def adapter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scene(tmp_path: Path, adapter: str) -> Iterator[Scene]:
    with Scene(tmp_path, adapter=adapter) as made:
        yield made


@pytest.fixture
def buffered(tmp_path: Path) -> Iterator[Scene]:
    """Return a scene for what depends on no adapter, or needs this one."""
    with Scene(tmp_path) as made:
        yield made


@pytest.fixture
def threads(tmp_path: Path, adapter: str) -> Iterator[Scene]:
    """Return a scene with two instances."""
    with Scene(tmp_path, OracleDatabase(threads=2), adapter=adapter) as made:
        yield made


def stopped(scene: Scene, **more: str) -> tuple[InProcess, Rows]:
    """Return a query that has delivered everything and was stopped, and its rows."""
    query = scene.query(**more)
    rows = query.drain()
    query.stop()
    return query, rows


def goes_on(scene: Scene, query: InProcess, rows: Rows, **more: str) -> Rows:
    """Deliver what follows in another process, and prove that the table is as the source's; return what came."""
    found = scene.query(query.offset, **more).drain()
    assert applied([*rows, *found]) == scene.expected()
    return found


def test_what_is_open_when_a_query_begins_is_delivered_when_it_is_committed(scene: Scene) -> None:
    with scene.database.lock:
        early = scene.database.begin()
        early.insert(scene.table, ID=Decimal(50), V=Decimal(1), PAD="open")
        early.update(scene.table, {"ID": 2}, V=Decimal(9))
        scene.database.switch_log()
    query, rows = stopped(scene)
    assert len(rows) == 20
    with scene.database.lock:
        early.delete(scene.table, {"ID": 3})
        early.commit()
        scene.database.background()
    assert [row["op"] for row in goes_on(scene, query, rows)] == ["c", "u", "d", "d"]


def test_what_is_open_may_be_cut_if_that_is_asked_for(buffered: Scene) -> None:
    with buffered.database.lock:
        early = buffered.database.begin()
        early.insert(buffered.table, ID=Decimal(50), V=Decimal(1), PAD="open")
    query, _ = stopped(buffered, log_mining_transaction_snapshot_boundary_mode="skip")
    with buffered.database.lock:
        early.delete(buffered.table, {"ID": 3})
        early.commit()
        buffered.database.background()
    assert [row["op"] for row in buffered.query(query.offset).drain() if row["value"]] == ["d"]


def test_log_switches_and_long_transactions(scene: Scene) -> None:
    query, rows = stopped(scene)
    with scene.database.lock:
        long = scene.database.begin()
        long.insert(scene.table, ID=Decimal(60), V=Decimal(1), PAD="long")
    for number in range(100, 106):
        scene.write(number)
        with scene.database.lock:
            scene.database.switch_log()
        found = scene.query(query.offset)
        rows += found.drain()
        found.stop()
        query.offset = found.offset
    with scene.database.lock:
        long.update(scene.table, {"ID": 60}, V=Decimal(2))
        long.commit()
        scene.database.background()
    assert [row["op"] for row in goes_on(scene, query, rows)] == ["c", "u"]


def test_archived_logs_alone(scene: Scene) -> None:
    more = {"log_mining_archive_log_only_mode": "true"}
    with scene.database.lock:
        scene.database.switch_log()
    query = scene.query(**more)
    rows = query.step()
    while query.offset["snapshot"] is not None:
        rows += query.step()
    scene.write(100)
    with scene.database.lock:
        scene.database.switch_log()
        scene.database.background()
    for _ in range(100):
        rows += query.step()
        if applied(rows) == scene.expected():
            return
    raise AssertionError("The archived changes don't come.")


def test_a_log_that_is_archived_late_is_waited_for(scene: Scene) -> None:
    query, rows = stopped(scene)
    scene.write(100)
    late = scene.database.threads[1].current
    destination = scene.database.destinations[0]
    with scene.database.lock:
        scene.database.destinations[0] = type(destination)(1, destination.name, "ERROR")
        scene.database.switch_log()
        scene.database.destinations[0] = destination
    again = scene.query(query.offset)
    assert again.step() == []
    with scene.database.lock:
        for log in scene.database.threads[1].logs:
            if log.sequence >= late.sequence and not log.is_current:
                log.archived[destination.name] = f"/arch/1_{log.sequence}_1.arc"
    rows += again.drain()
    assert applied(rows) == scene.expected()


def test_a_log_that_never_comes_is_an_error(scene: Scene) -> None:
    query, _ = stopped(scene)
    scene.write(100)
    late = scene.database.threads[1].current
    destination = scene.database.destinations[0]
    with scene.database.lock:
        scene.database.switch_log()
        scene.database.destinations[0] = type(destination)(1, destination.name, "ERROR")
        for _ in range(4):
            scene.database.switch_log()
        scene.database.destinations[0] = destination
        scene.database.switch_log()
    again = scene.query(query.offset, log_mining_log_wait_ms="100")
    with pytest.raises(LogGoneError, match=f"the log {late.sequence + 1} and later is missing") as caught:
        again.drain()
    assert "log.mining.log.wait.ms" in caught.value.cure


Break = Callable[[OracleDatabase, int], None]


def _other_database(database: OracleDatabase, scn: int) -> None:
    del scn
    database.settings.database_id += 1


def _reset_behind(database: OracleDatabase, scn: int) -> None:
    database.settings.resetlogs = scn + 1000


def _reset_before(database: OracleDatabase, scn: int) -> None:
    database.settings.resetlogs = scn - 1000


def _earlier(database: OracleDatabase, scn: int) -> None:
    database.clock.scn = scn - 1000


@pytest.mark.parametrize(
    ("broken", "kind", "words"),
    [
        (_other_database, ForkedLogError, "another one"),
        (_reset_behind, LogGoneError, "earlier life"),
        (_reset_before, ForkedLogError, "not part of it any more"),
        (_earlier, ForkedLogError, "restored to an earlier time"),
    ],
)
def test_another_database_or_another_life_of_it(
    scene: Scene, broken: Break, kind: type[FloodmarkError], words: str
) -> None:
    query, _ = stopped(scene)
    broken(scene.database, scene.database.clock.scn)
    with pytest.raises(kind, match=words) as caught:
        scene.query(query.offset).step()
    assert type(caught.value) is kind
    assert "checkpoint" in caught.value.cure


def test_undo_that_is_gone_ends_in_another_read_point(buffered: Scene) -> None:
    query = buffered.query(snapshot_chunk_bytes="8192")
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    buffered.write(100)
    buffered.database.settings.undo_scns = 5
    with buffered.database.step():
        pass
    rows = query.run(end)
    query.offset = end
    buffered.database.settings.undo_scns = 1 << 60
    assert rows == []
    rows += query.drain()
    assert applied(rows) == buffered.expected()


def test_a_table_that_is_altered_before_it_is_read(buffered: Scene) -> None:
    query = buffered.query()
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    with buffered.database.lock:
        wider = (*COLUMNS, column("N", "NUMBER(5,0)"))
        buffered.database.ddl(buffered.table, 'ALTER TABLE "S"."T" ADD ("N" NUMBER(5,0))', columns=wider)
        buffered.database.background()
    rows = query.run(end)
    query.offset = end
    assert rows == []
    rows += query.drain()
    assert [len(one) for one in applied(rows)] == [4] * 20


def altered(scene: Scene) -> None:
    """Add a column, and insert a row that has it."""
    with scene.database.lock:
        wider = (*COLUMNS, column("N", "NUMBER(5,0)"))
        scene.database.ddl(scene.table, 'ALTER TABLE "S"."T" ADD ("N" NUMBER(5,0))', columns=wider)
        scene.database.background()
    with scene.change() as transaction:
        transaction.insert(scene.table, ID=Decimal(200), V=Decimal(1), PAD="wide", N=Decimal(7))


def test_a_statement_in_the_log(scene: Scene) -> None:
    query = scene.query(include_schema_changes="true")
    query.drain()
    query.restart()
    altered(scene)
    change, row = query.drain()
    assert json.loads(change["value"])["ddl"] == 'ALTER TABLE "S"."T" ADD ("N" NUMBER(5,0))'
    assert json.loads(row["value"])["after"] == {"ID": 200, "V": 1, "PAD": "wide", "N": 7}
    assert change["position"] < row["position"]


@pytest.mark.parametrize("lost", [False, True])
def test_statements_are_followed_once_however_often_they_are_read(scene: Scene, lost: bool, tmp_path: Path) -> None:
    query, rows = stopped(scene)
    with scene.database.lock:
        # It keeps the log before the statement needed.
        long = scene.database.begin()
        long.insert(scene.database.create_table(SCHEMA, "OTHER", COLUMNS, ["ID"]), ID=Decimal(1), V=None, PAD="x")
    altered(scene)
    again = scene.query(query.offset)
    rows += again.drain()
    again.stop()
    assert applied(rows)[-1] == (200, 1, "wide", 7)
    with scene.change() as transaction:
        transaction.insert(scene.table, ID=Decimal(201), V=Decimal(1), PAD="later", N=None)
    if lost:
        shutil.rmtree(tmp_path / "state")
        with pytest.raises(SchemaHistoryError) as caught:
            scene.query(again.offset).drain()
        assert "snapshot.mode=recovery" in caught.value.cure
    rows += scene.query(again.offset, **({"snapshot_mode": "recovery"} if lost else {})).drain()
    assert applied(rows)[-1] == (201, 1, "later", None)
    with scene.database.lock:
        long.commit()


def test_changes_that_are_older_than_the_dictionary_are_told(scene: Scene) -> None:
    query, _ = stopped(scene)
    scene.write(100)
    altered(scene)
    with pytest.raises(FloodmarkError, match=r"SQL_REDO of S\.T can't be read"):
        scene.query(query.offset, errors_tables="fail").drain()
    again = scene.query(query.offset)
    assert not [row for row in again.drain() if row["table"] == "T"]
    (aside,) = again.offset["aside"]
    assert aside["name"] == "S.T"


HYBRID = {"log_mining_strategy": "hybrid"}


def test_changes_that_are_older_than_the_dictionary_are_known_by_numbers(scene: Scene) -> None:
    query, rows = stopped(scene, **HYBRID)
    scene.write(100)
    altered(scene)
    scene.write(101)
    with scene.database.lock:
        fewer = (COLUMNS[0], COLUMNS[2], column("N", "NUMBER(5,0)"))
        scene.database.ddl(scene.table, 'ALTER TABLE "S"."T" DROP COLUMN "V"', columns=fewer)
        scene.database.background()
    with scene.change() as transaction:
        transaction.update(scene.table, {"ID": 200}, PAD="narrow")
    found = scene.query(query.offset, **HYBRID).drain()
    after = [json.loads(row["value"])["after"] for row in found]
    assert [sorted(row) for row in after] == [
        *[["ID", "PAD", "V"]] * 2,
        *[["ID", "N", "PAD", "V"]] * 3,
        ["ID", "N", "PAD"],
    ]
    assert after[0] == {"ID": 100, "V": 100, "PAD": "new"}
    assert after[1] == {"ID": 1, "V": 100, "PAD": "row 1"}
    assert after[2] == {"ID": 200, "V": 1, "PAD": "wide", "N": 7}
    assert after[5] == {"ID": 200, "PAD": "narrow", "N": 7}
    assert rows


def test_a_statement_that_is_not_understood_leaves_no_numbers(scene: Scene) -> None:
    """The dictionary says how a table is now, so the places of columns before aren't known."""
    query, _ = stopped(scene, **HYBRID)
    with scene.database.lock:
        wider = (COLUMNS[0], column("N", "NUMBER(5,0)"), *COLUMNS[1:])
        scene.database.ddl(scene.table, 'ALTER TABLE "S"."T" WOBBLE', columns=wider)
        scene.database.background()
    scene.write(100)
    with scene.database.lock:
        others = (*COLUMNS[:2], column("X", "NUMBER(5,0)"), COLUMNS[2])
        scene.database.ddl(scene.table, 'ALTER TABLE "S"."T" WOBBLE AGAIN', columns=others)
        scene.database.background()
    again = scene.query(query.offset, **HYBRID)
    assert not [row for row in again.drain() if row["table"] == "T"]
    (aside,) = again.offset["aside"]
    assert aside["name"] == "S.T"


def test_changes_of_a_table_that_was_dropped_are_known_by_numbers(scene: Scene) -> None:
    other = scene.database.create_table(SCHEMA, "OTHER", COLUMNS, ["ID"], logged=False)
    options = {"table_include_list": r"S\.T,S\.OTHER", **HYBRID}
    query, _ = stopped(scene, **options)
    with scene.change() as transaction:
        transaction.insert(other, ID=Decimal(1), V=None, PAD="it's gone")
        transaction.update(other, {"ID": 1}, V=Decimal("-1200"))
    with scene.database.lock:
        scene.database.drop_table(other)
        scene.database.background()
    found = scene.query(query.offset, **options).drain()
    assert [json.loads(row["value"])["after"] for row in found] == [
        {"ID": 1, "V": None, "PAD": "it's gone"},
        {"ID": 1, "V": -1200, "PAD": "it's gone"},
    ]


@pytest.mark.parametrize("mode", ["none", "in", "regex"])
def test_a_table_that_is_dropped_before_its_changes_are_read(scene: Scene, mode: str) -> None:
    other = scene.database.create_table(SCHEMA, "OTHER", COLUMNS, ["ID"], logged=False)
    options = {"table_include_list": r"S\.T,S\.OTHER", "log_mining_query_filter_mode": mode}
    query, _ = stopped(scene, **options)
    with scene.change() as transaction:
        transaction.insert(other, ID=Decimal(1), V=None, PAD="gone")
    with scene.database.lock:
        scene.database.drop_table(other)
        scene.database.background()
    with pytest.raises(SourceStateError, match=r"a change of S\.OTHER that LogMiner can't show") as caught:
        scene.query(query.offset, **options).drain()
    assert "event.processing.failure.handling.mode=warn" in caught.value.cure
    rows = scene.query(query.offset, event_processing_failure_handling_mode="warn", **options).drain()
    assert "S.OTHER" in json.loads(rows[0]["value"])["reason"]
    assert rows[0]["op"] == "gap"


@pytest.mark.parametrize("operation", [Operation.UNSUPPORTED, Operation.MISSING_SCN])
def test_what_logminer_does_not_show_is_an_error_or_a_gap(scene: Scene, operation: Operation) -> None:
    query, rows = stopped(scene)
    with scene.change() as transaction:
        transaction.start()
        named = {"object_id": scene.table.object_id, "version": 1} if operation is Operation.UNSUPPORTED else {}
        scene.database.write(1, transaction.xid, operation, container=scene.database.pluggable, info="why", **named)
    scene.write(100)
    with pytest.raises(SourceStateError, match="change number"):
        scene.query(query.offset).drain()
    found = goes_on(scene, query, rows, event_processing_failure_handling_mode="warn")
    assert [row["op"] for row in found] == ["gap", "c", "u"]


def test_two_instances(threads: Scene) -> None:
    more = {"rac_nodes": f"127.0.0.1,127.0.0.1:{threads.nodes[0].port}"}
    query, rows = stopped(threads, **more)
    for number in range(100, 106):
        threads.write(number, thread=1 + number % 2)
        if number == 102:
            with threads.database.lock:
                threads.database.switch_log(2)
    found = goes_on(threads, query, rows, **more)
    assert len(found) == 12
    with threads.database.lock:
        threads.database.threads[2].status = "CLOSED"
    threads.write(200)
    # What was delivered comes again, since the former query's offset is the older one.
    rows += threads.query(query.offset).drain()
    assert applied(rows) == threads.expected()


def test_other_filters_inside_a_transaction(scene: Scene) -> None:
    more = {"segment_bytes": "65536", "max_batch_rows": "100", "snapshot_mode": "no_data"}
    query, _ = stopped(scene, **more)
    with scene.change() as transaction:
        for number in range(1000, 1400):
            transaction.insert(scene.table, ID=Decimal(number), V=Decimal(1), PAD="x" * 390)
    again = scene.query(query.offset, **more)
    rows = again.step()
    while not rows:
        rows = again.step()
    again.stop()
    assert 0 < len(rows) < 400
    with pytest.raises(CheckpointError, match="inside a transaction"):
        scene.query(again.offset, **{**more, "table_include_list": r"S\.T"}).step()
    rows += scene.query(again.offset, **more).drain()
    assert len(rows) == 400


def test_truncates(scene: Scene) -> None:
    query, rows = stopped(scene, skipped_operations="none")
    with scene.database.lock:
        scene.database.truncate(scene.table)
        scene.database.background()
    with scene.change() as transaction:
        transaction.insert(scene.table, ID=Decimal(1), V=Decimal(1), PAD="first")
    found = goes_on(scene, query, rows, skipped_operations="none")
    assert [row["op"] for row in found] == ["t", "c"]


def test_a_statement_of_ones_own_reads_as_of_the_same_number(buffered: Scene) -> None:
    own = {"snapshot.select.statement.overrides.S.T": "SELECT * FROM S.T WHERE ID < 5"}
    query = buffered.query(snapshot_select_statement_overrides="S.T", **own)
    end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
    buffered.write(2000)
    rows = query.run(end)
    assert [one[:2] for one in applied(rows)] == [(number, 0) for number in range(5)]


def _no_archive(database: OracleDatabase) -> None:
    database.settings.log_mode = "NOARCHIVELOG"


def _no_logging(database: OracleDatabase) -> None:
    database.settings.supplemental_min = "NO"


def _no_view(database: OracleDatabase) -> None:
    database.accounts[database.account].denied.add("V$LOGFILE")


def _no_logminer(database: OracleDatabase) -> None:
    database.accounts[database.account].denied.add("DBMS_LOGMNR")


@pytest.mark.parametrize(
    ("broken", "kind", "words", "cure"),
    [
        (_no_archive, SourceStateError, "NOARCHIVELOG", "ARCHIVELOG"),
        (_no_logging, SourceStateError, "no supplemental logging", "ADD SUPPLEMENTAL LOG DATA"),
        (_no_view, PrivilegeError, "reading the list of logs", "GRANT SELECT ON V_"),
        (_no_logminer, PrivilegeError, "asking LogMiner", "GRANT EXECUTE ON DBMS_LOGMNR"),
    ],
)
def test_a_database_that_is_not_prepared(
    buffered: Scene, broken: Callable[[OracleDatabase], None], kind: type[FloodmarkError], words: str, cure: str
) -> None:
    broken(buffered.database)
    with pytest.raises(kind, match=words) as caught:
        buffered.query().drain()
    assert cure in caught.value.cure
    findings = checked(buffered)
    assert [one for one in findings if one.status == "error"]


def test_a_table_whose_columns_are_not_logged(buffered: Scene) -> None:
    buffered.database.create_table(SCHEMA, "LACKING", COLUMNS, ["ID"], logged=False, supplemental=False)
    with pytest.raises(SourceStateError, match=r"unchanged columns of S\.LACKING") as caught:
        buffered.query().drain()
    assert "ALTER TABLE S.LACKING ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS" in caught.value.cure


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ({"database_password": "wrong"}, LoginError, "ORA-01017"),
        ({"database_pdb_name": "NOWHERE"}, SourceStateError, "ORA-65011"),
        ({"archive_destination_name": "LOG_ARCHIVE_DEST_9"}, SourceStateError, "LOG_ARCHIVE_DEST_9"),
    ],
)
def test_wrong_options(buffered: Scene, more: dict[str, str], kind: type[FloodmarkError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        buffered.query(**more).drain()
    assert caught.value.cure
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"database_connection_adapter": "golden_gate"}, "must be one of logminer"),
        ({**ONLY_COMMITTED, "log_mining_transaction_retention_ms": "60000"}, "retention.ms' has no meaning"),
        ({**ONLY_COMMITTED, "log_mining_transaction_snapshot_boundary_mode": "skip"}, "boundary.mode' has no meaning"),
        ({"log_mining_strategy": "elsewhere"}, "must be one of online_catalog, hybrid"),
        ({"log_mining_strategy": "hybrid", "lob_enabled": "true"}, "exclude each other"),
        ({"lob_enabled": "true", "log_mining_include_redo_sql": "true"}, "exclude each other"),
        ({"database_pdb_name": "a b"}, "database.pdb.name"),
        ({"incremental_snapshot_read_points": "watermarks"}, "signal.data.collection"),
        ({"database_url": "jdbc:oracle:oci:@db"}, "jdbc:oracle:thin:@"),
    ],
)
def test_options_that_are_not_allowed(buffered: Scene, more: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_options(buffered.options(**more))


def checked(scene: Scene, offset: dict[str, Any] | None = None, **more: str) -> list[Any]:
    found: list[Any] = connector_module("oracle", "checks.server").check_source(
        load_options(scene.options(**more)), offset
    )
    return found


def test_checks(buffered: Scene) -> None:
    query, _ = stopped(buffered)
    found = checked(buffered, query.offset)
    assert not [one for one in found if one.status == "error"], found
    assert {"log mode", "supplemental logging", "LogMiner", "logs", "checkpoint", "tables"} <= {
        one.check for one in found
    }
    assert next(one for one in found if one.check == "evidence").status == "warning"
    missing = checked(buffered, database_pdb_name="")
    assert "Set database.pdb.name" in next(one for one in missing if one.check == "containers").fix


def test_log_status(buffered: Scene) -> None:
    query, _ = stopped(buffered)
    status = connector_module("oracle", "log_status").log_status(load_options(buffered.options()), query.offset["log"])
    assert status.problem == ""
    assert status.lag_bytes < 100


def test_typed_rows(buffered: Scene) -> None:
    rows = buffered.query(format="rows").drain()
    assert sorted(row["after"]["ID"] for row in rows) == list(range(20))


SESSIONS = [
    ({"log_mining_username_include_list": "shop"}, ["SHOP by null", "SHOP by web"]),
    ({"log_mining_username_exclude_list": "SHOP"}, ["BATCH by job", "BATCH by null"]),
    ({"log_mining_clientid_include_list": "WEB"}, ["BATCH by null", "SHOP by null", "SHOP by web"]),
    ({"log_mining_clientid_exclude_list": "web,other"}, ["BATCH by job", "BATCH by null", "SHOP by null"]),
    ({"log_mining_clientid_include_list": "web", "log_mining_query_filter_mode": "in"}, ["SHOP by web"]),
]
"""Options, and whose changes come. Without an identifier nobody knows whose they are, but in the mode ``in``."""


@pytest.mark.parametrize(("options", "wanted"), SESSIONS)
def test_changes_are_chosen_by_who_made_them(scene: Scene, options: dict[str, str], wanted: list[str]) -> None:
    options = {**options, "table_include_list": rf"{SCHEMA}\.T"}
    query, _ = stopped(scene, **options)
    sessions = [("SHOP", "web"), ("SHOP", None), ("BATCH", "job"), ("BATCH", None)]
    for number, (user, client) in enumerate(sessions):
        with scene.database.lock:
            transaction = scene.database.begin(user=user, client=client)
            transaction.insert(scene.table, ID=Decimal(100 + number), PAD=f"{user} by {client or 'null'}")
            transaction.commit()
    with scene.database.lock:
        scene.database.background()
    found = scene.query(query.offset, **options).drain()
    assert sorted(json.loads(row["value"])["after"]["PAD"] for row in found) == wanted


def following(query: InProcess, wanted: Callable[[dict[str, Any]], bool]) -> Rows:
    """Return what a query delivers until a row comes that is wanted."""
    rows: Rows = []
    while not any(map(wanted, rows)):
        rows += query.step()
    return rows


def aged(scene: Scene, minutes: int) -> None:
    """Let time pass; the stand-in's clock counts changes."""
    clock = scene.database.clock
    with scene.database.lock:
        clock.jump(clock.scn + minutes * 60 * PER_SECOND)
        scene.database.background()


def test_transactions_that_are_open_for_too_long_are_left_out_and_told(buffered: Scene) -> None:
    options = {"log_mining_transaction_retention_ms": "600000"}
    query, rows = stopped(buffered, **options)
    with buffered.database.lock:
        forgotten, idle = buffered.database.begin(), buffered.database.begin()
        forgotten.insert(buffered.table, ID=Decimal(70), V=Decimal(1), PAD="forgotten")
        idle.start()
    begin = buffered.database.clock.scn
    aged(buffered, 8)
    buffered.write(100)
    again = buffered.query(query.offset, **options)
    rows += again.drain()
    assert applied(rows) == buffered.expected()
    aged(buffered, 8)
    found = following(again, lambda row: row["op"] == "gap")
    buffered.write(101)
    found += again.drain()
    again.stop()
    (gap,) = [row for row in found if row["op"] == "gap"]
    told = json.loads(gap["value"])
    assert forgotten.xid.upper() in told["reason"]
    assert told["option"] == "log.mining.transaction.retention.ms=600000"
    assert applied([*rows, *found]) == buffered.expected()
    assert again.offset["bookmark"]["begin"] > begin
    # What it and the idle one change from now on comes after a restart, too.
    with buffered.database.lock:
        forgotten.insert(buffered.table, ID=Decimal(71), V=Decimal(1), PAD="forgotten")
        idle.insert(buffered.table, ID=Decimal(72), V=Decimal(1), PAD="idle")
        forgotten.commit()
        idle.commit()
        buffered.database.background()
    last = buffered.query(again.offset, **options)
    assert [json.loads(row["value"])["after"]["ID"] for row in last.drain()] == [72]
    assert "abandoned" not in last.offset["bookmark"]


def test_a_flush_table_that_another_query_writes_stops_nothing(scene: Scene) -> None:
    query = scene.query()
    rows = query.drain()
    scene.write(99)
    rows += query.drain()
    query.restart()
    with scene.database.lock:
        other = scene.database.begin(session=True)
        (table,) = (one for one in scene.database.tables if one.name == "LOG_MINING_FLUSH")
        other.update(table, {}, LAST_SCN=Decimal(1))
    scene.write(100)
    deadline = time.monotonic() + within(30)
    while len(rows) < 24 and time.monotonic() < deadline:
        with scene.database.lock:
            scene.database.background()
        rows += query.step()
    assert len(rows) == 24
    with scene.database.lock:
        other.commit()
    rows += query.drain()
    assert applied(rows) == scene.expected()


def test_undecided_transactions_must_be_decided_before_a_query_begins(scene: Scene) -> None:
    with scene.database.lock:
        prepared = scene.database.begin()
        prepared.insert(scene.table, ID=Decimal(70), V=Decimal(1), PAD="prepared")
        prepared.in_doubt = True
    with pytest.raises(SourceStateError, match="prepared and aren't decided") as caught:
        scene.query().step()
    assert "COMMIT FORCE" in caught.value.cure
    assert next(one for one in checked(scene) if one.check == "open transactions").status == "error"
    with scene.database.lock:
        prepared.commit()
        scene.database.background()
    assert applied(scene.query().drain()) == scene.expected()


def test_a_transaction_that_is_undecided_while_its_instance_is_restarted(scene: Scene) -> None:
    query, rows = stopped(scene)
    with scene.database.lock:
        prepared = scene.database.begin()
        prepared.insert(scene.table, ID=Decimal(70), V=Decimal(1), PAD="prepared")
    scene.write(100)
    between = scene.query(query.offset)
    rows += between.drain()
    prepared.in_doubt = True
    for number in range(101, 104):
        scene.write(number)
        rows += between.drain()
    with scene.database.lock:
        prepared.commit()
        scene.database.background()
    if scene.adapter == BUFFERED:
        assert applied([*rows, *between.drain()]) == scene.expected()
        return
    with pytest.raises(SourceStateError, match="began before all that is shown as open") as caught:
        between.drain()
    assert "execute-snapshot" in caught.value.cure
    between.stop()
    later = scene.query(between.offset, event_processing_failure_handling_mode="warn").drain()
    assert "gap" in [row["op"] for row in later]
    assert 70 not in [row[0] for row in applied([*rows, *later])]


def test_an_offset_of_another_adapter(scene: Scene) -> None:
    query, rows = stopped(scene)
    scene.adapter = BUFFERED if scene.adapter == UNBUFFERED else UNBUFFERED
    scene.write(100)
    if scene.adapter == UNBUFFERED:
        assert [row["op"] for row in goes_on(scene, query, rows)] == ["c", "u"]
        return
    with pytest.raises(CheckpointError, match=r"begun with database\.connection\.adapter") as caught:
        scene.query(query.offset).step()
    assert "new checkpoint" in caught.value.cure


def test_statements_of_open_transactions_are_followed_with_their_commit(tmp_path: Path) -> None:
    """Committed transactions are read again from where an older one began, and statements have no commit of theirs."""
    with Scene(tmp_path, adapter=UNBUFFERED) as scene:
        query, rows = stopped(scene, include_schema_changes="true")
        with scene.database.lock:
            long = scene.database.begin()
            long.insert(scene.database.create_table(SCHEMA, "OTHER", COLUMNS, ["ID"]), ID=Decimal(1), PAD="x")
        altered(scene)
        again = scene.query(query.offset, include_schema_changes="true")
        found = again.drain()
        scene.write(110)
        found += again.drain()
        with scene.database.lock:
            long.commit()
            scene.database.background()
        scene.write(111)
        found += again.drain()
        statements = [json.loads(row["value"]) for row in found if row["topic"] == "p"]
        assert [one["ddl"].split()[0] for one in statements] == ["CREATE", "ALTER"]
        assert [row["position"] for row in found] == sorted({row["position"] for row in found})
        assert [row[0] for row in applied([*rows, *found])] == [row[0] for row in scene.expected()]


def test_a_backlog_is_read_once(tmp_path: Path) -> None:
    with Scene(tmp_path, adapter=UNBUFFERED) as scene:
        query, rows = stopped(scene)
        begin = scene.database.clock.scn
        for number in range(100, 106):
            scene.write(number)
            with scene.database.lock:
                scene.database.switch_log()
        asked = len(scene.database.statements)
        again = scene.query(query.offset)
        rows += again.drain()
        scene.write(200)
        rows += again.drain()
        assert applied(rows) == scene.expected()
        starts = [
            int(found[1])
            for one in scene.database.statements[asked:]
            if (found := re.search(r"START_LOGMNR\(startScn => '(\d+)'", one.text))
        ]
        assert starts
        assert sum(start <= begin for start in starts) <= 2
