"""What the adapter ``xstream`` meets: servers that are busy, lost, or somebody else's, JVMs that end, and wrong paths.

The Java classes that lead to the server are our own (``tests/support/oracle/outbound``).
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.load import load_options
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.xstream import outbound
from floodmark.connectors.registry import connector_module
from floodmark.errors import (
    CaptureError,
    CheckpointError,
    FloodmarkError,
    LogGoneError,
    LoginError,
    SourceStateError,
)
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column
from tests.support.oracle.outbound.server import BUSY, OutboundServer
from tests.support.oracle.outbound.world import World
from tests.support.oracle.scene import COLUMNS, SCHEMA, Rows, applied
from tests.support.patience import within

SMALL = {"segment_bytes": "65536", "max_batch_rows": "150"}
LARGE = [column("ID", "NUMBER(9,0)", nullable=False), column("C", "CLOB"), column("B", "BLOB"), column("X", "XMLTYPE")]


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


def stopped(world: World, **more: str) -> tuple[InProcess, Rows]:
    """Return a query that has delivered everything and was stopped, and its rows."""
    query = world.query(**more)
    rows = query.drain()
    query.stop()
    return query, rows


def goes_on(world: World, query: InProcess, rows: Rows, **more: str) -> Rows:
    """Deliver what follows in another process, and prove that everything came exactly once; return what came."""
    going = world.query(query.offset, **more)
    found = going.drain()
    going.stop()
    query.offset = going.offset
    rows += found
    assert applied(rows) == world.expected()
    proven(rows)
    return found


def proven(rows: Rows) -> None:
    """Prove that positions ascend."""
    positions = [row["position"] for row in rows if row["op"] not in ("r", None)]
    assert positions == sorted(set(positions))


def until(query: InProcess, count: int) -> Rows:
    rows: Rows = []
    deadline = time.monotonic() + within(60)
    while len(rows) < count and time.monotonic() < deadline:
        rows += query.step()
    assert len(rows) == count
    return rows


def fails(kind: type[FloodmarkError], act: Callable[[], Any], words: str) -> FloodmarkError:
    with pytest.raises(FloodmarkError, match=words) as caught:
        act()
    assert isinstance(caught.value, kind), repr(caught.value)
    return caught.value


def jvms(parent: int = os.getpid()) -> set[int]:
    """Return the processes of JVMs that a process has started for XStream."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes().split(b"\0")
            started_by = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"py4j.GatewayServer" in command and started_by == parent:
            found.add(int(place.name))
    return found


