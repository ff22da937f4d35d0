"""Transaction metadata of MySQL and MariaDB where a transaction is larger than a segment."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

ROWS = 3000


def test_a_transaction_of_several_segments_is_counted_as_one(binlog_server: MysqlServer, tmp_path: Path) -> None:
    binlog_server.execute(
        "CREATE DATABASE counted",
        "CREATE TABLE counted.a (id INT PRIMARY KEY, v VARCHAR(200))",
        "CREATE TABLE counted.b (id INT PRIMARY KEY)",
    )
    options = {
        **binlog_server.options(),
        "topic.prefix": "p",
        "database.include.list": "counted",
        "state.dir": str(tmp_path / "state"),
        "snapshot.mode": "no_data",
        "segment.bytes": str(64 << 10),
        "provide.transaction.metadata": "true",
    }
    query = InProcess(options)
    query.drain()
    with binlog_server.connect(autocommit=False) as session, session.cursor() as cursor:
        for first in range(0, ROWS, 500):
            rows = ",".join(f"({number}, '{'x' * 150}')" for number in range(first, first + 500))
            cursor.execute(f"INSERT INTO counted.a VALUES {rows}")
            cursor.execute(f"INSERT INTO counted.b VALUES ({first})")
        cursor.execute("UPDATE counted.b SET id = -1 WHERE id = 0")
        session.commit()
    delivered = query.drain()
    query.stop()
    binlog_server.execute("DROP DATABASE counted")
    values = [json.loads(row["value"]) for row in delivered if row["value"] is not None]
    told = [value for value in values if "status" in value]
    events = [value["transaction"] for value in values if "op" in value]
    assert [value["status"] for value in told] == ["BEGIN", "END"]
    assert [block["total_order"] for block in events] == list(range(1, ROWS + 9))
    assert len({block["id"] for block in events}) == 1
    counts = {one["data_collection"]: one["event_count"] for one in told[1]["data_collections"]}
    assert counts == {"counted.a": ROWS, "counted.b": 8}
    assert told[1]["event_count"] == ROWS + 8
