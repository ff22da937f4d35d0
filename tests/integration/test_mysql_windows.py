"""Incremental snapshots of MySQL and MariaDB in windows: rows read between two places of the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.mysql.snapshot.read_points import ReadPoints
from floodmark.connectors.mysql.snapshot.watermarks import MysqlWatermarks
from floodmark.connectors.mysql.source.read_points import MysqlSnapshots
from floodmark.errors import SourceStateError
from floodmark.spark.stream.captured_log import CapturedLog
from tests.integration.test_mysql_snapshot_modes import applied
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

DATABASE = "windows"
ROWS = 20


@pytest.fixture
def shop(binlog_server: MysqlServer) -> Iterator[MysqlServer]:
    rows = ", ".join(f"({i}, 0, 'pad {i}')" for i in range(ROWS))
    binlog_server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"GRANT INSERT, DELETE ON {DATABASE}.* TO {binlog_server.user}",
        f"CREATE TABLE {DATABASE}.t (id int PRIMARY KEY, v int, pad varchar(40))",
        f"INSERT INTO {DATABASE}.t VALUES {rows}",
        f"CREATE TABLE {DATABASE}.signals (id varchar(64) PRIMARY KEY, type varchar(32), data text)",
    )
    yield binlog_server
    binlog_server.execute(f"DROP DATABASE {DATABASE}")


def query_of(server: MysqlServer, directory: Path, **options: str) -> InProcess:
    given = {
        **server.options(),
        "topic.prefix": "p",
        "state.dir": str(directory),
        "database.include.list": DATABASE,
        "snapshot.mode": "no_data",
        "signal.data.collection": f"{DATABASE}.signals",
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    return InProcess(given)


def before(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, step: Callable[[], None]) -> None:
    """Do something before a method runs, once."""
    method = getattr(owner, name)
    todo = [step]

    def wrapped(self: Any, *args: Any) -> Any:
        while todo:
            todo.pop()()
        return method(self, *args)

    monkeypatch.setattr(owner, name, wrapped)


def capture_no_more_than_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the log come as late as it may: only what is waited for."""
    bounded, wait_for = CapturedLog.bounded, CapturedLog._wait_for
    reached = [""]
    waiting = [False]

    def late(log: CapturedLog, after: str, rows: int | None) -> str:
        end = bounded(log, after, rows)
        return end if waiting[0] else max(after, min(end, reached[0]))

    def waited(log: CapturedLog, after: str, target: str, rows: int | None, patience_s: float) -> str:
        waiting[0] = True
        try:
            end = wait_for(log, after, target, rows, patience_s)
        finally:
            waiting[0] = False
        reached[0] = max(reached[0], end)
        return end

    monkeypatch.setattr(CapturedLog, "bounded", late)
    monkeypatch.setattr(CapturedLog, "_wait_for", waited)


def changing(server: MysqlServer, first: int, image: str) -> Callable[[], None]:
    """Return what changes some rows from a number on, in every way."""

    def run() -> None:
        server.execute(
            f"SET SESSION binlog_row_image = {image}",
            f"UPDATE t SET v = v + 1 WHERE id IN ({first}, {first + 1})",
            f"DELETE FROM t WHERE id = {first + 1}",
            f"UPDATE t SET id = id + 100 WHERE id = {first + 2}",
            f"INSERT INTO t VALUES ({first + 200}, 0, 'made')",
            f"DELETE FROM t WHERE id = {first + 3}",
            f"INSERT INTO t VALUES ({first + 3}, 5, 'made anew')",
            f"UPDATE t SET pad = 'changed' WHERE id = {first + 4}",
            database=DATABASE,
        )

    return run


