"""What may follow when the log is another one: a new snapshot, an accepted gap, and checkpoints of older versions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.connector import BinlogSource
from floodmark.connectors.mysql.continuity.check import ResumePoint, read_mark
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.server.connection import connect
from floodmark.errors import CheckpointError, LogGoneError, SourceStateError
from tests.support.binlog import Login, here, log_end
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer
from tests.support.replication import replica_of, stop_replica, wait_for_replica
from tests.support.worlds import DATABASE, KINDS, TABLE, World, flavor_of, settings_of

FULL = bool(os.environ.get("FLOODMARK_FULL_MATRIX"))


@pytest.fixture(scope="module", params=KINDS if FULL else ("mysql", "mariadb"))
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, MysqlServer]]:
    """Return a kind of world and its server."""
    kind = request.param
    with MysqlServer(flavor_of(kind), **settings_of(kind)) as found:
        yield kind, found


@pytest.fixture
def world(server: tuple[str, MysqlServer], tmp_path: Path) -> Iterator[World]:
    """Return a world whose query has delivered everything and was stopped."""
    found = World(*server, tmp_path)
    found.begin()
    found.start()
    found.drain()
    found.write()
    found.drain()
    found.stop()
    yield found
    found.close()


@pytest.fixture
def gaps(monkeypatch: pytest.MonkeyPatch) -> list[Gap]:
    """Return what is accepted from here on."""
    found: list[Gap] = []
    monkeypatch.setattr(AcceptedGaps, "add", lambda _, gap: found.append(gap))
    return found


def offset_of(world: World) -> dict[str, Any]:
    assert world.query is not None
    return world.query.offset


def again(world: World, offset: dict[str, Any], **options: str) -> InProcess:
    """Start the query with more options."""
    world.options |= {name.replace("__", "."): value for name, value in options.items()}
    return world.start(offset)


def reset(world: World) -> None:
    world.here.execute("RESET MASTER" if world.flavor == "mariadb" else "RESET BINARY LOGS AND GTIDS")
    world.write()


def restore(world: World) -> None:
    world.restore(world.notes["copy"])


@pytest.mark.parametrize("change", [reset, restore] if FULL else [reset])
def test_a_new_snapshot_comes_after_what_was_delivered(world: World, change: Callable[[World], None]) -> None:
    offset = offset_of(world)
    if change is restore:
        world.notes["copy"] = world.copy()
        world.start(offset)
        world.write()
        world.drain()
        offset = world.stop()
        world.here.execute(f"DELETE FROM {TABLE} WHERE id > 100000")  # what a snapshot can't tell
    change(world)
    before = len(world.rows)
    again(world, offset, snapshot__mode="when_needed")
    world.drain()
    world.write()
    world.drain()
    assert {row["op"] for row in world.rows[before:]} == {"gap", "r", "c", "u"}
    positions = [row["position"] for row in world.rows]
    assert positions == sorted(positions)
    assert Position.parse(offset_of(world)["log"]).epoch == 1
    delivered = world.delivered()
    assert {key: delivered.get(key) for key in world.state()} == world.state()
    # It goes on there after a restart, too.
    offset = world.stop()
    world.write()
    again(world, offset)
    world.drain()
    delivered = world.delivered()
    assert {key: delivered.get(key) for key in world.state()} == world.state()


def test_no_snapshot_is_taken_of_an_unrelated_server(world: World) -> None:
    settings = {"server_id": world.first.settings["server_id"]} if world.flavor == "mariadb" else {}
    other = world.another(None, **settings)
    other.execute(f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {TABLE} (id int PRIMARY KEY, v int)")
    world.move(other)
    again(world, offset_of(world), snapshot__mode="when_needed")
    error = SourceStateError if world.kind == "mysql-no-gtids" else CheckpointError
    with pytest.raises(error, match=r"nother server|lacks transactions") as caught:
        world.drain()
    assert not isinstance(caught.value, LogGoneError)


def test_a_log_that_nothing_proves_can_be_accepted(world: World, gaps: list[Gap]) -> None:
    offset = offset_of(world)
    if world.kind == "mariadb":
        world.here.execute("RESET MASTER")
    else:
        world.here.execute("RESET BINARY LOGS AND GTIDS")
    size = Position.parse(offset["log"]).transaction
    ends: list[int] = []
    while not ends:
        world.write()
        with world.here.connect() as session, session.cursor() as cursor:
            cursor.execute("SHOW BINLOG EVENTS")
            ends = [int(row[4]) for row in cursor.fetchall() if row[2] == "Xid" and int(row[4]) >= size]
    place = Position(0, 1, ends[0])
    world.write()
    offset = {**offset, "log": str(place)}
    before = len(world.rows)
    again(world, offset, gtid__ignore__on__recovery="true", snapshot__mode="recovery")
    world.drain()
    assert len(world.rows) > before
    assert {gap.option for gap in gaps} == {"gtid.ignore.on.recovery=true"}
    assert gaps[0].after == str(place)
    assert "not" in gaps[0].reason


@pytest.mark.parametrize("shift", [-7, 3, 30])
def test_a_log_begun_within_the_same_second_is_another_one(world: World, shift: int) -> None:
    """The file's description proves nothing then, and the events that were read begin inside those of the other."""
    offset = offset_of(world)
    mark = offset["bookmark"]["mark"]
    assert mark["digest"]
    other = {**offset, "bookmark": {**offset["bookmark"], "mark": {**mark, "begin": mark["begin"] + shift}}}
    again(world, other)
    with pytest.raises(LogGoneError):
        world.drain()
    again(world, other, snapshot__mode="when_needed")
    before = len(world.rows)
    world.drain()
    assert {row["op"] for row in world.rows[before:]} == {"gap", "r"}
    delivered = world.delivered()
    assert {key: delivered.get(key) for key in world.state()} == world.state()


