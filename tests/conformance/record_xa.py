"""Record what Debezium delivers of XA transactions on MySQL and MariaDB, step by step.

``python -m tests.conformance.record_xa``
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.conformance.debezium.debezium import Debezium, mysql_options
from tests.conformance.golden import PREFIX, path_of
from tests.conformance.recorders.mysql import FILTERS, JVM, MARK, SYNC, catch_up, wait_for_stream, without_marks
from tests.integration.test_mysql_xa import FLAVORS, Branch, decide
from tests.support.mysql import MysqlServer

NAME = "xa"
OPTIONS = {
    "database.include.list": NAME,
    "table.include.list": rf"{NAME}\.t",
    "provide.transaction.metadata": "true",
    "include.schema.changes": "false",
}
SETUP = (
    f"CREATE DATABASE {NAME}",
    f"CREATE TABLE {NAME}.t (id int PRIMARY KEY, v varchar(20))",
    f"INSERT INTO {NAME}.t VALUES (0, 'snapshot')",
)
Step = Callable[[MysqlServer], object]
BEFORE: Step = lambda server: Branch(server, "'before'", "INSERT INTO t VALUES (1, 'before')").prepare()  # noqa: E731
"""Prepared before the snapshot."""
STEPS: dict[str, Step] = {
    "prepared": lambda server: Branch(
        server, "'kept'", "INSERT INTO t VALUES (2, 'kept')", "UPDATE t SET v = 'changed' WHERE id = 2"
    ).prepare(),
    "another": lambda server: server.execute(f"INSERT INTO {NAME}.t VALUES (3, 'between')"),
    "committed": lambda server: decide(server, "COMMIT", "'kept'"),
    "prepared again": lambda server: Branch(server, "'undone'", "INSERT INTO t VALUES (4, 'undone')").prepare(),
    "rolled back": lambda server: decide(server, "ROLLBACK", "'undone'"),
    "committed after the snapshot": lambda server: decide(server, "COMMIT", "'before'"),
    "one phase": lambda server: Branch(server, "'one'", "INSERT INTO t VALUES (5, 'one')").run(
        "XA COMMIT 'one' ONE PHASE"
    ),
    "last": lambda server: server.execute(f"INSERT INTO {NAME}.t VALUES (6, 'last')"),
}


def main() -> None:
    """Record the goldens."""
    for flavor in FLAVORS:
        with MysqlServer(flavor) as server:
            lines = record(server)
        path_of(NAME, flavor).write_text("".join(lines), encoding="utf-8")
        print(f"{flavor}: {len(lines)} records", flush=True)


def record(server: MysqlServer) -> list[str]:
    """Return what a connector delivers, one JSON object a line, with the step after which it came."""
    server.execute(*SETUP, f"CREATE DATABASE {SYNC}")
    BEFORE(server)
    filters = {name: f"{OPTIONS[name]},{own}" for name, own in FILTERS.items() if name in OPTIONS}
    options = {**mysql_options(server), "topic.prefix": PREFIX, "poll.interval.ms": "20", **OPTIONS, **filters}
    ends: list[tuple[str, int]] = []
    with (
        server.connect() as session,
        session.cursor() as cursor,
        tempfile.TemporaryDirectory() as scratch,
        Debezium(options, Path(scratch) / "records.jsonl", jvm_args=JVM) as run,
    ):
        wait_for_stream(cursor, run)
        cursor.execute(f"CREATE TABLE {MARK} (id int PRIMARY KEY, text varchar(80))")
        for name, step in {"initial": lambda _: None, **STEPS}.items():
            step(server)
            catch_up(cursor, run, name)
            ends.append((name, len(run.records())))
        records = run.records()
    wanted = without_marks(records)
    lines, begin = [], 0
    for name, end in ends:
        for one in records[begin:end]:
            if one in wanted:
                golden = {"step": name, "topic": one.topic, "key": one.key, "value": one.value}
                lines.append(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n")
        begin = end
    return lines


if __name__ == "__main__":
    main()
