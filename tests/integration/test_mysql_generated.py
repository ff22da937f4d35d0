"""Generated workloads on MySQL and MariaDB: whatever happens while tables are read, the result is the source.

Sessions change a table, and tables are altered, between all steps of a query, which dies now and then. Each change of a
row sets another ``v``, and ``n`` tells the row.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pymysql
import pytest

from floodmark.connectors.mysql.snapshot.key_ranges import MysqlKeyRanges
from floodmark.connectors.mysql.snapshot.read_points import ReadPoints
from floodmark.connectors.mysql.source.read_points import MysqlSnapshots, PlacedPoint
from floodmark.connectors.mysql.source.tables import MysqlTables
from floodmark.spark.stream.planning import new_tables
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer

XA_CASES = max(int(os.environ.get("FLOODMARK_GENERATED_CASES", "250")) // 120, 1)
CASES = max(int(os.environ.get("FLOODMARK_GENERATED_CASES", "250")) // 40, 1)
DATABASE = "workloads"
SESSIONS, KEYS, STEPS = 3, 10, 50
LARGE = 3000
HOOKS: dict[type, tuple[str, ...]] = {
    MysqlSnapshots: ("open", "open_window", "close_window", "key_ranges"),
    PlacedPoint: ("settle",),
    MysqlTables: ("describe", "fingerprints"),
    ReadPoints: ("_start", "_wait_for_owners", "end_of_log"),
    MysqlKeyRanges: ("last", "bounds"),
}
WAYS = ("initial", "exact", "window", "watermarks", "parallel", "blocking")
# MariaDB tells the exact place of every view, so it has no windows between GTID sets.
QUERIES = [(flavor, way) for flavor in ("mysql", "mariadb") for way in WAYS if (flavor, way) != ("mariadb", "window")]
CRASHES = ("planned, not kept", "planned", "read, not delivered", "delivered")
ACTIONS = (
    *("insert", "insert", "update", "update", "update", "delete", "rekey"),
    *("commit", "commit", "commit", "rollback", "savepoint", "undo"),
    *("truncate", "large", "alter", "other", "rotate"),
)
XA_ACTIONS = (*ACTIONS, *("prepare", "decide") * 3)
KINDS = {
    "int": ("id int", "{n}", "id"),
    "text": (
        "id varchar(20) COLLATE utf8mb4_general_ci",
        "ELT({n} + 1, 'b','A','c','ö','','zz','a b','Z','10','9')",
        "id",
    ),
    "latin": ("id varchar(20) CHARACTER SET latin1 COLLATE latin1_german1_ci", "CONCAT('ü', {n} * 7 % 10)", "id"),
    "binary": ("id binary(8)", "UNHEX(LEFT(MD5({n}), 16))", "id"),
    "decimal": ("id decimal(12, 4)", "({n} - 5) / 8", "id"),
    "datetime": ("id datetime(6)", "'2024-03-31' + INTERVAL {n} * 7 MICROSECOND", "id"),
    "enum": ("id enum('z','y','x','w','v','u','t','s','r','q')", "{n} + 1", "id"),
    "pair": ("part int, id varchar(9)", "{n} % 3, CONCAT('s', {n})", "part, id"),
    "none": ("id int", "{n}", ""),
}
State = int | None


class Table:
    """A table, the sessions that change it, and the states that its rows went through.

    Args:
        xa: whether all transactions are XA ones; some stay prepared for a while.
    """

    def __init__(self, server: MysqlServer, name: str, kind: str, chance: random.Random, xa: bool = False) -> None:
        self.name, self.kind, self.chance, self.xa = name, kind, chance, xa
        self._server = server
        self._started: dict[int, str] = {}
        self._prepared: dict[str, list[tuple[int, State]]] = {}
        self._branches = 0
        self.history: dict[int, list[State]] = {n: [None] for n in range(KEYS)}
        self._connections = [server.connect(DATABASE, autocommit=False) for _ in range(SESSIONS)]
        self._pending: list[list[tuple[int, State]]] = [[] for _ in range(SESSIONS)]
        self._savepoints: list[list[int]] = [[] for _ in range(SESSIONS)]
        self._rows: dict[int, State] = dict.fromkeys(range(KEYS))
        self._owner: dict[int, int | str] = {}
        self._version = self._altered = 0
        self._ddl = server.connect(DATABASE)
        for conn in (*self._connections, self._ddl):
            self._set_up(conn)
        columns, _, key = KINDS[kind]
        primary = f", PRIMARY KEY ({key})" if key else ""
        self._run(self._ddl, f"CREATE TABLE {name} ({columns}, n int NOT NULL, v int NOT NULL, pad text{primary})")
        for n in chance.sample(range(KEYS), chance.randint(0, KEYS)):
            self._change(0, "insert", n, n)
        self._end(0, commit=True)

    def _set_up(self, conn: pymysql.Connection[Any]) -> None:
        self._run(conn, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        self._run(conn, "SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")

    def _run(self, conn: pymysql.Connection[Any], statement: str) -> int:
        with conn.cursor() as cursor:
            return int(cursor.execute(statement))

    def step(self) -> None:
        """Do something, unless it would wait for another session."""
        action = self.chance.choice(XA_ACTIONS if self.xa else ACTIONS)
        session = self.chance.randrange(SESSIONS)
        n, other = self.chance.randrange(KEYS), self.chance.randrange(KEYS)
        conn = self._connections[session]
        if action in ("commit", "rollback"):
            self._end(session, action == "commit")
        elif action == "prepare":
            self._prepare(session)
        elif action == "decide":
            if self._prepared:
                self._decide(self.chance.choice(list(self._prepared)), self.chance.random() < 0.7)
        elif self.xa and action in ("savepoint", "undo"):
            return
        elif action == "savepoint":
            self._run(conn, "SAVEPOINT s")
            self._savepoints[session].append(len(self._pending[session]))
        elif action == "undo":
            if self._savepoints[session]:
                self._run(conn, "ROLLBACK TO SAVEPOINT s")
                self._undo(session, self._savepoints[session].pop())
                self._savepoints[session].clear()
        elif action == "large":
            # More than a segment.
            rows = ", ".join(f"('{'x' * LARGE}')" for _ in range(40))
            self._run(self._ddl, f"INSERT INTO filler (pad) VALUES {rows}")
        elif action == "rotate":
            self._run(self._ddl, "FLUSH BINARY LOGS")
        elif action in ("truncate", "alter", "other"):
            # Rarely: whoever reads the table may have to be waited for.
            if self.chance.random() < 0.5:
                self.define(action)
        elif all(self._owner.get(one, session) == session for one in (n, other)):
            self._change(session, action, n, other)

    def define(self, action: str) -> None:
        """Change the structure of this table or of others, or empty it, if nobody uses it."""
        if action == "other":
            name = f"other{self.chance.randrange(2)}"
            statement = self.chance.choice(
                (
                    f"CREATE TABLE IF NOT EXISTS {name} (id int PRIMARY KEY, w int)",
                    f"DROP TABLE IF EXISTS {name}",
                    "ALTER TABLE filler COMMENT 'again'",
                )
            )
            with suppress(pymysql.err.OperationalError):  # A reader holds the table.
                self._run(self._ddl, statement)
            return
        if any(self._pending) or any(self._savepoints) or self._prepared:
            return
        for session in list(self._started):
            self._end(session, commit=False)
        for conn in self._connections:
            conn.rollback()
        statement = f"TRUNCATE TABLE {self.name}"
        if action == "alter":
            drops = self._altered % 2
            statement = f"ALTER TABLE {self.name} " + ("DROP more" if drops else "ADD more int DEFAULT 7 FIRST")
        with suppress(pymysql.err.OperationalError):
            self._run(self._ddl, statement)
            self._altered += action == "alter"
            if action == "truncate":
                for n in range(KEYS):
                    self._rows[n] = None
                    self.history[n].append(None)

    def _change(self, session: int, action: str, n: int, other: int) -> None:
        conn = self._connections[session]
        there = self._rows[n] is not None
        if (action == "insert") == there:
            return
        self._version += 1
        v, pad = self._version, chr(97 + self._version % 26) * self.chance.choice((1, LARGE))
        states: list[tuple[int, State]] = [(n, v)]
        columns, values, _ = KINDS[self.kind]
        names = [column.split()[0] for column in columns.replace("enum(", "(").split(", ") if column[0] in "ip"]
        names = names[:2] if self.kind == "pair" else names[:1]
        if action == "insert":
            listed = ", ".join((*names, "n", "v", "pad"))
            statement = f"INSERT INTO {self.name} ({listed}) VALUES ({values.format(n=n)}, {n}, {v}, '{pad}')"
        elif action == "update":
            statement = f"UPDATE {self.name} SET v = {v} WHERE n = {n}"
        elif action == "delete":
            statement, states = f"DELETE FROM {self.name} WHERE n = {n}", [(n, None)]
        else:
            if n == other or self._rows[other] is not None:
                return
            literals = values.format(n=other)
            parts = literals.split(", ", 1) if self.kind == "pair" else [literals]
            moved = ", ".join(f"{name} = {part}" for name, part in zip(names, parts, strict=True))
            statement = f"UPDATE {self.name} SET {moved}, n = {other}, v = {v} WHERE n = {n}"
            states = [(n, None), (other, v)]
        # Without an index every row that is looked at would be locked for a moment.
        if self.xa and session not in self._started:
            self._branches += 1
            self._started[session] = f"X'{self._branches:04x}',X'{self.name.encode().hex()}',{session}"
            self._run(conn, f"XA START {self._started[session]}")
        with suppress(pymysql.err.OperationalError):
            assert self._run(conn, statement) == 1
            for one, state in states:
                self._owner[one] = session
                self._rows[one] = state
                self._pending[session].append((one, state))

    def _end(self, session: int, commit: bool) -> None:
        conn = self._connections[session]
        if session in self._started:
            self._end_branch(session, commit)
        elif commit:
            conn.commit()
        else:
            conn.rollback()
        if commit:
            for n, state in self._pending[session]:
                self.history[n].append(state)
        self._savepoints[session].clear()
        self._undo(session, len(self._pending[session]) if commit else 0)
        self._pending[session].clear()
        self._owner = {n: owner for n, owner in self._owner.items() if owner != session}

    def _end_branch(self, session: int, commit: bool) -> None:
        conn, xid = self._connections[session], self._started.pop(session)
        self._run(conn, f"XA END {xid}")
        if commit and self.chance.random() < 0.3:
            self._run(conn, f"XA COMMIT {xid} ONE PHASE")
            return
        if commit or self.chance.random() < 0.5:
            self._run(conn, f"XA PREPARE {xid}")
        self._run(conn, f"XA {'COMMIT' if commit else 'ROLLBACK'} {xid}")

    def _prepare(self, session: int) -> None:
        """Leave a session's branch prepared, for another session to end."""
        xid = self._started.pop(session, None)
        if xid is None:
            return
        conn = self._connections[session]
        self._run(conn, f"XA END {xid}")
        self._run(conn, f"XA PREPARE {xid}")
        conn.close()
        self._connections[session] = self._server.connect(DATABASE, autocommit=False)
        self._set_up(self._connections[session])
        self._prepared[xid], self._pending[session] = self._pending[session], []
        self._owner = {n: xid if owner == session else owner for n, owner in self._owner.items()}

    def _decide(self, xid: str, commit: bool) -> None:
        """End a prepared branch, as soon as the server has noticed that its session is gone."""
        for attempt in range(500):
            try:
                self._run(self._ddl, f"XA {'COMMIT' if commit else 'ROLLBACK'} {xid}")
                break
            except pymysql.err.MySQLError:
                assert attempt < 499, xid
                self._run(self._ddl, "DO SLEEP(0.01)")
        pending = self._prepared.pop(xid)
        for n, state in pending:
            if commit:
                self.history[n].append(state)
            else:
                self._rows[n] = self.history[n][-1]
        self._owner = {n: owner for n, owner in self._owner.items() if owner != xid}

    def _undo(self, session: int, upto: int) -> None:
        undone = {n for n, _ in self._pending[session][upto:]}
        del self._pending[session][upto:]
        for n in undone:
            left = [state for one, state in self._pending[session] if one == n]
            self._rows[n] = left[-1] if left else self.history[n][-1]

    def finish(self) -> None:
        """Commit everything."""
        for session in range(SESSIONS):
            self._end(session, commit=True)
        for xid in list(self._prepared):
            self._decide(xid, commit=True)

    def check(self, seen: dict[int, list[State]]) -> None:
        """Prove convergence and that no row went back in time."""
        for n, states in seen.items():
            steps = [state for at, state in enumerate(states) if at == 0 or state != states[at - 1]]
            history = iter(self.history[n])
            assert all(any(state == was for was in history) for state in steps), (n, steps, self.history[n])
        assert {n: states[-1] for n, states in seen.items() if states[-1] is not None} == self.rows()

    def rows(self) -> dict[int, State]:
        """Return the table's rows."""
        with self._ddl.cursor() as cursor:
            cursor.execute(f"SELECT n, v FROM {self.name}")
            return {int(n): int(v) for n, v in cursor.fetchall()}

    def drop(self) -> None:
        """Drop the table, as soon as nobody reads it."""
        self._run(self._ddl, "SET SESSION lock_wait_timeout = 20")
        self._run(self._ddl, f"DROP TABLE {self.name}")

    def close(self) -> None:
        """Close the sessions."""
        for conn in (*self._connections, self._ddl):
            conn.close()


