"""The matrix of docs/continuity.md with a mirror: its tables equal the source's, or the query ends, or warns of a gap.

``FLOODMARK_FULL_MATRIX=1`` runs all cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from floodmark.errors import FloodmarkError
from tests.integration import test_mysql_continuity as mysql_matrix
from tests.integration import test_postgres_continuity as database_matrix
from tests.integration import test_postgres_continuity_servers as server_matrix
from tests.integration.test_mysql_continuity import MOMENTS, Row, servers  # noqa: F401
from tests.integration.test_postgres_continuity import FULL, Change, drop_slot, run_cell
from tests.integration.test_postgres_continuity_servers import (
    ServerChange,
    Servers,
    make_world,  # noqa: F401
    patched,  # noqa: F401
    run_server_cell,
)
from tests.support.mirrored import MirrorSink
from tests.support.world import WHENS, When
from tests.support.worlds import ROWS, World

OFTEN = {
    "standby promoted in order-running",
    "standby promoted that lacked the end-running",
    "slot dropped and created again-stopped",
}
CHANGES: tuple[Change | ServerChange, ...] = (*database_matrix.CHANGES, *server_matrix.CHANGES)
POSTGRES = [
    pytest.param(change, when, id=f"{change.name.replace(' ', '_')}-{when}")
    for change in CHANGES
    for when in WHENS
    if FULL or f"{change.name}-{when}" in OFTEN
]
MYSQL_OFTEN = {
    ("a replica that has all takes over", "mysql", "running"),
    ("an older copy of the data is restored", "mariadb", "stopped"),
    ("the binlog is reset", "mysql", "snapshot"),
}
MYSQL = [
    pytest.param(row, kind, when, id=f"{row.name}-{when}-{kind}".replace(" ", "_"))
    for row in mysql_matrix.MATRIX
    for kind in row.kinds
    for when in row.whens
    # That one compares the rows of a micro-batch that is run twice.
    if when != "planned" and (FULL or (row.name, kind, when) in MYSQL_OFTEN)
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("change", "when"), POSTGRES)
def test_what_changed_at_postgres(
    make_world: Callable[..., Servers],  # noqa: F811
    tmp_path: Path,
    change: Change | ServerChange,
    when: When,
) -> None:
    if isinstance(change, ServerChange):
        world = make_world(**change.settings)
        world.sink = MirrorSink(tmp_path / "lake")
        run_server_cell(world, change, when)
    else:
        world = make_world()
        world.sink = MirrorSink(tmp_path / "lake")
        run_cell(world, change, when)
    found = world.applied()
    # Of rows that came one after the other none is missing before one that is there.
    if not world.forgotten:
        assert {key for key in found if key > 0} == set(range(1, max(found, default=0) + 1))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("row", "kind", "when"), MYSQL)
def test_what_changed_at_mysql(
    servers: mysql_matrix.Servers,  # noqa: F811
    tmp_path: Path,
    row: Row,
    kind: str,
    when: str,
) -> None:
    small = {"snapshot.chunk.bytes": "8192", "max.batch.bytes": "16384"} if when == "snapshot" else {}
    world = World(kind, servers.take(kind), tmp_path, **small)
    world.sink = MirrorSink(tmp_path / "lake")
    expected = row.expected(kind, when)
    world.notes["when"] = when
    try:
        world.begin(ROWS if when == "snapshot" else 3)
        if expected:
            with pytest.raises(FloodmarkError) as caught:
                MOMENTS[when](world, row)
            assert re.search(expected, str(caught.value)), caught.value
            assert 1_000_000 not in world.delivered().values()
        else:
            MOMENTS[when](world, row)
            assert world.delivered() == world.state()
    finally:
        world.close()
        servers.discard(kind)


def test_a_gap_that_is_accepted(
    make_world: Callable[..., Servers],  # noqa: F811
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    world = make_world()
    world.sink = MirrorSink(tmp_path / "lake")
    world.more = {"snapshot.mode": "when_needed"}
    world.begin("stopped")
    before = world.actual()
    drop_slot(world)
    world.ask("DELETE FROM t WHERE id = 1")
    world.ask("UPDATE t SET v = -2 WHERE id = 2")
    world.resume("stopped")
    query = world.query
    assert query is not None
    query.drain()
    assert "mirror_has_a_gap" in capfd.readouterr().err
    # What was deleted meanwhile stays, as the warning says.
    assert world.applied() == {**world.actual(), 1: before[1]}