@pytest.mark.parametrize("image", ["full", "minimal"])
# MariaDB tells the exact place of every view, so only marks make windows there.
@pytest.mark.parametrize(
    ("binlog_server", "kind"),
    [
        ("mysql", "gtids"),
        *((flavor, kind) for flavor in ("mysql", "mariadb") for kind in ("insert_insert", "insert_delete")),
    ],
    indirect=["binlog_server"],
)
def test_changes_in_a_window_are_neither_lost_nor_undone(
    shop: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, image: str
) -> None:
    options = {"incremental_snapshot_chunk_size": "10"}
    if kind == "gtids":
        monkeypatch.setattr(ReadPoints, "_begin_mysql", lambda *_: None)
        before(monkeypatch, ReadPoints, "_wait_for_owners", changing(shop, 0, image))
    else:
        options["incremental_snapshot_read_points"] = "watermarks"
        options["incremental_snapshot_watermarking_strategy"] = kind
        before(monkeypatch, ReadPoints, "open_view", changing(shop, 0, image))
    before(monkeypatch, MysqlSnapshots, "close_window", changing(shop, 10, image))
    query = query_of(shop, tmp_path, **options)
    capture_no_more_than_wanted(monkeypatch)
    rows = query.drain()
    data = json.dumps({"data-collections": [f"{DATABASE}.t"]})
    shop.execute(f"INSERT INTO signals VALUES ('s', 'execute-snapshot', '{data}')", database=DATABASE)
    rows += query.drain()
    # Draining ends where the log ended when it began. Without marks no window goes beyond the later changes.
    rows += query.drain()
    query.stop()
    with shop.connect(DATABASE) as session, session.cursor() as cursor:
        cursor.execute("SELECT id, v, pad FROM t")
        actual = {row[0]: {"id": row[0], "v": row[1], "pad": row[2]} for row in cursor.fetchall()}
    if image == "full":
        assert applied(rows, "t") == {key: row["v"] for key, row in actual.items()}
    last: dict[int, dict[str, Any]] = {}
    for row in sorted((row for row in rows if row["table"] == "t" and row["value"]), key=lambda row: row["position"]):
        last[json.loads(row["key"])["id"]] = json.loads(row["value"])["after"]
    # The log of a new key has nothing but the key, so nobody knows the rest of such a row.
    unknown = {102, 112} if image == "minimal" else set()
    if image == "minimal" and kind == "gtids":
        # Without marks a window ends when the view is open, so the later changes are not in it.
        unknown |= {10, 14}
    found = {key: row for key, row in last.items() if row is not None and key not in unknown}
    assert found == {key: row for key, row in actual.items() if key not in unknown}
    reads = [json.loads(row["value"])["after"]["id"] for row in rows if row["op"] == "r"]
    assert len(reads) == len(set(reads))
    # What changed with all its values in the log is not read.
    assert (0 in reads) == (image == "minimal")
    marks = [row for row in rows if row["table"] == "signals" and "snapshot-window" in str(row["value"])]
    assert bool(marks) == (kind != "gtids")


def test_rows_of_before_a_truncate_are_left_out(
    shop: MysqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step() -> None:
        shop.execute("TRUNCATE t", "INSERT INTO t VALUES (1, 7, 'new')", database=DATABASE)

    before(monkeypatch, MysqlWatermarks, "close", step)
    query = query_of(shop, tmp_path, incremental_snapshot_read_points="watermarks", skipped_operations="none")
    rows = query.drain()
    data = json.dumps({"data-collections": [f"{DATABASE}.t"]})
    shop.execute(f"INSERT INTO signals VALUES ('s', 'execute-snapshot', '{data}')", database=DATABASE)
    rows += query.drain()
    query.stop()
    of_table = sorted((row for row in rows if row["table"] == "t"), key=lambda row: row["position"])
    assert [row["op"] for row in of_table] == ["t", "c"]


def test_a_signal_table_that_cannot_be_written_is_told(shop: MysqlServer, tmp_path: Path) -> None:
    options = {"incremental_snapshot_read_points": "watermarks", "errors_tables": "fail"}
    shop.execute(f"REVOKE INSERT ON {DATABASE}.* FROM {shop.user}")
    query = query_of(shop, tmp_path, **options)
    query.drain()
    data = json.dumps({"data-collections": [f"{DATABASE}.t"]})
    shop.execute(f"INSERT INTO signals VALUES ('s', 'execute-snapshot', '{data}')", database=DATABASE)
    with pytest.raises(SourceStateError, match=r"GRANT INSERT.*exact"):
        query.drain()
    query.stop()
    missing = query_of(shop, tmp_path / "missing", **options, signal_data_collection=f"{DATABASE}.none")
    with pytest.raises(SourceStateError, match="does not exist"):
        missing.drain()
    missing.stop()