def is_running(pid: int) -> bool:
    """Return whether a process is there, and hasn't ended."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_log_goes_on_from_query_to_query_and_is_acknowledged(world: World) -> None:
    query, rows = stopped(world)
    for number in (100, 101):
        world.write(number)
        world.outbound.again = number - 99  # records that were delivered are sent again
        assert len(goes_on(world, query, rows)) == 2
        assert query.offset["bookmark"]["lcr"] > world.outbound.attached[-1].hex()
    processed = world.outbound.processed
    assert processed == sorted(processed)
    # No more than the last offset has, and no less than the one before.
    assert processed[-1].hex() <= query.offset["bookmark"]["lcr"]
    assert not jvms()


@pytest.mark.long
def test_lost_servers_and_jvms_while_a_query_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[outbound.OutboundServer] = []
    attach = outbound.OutboundServer.attach

    def attached(self: outbound.OutboundServer, position: bytes | None, scn: int) -> None:
        made.append(self)
        attach(self, position, scn)

    monkeypatch.setattr(outbound.OutboundServer, "attach", attached)
    query = world.query(errors_max_retries="10")
    rows = query.drain()
    query.restart()
    world.write(100)
    rows += until(query, 2)
    world.outbound.cut_connection()
    world.write(101)
    rows += until(query, 2)
    pid = made[-1].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    world.write(102)
    rows += until(query, 2)
    world.outbound.refusals = [BUSY, "26653 ORA-26653: Apply did not start properly and is currently in state ABORTED"]
    world.outbound.cut_connection()
    world.write(103)
    rows += until(query, 2)
    assert applied(rows) == world.expected()
    proven(rows)


@pytest.mark.long
def test_a_server_that_is_in_use(world: World) -> None:
    query, rows = stopped(world)
    world.write(100)
    world.outbound.refusals = [BUSY] * 50
    fails(CaptureError, lambda: until(world.query(query.offset), 2), "Another client is attached")
    world.outbound.refusals = [BUSY]
    goes_on(world, query, rows)


@pytest.mark.long
def test_queries_that_stop_inside_a_transaction(world: World) -> None:
    query, rows = stopped(world, **SMALL)
    with world.change() as transaction:
        for number in range(100, 700):
            transaction.insert(world.table, ID=Decimal(number), V=Decimal(1), PAD="x" * 200)
    inside = 0
    for again in range(100):
        going = world.query(query.offset, **SMALL)
        world.outbound.again = again % 3
        found: Rows = []
        deadline = time.monotonic() + within(60)
        while not found and time.monotonic() < deadline:
            found = going.step()
        going.stop()
        rows += found
        query.offset = going.offset
        inside += "filters" in query.offset["bookmark"]
        if len(rows) >= 620:
            break
    assert inside > 1
    assert applied(rows) == world.expected()
    proven(rows)


@pytest.mark.long
def test_a_server_that_was_told_to_forget(world: World) -> None:
    query, _ = stopped(world)
    world.write(100)
    world.outbound.forget_all()
    fails(LogGoneError, world.query(query.offset).drain, "told to forget its records")
    # A new snapshot is the way out.
    again = world.query(query.offset, snapshot_mode="when_needed")
    assert applied(again.drain()) == world.expected()


@pytest.mark.long
def test_other_servers(world: World) -> None:
    query, rows = stopped(world)
    fails(
        SourceStateError, world.query(query.offset, xstream_out_server_name="NOBODY").drain, "no outbound server NOBODY"
    )
    world.outbound.state.user = "SOMEBODY"
    fails(SourceStateError, world.query(query.offset).drain, "isn't its account")
    world.outbound.state.user = ""
    world.outbound.state.committed_only = False
    fails(SourceStateError, world.query(query.offset).drain, "before they are committed")
    world.outbound.state.committed_only = True
    world.outbound.state.status = "ABORTED"
    fails(SourceStateError, world.query(query.offset).drain, "was aborted")
    world.outbound.state.status = "ATTACHED"
    with OutboundServer(world.database) as another:
        # Another one of the same database, which still has what follows.
        world.write(100)
        goes_on(world, query, rows, xstream_out_server_name=another.name)
    world.write(101)
    world.outbound.database_name = "OTHER.EXAMPLE.ORG"
    fails(SourceStateError, world.query(query.offset).drain, "sends changes of the database 'OTHER.EXAMPLE.ORG'")


@pytest.mark.long
def test_a_query_takes_its_log_from_elsewhere(world: World) -> None:
    mined = {"database.connection.adapter": "logminer"}
    options = {name: one for name, one in world.options().items() if not name.startswith("xstream.")} | mined
    query = InProcess(options)
    rows = query.drain()
    query.stop()
    world.write(100)
    goes_on(world, query, rows)
    going = InProcess(options, query.offset)
    fails(CheckpointError, going.drain, "was begun with database.connection.adapter=xstream")
    going.stop()


@pytest.mark.long
def test_large_objects(tmp_path: Path) -> None:
    with World(tmp_path, rows=0, columns=LARGE) as world:
        query, rows = stopped(world)
        text, data = 'ä"\\\n😀' * 900, bytes(range(256)) * 10
        with world.change() as transaction:
            transaction.insert(world.table, ID=Decimal(1), C=text, B=data, X="<a>ü</a>")
            transaction.update(world.table, {"ID": 1}, C="short")
            transaction.update(world.table, {"ID": 1}, B=None)
            transaction.delete(world.table, {"ID": 1})
        found = goes_on(world, query, rows)
        values = [json.loads(row["value"]) for row in found if row["value"] is not None]
        sides = [[one[side] and list(one[side].values())[1:] for side in ("before", "after")] for one in values]
        unknown = "__debezium_unavailable_value"
        blob = b64encode(unknown.encode()).decode()
        assert sides[0] == [None, [text, b64encode(data).decode(), "<a>ü</a>"]]
        assert sides[1] == [[unknown, blob, unknown], ["short", blob, unknown]]
        assert sides[2] == [[unknown, blob, unknown], [unknown, None, unknown]]
        assert sides[3] == [[unknown, blob, unknown], None]


@pytest.mark.long
def test_a_part_of_a_large_object_is_told_of(tmp_path: Path) -> None:
    with World(tmp_path, rows=0, columns=LARGE) as world:
        world.outbound.maker.erases_apart = True
        with world.change() as transaction:
            transaction.insert(world.table, ID=Decimal(1), C="text", B=b"", X=None)
        query, _ = stopped(world)
        with world.change() as transaction:
            transaction.lob_erase(world.table, {"ID": 1}, "C", 2, 1)
        fails(
            SourceStateError, world.query(query.offset).drain, r"change of S\.T that isn't one of a row \(LOB ERASE\)"
        )
        going = world.query(query.offset, event_processing_failure_handling_mode="warn")
        assert [row["op"] for row in going.drain()] == ["gap"]


@pytest.mark.long
def test_statements_and_hostile_names(world: World) -> None:
    query, _ = stopped(world, include_schema_changes="true")
    odd = "we ird\\ ä'"
    table = world.database.create_table(
        SCHEMA, "ODD T", [column("ID", "NUMBER(9,0)", nullable=False), column(odd, "VARCHAR2(400)")], ["ID"]
    )
    with world.change() as transaction:
        transaction.insert(table, ID=Decimal(1), **{odd: 'a"b\\c\n\t\u2028 \x01 😀'})
    world.database.ddl(
        world.table,
        f'ALTER TABLE "{SCHEMA}"."T" ADD ("NEW" NUMBER(9,0))',
        columns=(*COLUMNS, column("NEW", "NUMBER(9,0)")),
    )
    with world.change() as transaction:
        transaction.insert(world.table, ID=Decimal(500), V=Decimal(1), PAD="p", NEW=Decimal(7))
    going = world.query(query.offset, include_schema_changes="true")
    found = going.drain()
    going.stop()
    statements = [json.loads(row["value"]) for row in found if row["topic"] == "p"]
    assert [one["ddl"].split()[0] for one in statements] == ["CREATE", "ALTER"]
    assert all(one["source"]["lcr_position"] for one in statements)
    (first,) = [row for row in found if row["table"] == "ODD T"]
    assert json.loads(first["value"])["after"] == {"ID": 1, odd: 'a"b\\c\n\t\u2028 \x01 😀'}
    (last,) = [row for row in found if row["table"] == "T" and row["op"] == "c"]
    assert json.loads(last["value"])["after"] == {"ID": 500, "V": 1, "PAD": "p", "NEW": 7}
    with world.database.lock:
        world.database.truncate(world.table)
        world.database.background()
    query.offset = going.offset
    last_query = world.query(query.offset, skipped_operations="none")
    (emptied,) = last_query.drain()
    assert emptied["op"] == "t"
    assert json.loads(emptied["value"])["source"]["lcr_position"]


@pytest.mark.long
def test_a_large_transaction(world: World) -> None:
    query, rows = stopped(world)
    with world.change() as transaction:
        for number in range(100, 20_100):
            transaction.insert(world.table, ID=Decimal(number), V=Decimal(number), PAD="x" * 100)
    assert len(goes_on(world, query, rows, segment_bytes="262144")) == 20_000


def listening(pid: int) -> Iterator[str]:
    """Yield the addresses at which a process listens, as ``/proc`` shows them."""
    own = {os.readlink(one) for one in (Path("/proc") / str(pid) / "fd").iterdir()}
    for line in [
        *Path("/proc/net/tcp").read_text().splitlines()[1:],
        *Path("/proc/net/tcp6").read_text().splitlines()[1:],
    ]:
        parts = line.split()
        if parts[3] == "0A" and f"socket:[{parts[9]}]" in own:
            # Java's sockets are those of IPv6, in which addresses of IPv4 have a head.
            yield parts[1].partition(":")[0].removeprefix("0000000000000000FFFF0000")


def executable(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_what_is_missing_is_named_before_anything_is_done(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in, *jars = world.outbound.options()["xstream.class.path"].split(os.pathsep)
    other_jars = os.pathsep.join(jars)
    fails(SourceStateError, world.query(xstream_java="/nowhere/java").drain, "there is no '/nowhere/java'")
    fails(
        SourceStateError,
        world.query(
            xstream_java=executable(tmp_path / "jre", "echo 'Module jdk.compiler not found' >&2; exit 1")
        ).drain,
        "it isn't a JDK",
    )
    error = fails(SourceStateError, world.query(xstream_class_path=other_jars).drain, r"oracle\.streams\.\* aren't")
    assert "xstreams.jar" in error.cure
    without_driver = os.pathsep.join(one for one in [stand_in, *jars] if "ojdbc" not in one)
    error = fails(SourceStateError, world.query(xstream_class_path=without_driver).drain, "aren't on the class path")
    assert "ojdbc11.jar" in error.cure
    monkeypatch.setenv("JAVA_HOME", "/nowhere/else")
    fails(SourceStateError, world.query().drain, "there is no '/nowhere/else/bin/java'")
    assert not world.outbound.attached
    assert not jvms()


def test_oracles_own_driver_without_its_library(world: World, tmp_path: Path) -> None:
    stand_in, *jars = world.outbound.options()["xstream.class.path"].split(os.pathsep)
    # The classes of XStream, without the driver that stands in for Oracle's.
    streams = tmp_path / "streams" / "oracle"
    streams.mkdir(parents=True)
    (streams / "streams").symlink_to(Path(stand_in) / "oracle" / "streams")
    path = os.pathsep.join([str(streams.parent), *jars])
    error = fails(
        SourceStateError,
        world.query(xstream_class_path=path, xstream_library_path=str(tmp_path)).drain,
        rf"no ocijdbc\d+ in java.library.path: {tmp_path}",
    )
    assert "Instant Client" in error.cure


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"xstream_out_server_name": ""}, r"'xstream\.out\.server\.name' is required"),
        ({"xstream_class_path": ""}, r"'xstream\.class\.path' is required"),
        ({"database_connection_adapter": "logminer"}, r"'xstream\.out\.server\.name' has no effect"),
        ({"log_mining_username_include_list": "APP"}, r"'log\.mining\.username\.include\.list' has no effect"),
        ({"database_out_server_name": "X"}, r"xstream\.out\.server\.name"),
        ({"database_url": "jdbc:oracle:kprb:@x"}, r"'database\.url' has a value that is not allowed"),
    ],
)
def test_wrong_options(world: World, more: dict[str, str], words: str) -> None:
    options = {name: value for name, value in world.options(**more).items() if value}
    with pytest.raises(FloodmarkError, match=words):
        load_options(options)


def test_urls_of_debeziums(world: World) -> None:
    found = load_options(world.options(database_url="jdbc:oracle:oci:@//h:1/S"))
    assert isinstance(found, OracleOptions)
    assert found.address == "h:1/S"


@pytest.mark.long
def test_passwords_are_no_arguments_and_a_wrong_one_is_refused(world: World) -> None:
    query = world.query()
    query.drain()
    query.restart()
    world.write(100)
    until(query, 2)
    (pid,) = jvms()
    command = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
    assert b"dbz" not in command
    assert b"--enable-auth" in command
    assert set(listening(pid)) == {"0100007F"}
    query.stop()
    options = load_options(world.options(database_password="wrong"))
    assert isinstance(options, OracleOptions)
    server = outbound.OutboundServer(options)
    fails(LoginError, server.connect, "ORA-01017")


@pytest.mark.long
def test_no_jvm_is_left_when_the_process_is_killed(world: World, tmp_path: Path) -> None:
    script = (
        "import json, sys, time\n"
        "from tests.support.inprocess import InProcess\n"
        "query = InProcess(json.loads(sys.argv[1]))\n"
        "query.drain()\n"
        "query.restart()\n"
        "print('ready', flush=True)\n"
        "while not query.step():\n"
        "    time.sleep(0.01)\n"
        "print('streams', flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, json.dumps(world.options())], stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        world.write(100)
        assert process.stdout.readline() == b"streams\n"
        found = jvms(process.pid)
        assert found
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + within(20)
    while any(is_running(one) for one in found) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, found))


@pytest.mark.long
def test_what_a_check_says(world: World) -> None:
    check = connector_module("oracle", "checks.server").check_source
    found = {(one.check, one.status): one.finding for one in check(load_options(world.options()))}
    assert "ENABLED" in found["XStream", "ok"]
    assert "never been run against Oracle's interface" in found["XStream", "warning"]


def test_another_database_has_no_such_server(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.database.outbound_servers.clear()
        assert isinstance(world.database, OracleDatabase)
        fails(SourceStateError, world.query().drain, "no outbound server")