class Laboratory:
    """One query that reads tables in one way, and is followed as a sink would."""

    def __init__(self, server: MysqlServer, way: str, state: Path, xa: bool = False) -> None:
        self.server, self.way, self._state, self.xa = server, way, state, xa
        self.inject: Callable[[], None] = lambda: None
        self.locked = False
        self._turn = threading.Lock()
        self.query: InProcess | None = None
        if way != "initial":
            self.query = self._open(None)
            self.query.drain()
            self.query.restart()

    def options(self) -> dict[str, str]:
        """Return the query's options."""
        options = {
            **self.server.options(),
            "topic.prefix": "p",
            "state.dir": str(self._state),
            "table.include.list": rf"{DATABASE}\.(t\d+|signals|filler)",
            "signal.data.collection": f"{DATABASE}.signals",
            "skipped.operations": "none",
            "include.schema.changes": "false",
            "snapshot.chunk.bytes": "8192",
            "snapshot.max.threads": "1",
            "segment.bytes": "65536",
            "max.batch.rows": "16",
            "incremental.snapshot.chunk.size": "1",
        }
        if self.way != "initial":
            options["snapshot.mode"] = "no_data"
        if self.way == "parallel":
            options["snapshot.new.tables"] = "parallel"
        if self.way == "watermarks":
            options["incremental.snapshot.read.points"] = "watermarks"
        return options

    def _open(self, offset: dict[str, Any] | None) -> InProcess:
        return InProcess(self.options(), offset)

    def quietly(self) -> None:
        """Change something, unless another thread does so or the tables are locked."""
        if not self.locked and self._turn.acquire(blocking=False):
            try:
                self.inject()
            finally:
                self._turn.release()

    def run(self, number: int) -> None:
        """Read one table while it changes and the query dies, and compare."""
        chance = random.Random(number)
        kinds = list(KINDS) if self.way in ("initial", "parallel", "blocking") else list(KINDS)[:-1]
        table = Table(self.server, f"t{number}", chance.choice(kinds), chance, self.xa)
        steps = iter(range(STEPS))

        def inject() -> None:
            for _ in range(chance.randrange(3)):
                if next(steps, None) is not None:
                    table.step()

        try:
            self._run(table, inject, chance)
        finally:
            self.inject = lambda: None
            table.close()

    def _run(self, table: Table, inject: Callable[[], None], chance: random.Random) -> None:
        if self.way == "initial":
            for _ in range(10 if self.xa else 0):
                # Some branches are prepared before the query begins.
                table.step()
            self.query = self._open(None)
        query = self.query
        assert query is not None
        if self.way not in ("initial", "parallel"):
            kind = "blocking" if self.way == "blocking" else "incremental"
            self._signal("execute-snapshot", {"type": kind, "data-collections": [f"{DATABASE}.{table.name}"]})
        seen: dict[int, list[State]] = {n: [None] for n in range(KEYS)}
        follows = self.way == "initial"
        self.inject = inject
        crashes = {chance.randrange(8): chance.choice(CRASHES) for _ in range(2)}
        begun = False
        for number in range(STEPS + 60):
            if number == STEPS:
                self.inject = lambda: None
            self.quietly()
            reader = query.reader
            end = reader.latestOffset(query.offset, reader.getDefaultReadLimit())
            begun = begun or self._reads(end)
            self.quietly()
            crash = crashes.pop(number, None)
            if crash == "planned, not kept":
                query = self._die(query, table)
                continue
            if crash == "planned":
                query = self._die(query, table)
            rows = query.run(end) if end != query.offset else []
            if crash == "read, not delivered":
                query = self._die(query, table)
                rows = query.run(end) if end != query.offset else []
            follows = self._follow(seen, table, rows, follows or bool(end["lane"]))
            query.offset = end
            if crash == "delivered":
                query = self._die(query, table)
            else:
                query.reader.commit(end)
            if begun and not self._reads(end) and (number >= 8 or not crashes):
                break
        self.inject = lambda: None
        table.finish()
        self._signal("log", {"message": "the end"})
        ended = False
        while not ended or self._reads(query.offset):
            rows = query.step()
            ended = ended or any(row["table"] == "signals" and '"type":"log"' in str(row["value"]) for row in rows)
            follows = self._follow(seen, table, rows, follows)
        if self.way == "initial":
            query.stop()
            self.query = None
        table.check(seen)
        table.drop()

    def _die(self, query: InProcess, table: Table) -> InProcess:
        """Go on in another process, as far as the source can tell; tables change meanwhile."""
        query.stop()
        if self.xa and table.chance.random() < 0.5:
            for spool in self._state.glob("*/spool"):
                shutil.rmtree(spool)
        table.define("alter")
        self.quietly()
        self.query = self._open(query.offset)
        return self.query

    def _reads(self, offset: dict[str, Any]) -> bool:
        return any(offset[name] is not None for name in ("snapshot", "incremental", "lane")) or bool(offset["blocking"])

    def _follow(self, seen: dict[int, list[State]], table: Table, rows: list[dict[str, Any]], follows: bool) -> bool:
        """Apply a micro-batch; what a table held before it is read, nobody tells."""
        for row in sorted(rows, key=lambda row: str(row["position"])):
            follows = follows or (row["table"] == "signals" and '"execute-snapshot"' in str(row["value"]))
            if not follows or row["table"] != table.name or row["value"] is None:
                continue
            value = json.loads(row["value"])
            if row["op"] == "t":
                for states in seen.values():
                    states.append(None)
            elif row["op"] == "d":
                seen[value["before"]["n"]].append(None)
            else:
                if row["op"] == "u" and value["before"]["n"] != value["after"]["n"]:
                    # Without a key the event is one.
                    seen[value["before"]["n"]].append(None)
                seen[value["after"]["n"]].append(value["after"]["v"])
        return follows

    def _signal(self, kind: str, data: dict[str, Any]) -> None:
        statement = f"INSERT INTO {DATABASE}.signals VALUES (UUID(), '{kind}', '{json.dumps(data)}')"
        self.server.execute(statement)

    def close(self) -> None:
        """Stop the query."""
        if self.query is not None:
            self.query.stop()