def test_sources_that_do_not_count_leave_a_gap(world: World, gaps: list[Gap]) -> None:
    replica = world.another()
    if world.kind == "mysql-no-gtids":
        world.move(replica)
        again(world, offset_of(world), gtid__source__excludes=".*")
        with pytest.raises(SourceStateError, match="no GTIDs"):
            world.drain()
        return
    replica_of(world.first, replica)
    wait_for_replica(world.first, replica)
    stop_replica(replica)
    world.write(replica)
    with replica.connect() as session, session.cursor() as cursor:
        cursor.execute("SELECT @@global." + ("server_id" if world.flavor == "mariadb" else "server_uuid"))
        own = str(cursor.fetchone()[0])
    world.move(replica)
    again(world, offset_of(world), gtid__source__excludes=f"(0-)?{own}", gtid__source__filter__dml__events="false")
    before = len(world.rows)
    world.drain()
    assert len(world.rows) == before
    assert {gap.option for gap in gaps} == {f"gtid.source.excludes=(0-)?{own}"}
    assert own in gaps[0].reason
    assert gaps[0].after < gaps[0].upto
    world.write()
    world.drain()
    assert len(world.rows) > before


@pytest.mark.parametrize("old", ["none", "server and GTIDs"])
def test_a_checkpoint_of_an_older_version_goes_on(world: World, old: str) -> None:
    offset = json.loads(json.dumps(offset_of(world)))
    bookmark = offset["bookmark"]
    without = bookmark["gtids"] or ""
    offset["bookmark"] = None if old == "none" else {"server": bookmark["server"], "gtids": without}
    world.write()
    again(world, offset)
    world.drain()
    assert world.delivered() == world.state()
    assert offset_of(world)["bookmark"]["mark"]["digest"]


def test_a_planned_micro_batch_whose_log_is_lost_fails(world: World) -> None:
    """The server lost the end of its log, and what was planned lies behind."""
    offset = offset_of(world)
    world.notes["copy"] = world.copy()
    query = world.start(offset)
    world.write()
    query.drain()
    end = world.stop()
    world.restore(world.notes["copy"])
    query = world.start(offset)
    with pytest.raises(LogGoneError):
        query.run(end)
    query.stop()
    again(world, offset, snapshot__mode="when_needed")
    query = world.query = world.start(offset)
    assert query.run(end) == []
    query.offset = end
    before = len(world.rows)
    world.drain()
    delivered = world.delivered()
    assert len(world.rows) > before
    assert {key: delivered.get(key) for key in world.state()} == world.state()


def test_what_lies_before_a_place_is_always_read(world: World) -> None:
    place = Position.parse(here(world.here))
    name, _ = log_end(world.here)
    for _ in range(20):
        mark = read_mark(lambda: connect(Login(world.here.port)), world.flavor, place, name)
        assert mark is not None
        assert mark.digest
        assert mark.end == place.transaction


def test_a_view_is_given_up_when_the_log_goes_on_elsewhere(world: World) -> None:
    """What the view shows may come after it in the other server's log."""
    options = load_options(world.options)
    assert isinstance(options, BinlogOptions)
    source = BinlogSource(options)
    position, _ = source.log.create(False)
    for point in (source.snapshots.open_unsettled(), source.snapshots.open()):
        assert point.alive()
        assert point.settle(position)
        place = Position.parse(position)
        source._session.places.add(str(Position(place.epoch + 1, 0, 0)), ResumePoint("another", ""))
        assert not point.alive()
        assert not point.settle(position)
        point.release()
        source._session.places.clear()
    source.close()


@pytest.mark.timeout(120)
def test_an_unrelated_server_whose_log_is_longer_is_refused(tmp_path: Path) -> None:
    """The file that the position names is there, and long enough; it is another one, and there are no GTIDs."""
    kind = "mysql-no-gtids"
    with MysqlServer(flavor_of(kind), **settings_of(kind)) as first:
        world = World(kind, first, tmp_path)
        world.begin()
        world.start()
        world.drain()
        offset = world.stop()
        other = world.another()
        other.execute(f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {TABLE} (id int PRIMARY KEY, v int, pad longtext)")
        other.execute(f"INSERT INTO {TABLE} SELECT 1, 1, REPEAT('x', 100000)")
        assert Position.parse(here(other)) > Position.parse(offset["log"])
        world.move(other)
        world.start(offset)
        with pytest.raises(SourceStateError, match="no GTIDs"):
            world.drain()
        world.close()