def injecting(laboratory: Laboratory, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with changes before and after it."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        laboratory.quietly()
        result = method(*args, **kwargs)
        laboratory.quietly()
        return result

    return wrapped


@contextmanager
def opened(server: MysqlServer, way: str, state: Path, xa: bool = False) -> Iterator[Laboratory]:
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"GRANT INSERT, DELETE ON {DATABASE}.* TO {server.user}",
        f"CREATE TABLE {DATABASE}.signals (id varchar(64) PRIMARY KEY, type varchar(32), data text)",
        f"CREATE TABLE {DATABASE}.filler (id int PRIMARY KEY AUTO_INCREMENT, pad text)",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_tables, "EVERY_S", 0.0)
        made = Laboratory(server, way, state, xa)
        lock, begin_locked, unlocked = ReadPoints._lock, ReadPoints._begin, ReadPoints.open

        def locking(self: ReadPoints, *args: Any) -> None:
            made.locked = True
            lock(self, *args)

        def opening(self: ReadPoints, *args: Any, **kwargs: Any) -> Any:
            try:
                return unlocked(self, *args, **kwargs)
            finally:
                made.locked = False

        def nowhere(self: ReadPoints, control: Any, conns: Any, may_lock: bool) -> Any:
            return begin_locked(self, control, conns, may_lock) if may_lock else None

        patch.setattr(ReadPoints, "_lock", locking)
        patch.setattr(ReadPoints, "open", opening)
        if way == "window":
            patch.setattr(ReadPoints, "_begin", nowhere)
        for owner, names in HOOKS.items():
            for name in names:
                patch.setattr(owner, name, injecting(made, getattr(owner, name)))
        yield made
        made.close()
    server.execute(f"DROP DATABASE {DATABASE}")


@pytest.mark.timeout(max(600, 60 * CASES))
@pytest.mark.parametrize(("binlog_server", "way"), QUERIES, indirect=["binlog_server"])
def test_convergence_and_no_time_travel(binlog_server: MysqlServer, way: str, tmp_path: Path) -> None:
    with opened(binlog_server, way, tmp_path) as laboratory:
        for number in range(CASES):
            laboratory.run(number)


@pytest.mark.timeout(max(600, 60 * CASES))
@pytest.mark.parametrize(("binlog_server", "way"), QUERIES, indirect=["binlog_server"])
def test_convergence_and_no_time_travel_with_xa(binlog_server: MysqlServer, way: str, tmp_path: Path) -> None:
    with opened(binlog_server, way, tmp_path, xa=True) as laboratory:
        for number in range(XA_CASES):
            laboratory.run(number)
