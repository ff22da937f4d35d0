"""Changes by several sessions, step by step at chosen moments, and what a key's history may look like."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from tests.support.patience import within

Step = tuple[int, str, int, int]
"""Session, action, number of a key, number of another key."""

ACTIONS = (
    *("insert", "update", "update", "delete", "rekey", "touch_big"),
    *("commit", "commit", "stall", "rollback", "savepoint", "undo", "truncate"),
)
State = tuple[int, str] | None
"""The number of the last change and the first letter of the large value ("?" if unknown); None: no row."""


@dataclass(frozen=True)
class KeyKind:
    """A kind of key: its columns' definitions, and literals for the key of a number."""

    name: str
    columns: tuple[tuple[str, str], ...]
    literals: tuple[str, ...]

    def values(self, number: int) -> sql.Composed:
        return sql.SQL(", ").join(sql.SQL(text.format(n=number)) for text in self.literals)

    @property
    def names(self) -> sql.Composed:
        return sql.SQL(", ").join(sql.Identifier(name) for name, _ in self.columns)


_TEXTS = "(ARRAY['a','B','b','Z','ä','é','zz','','a b','''q','10','9'])[{n} + 1]"
_TIMES = "timestamptz '2024-03-31 00:30:00+00' + {n} * interval '17 minutes 0.000001 s'"

KINDS = (
    KeyKind("integer", (("id", "integer"),), ("{n}",)),
    KeyKind("bigint with gaps", (("id", "bigint"),), ("{n}::bigint * {n} * 1000000007",)),
    KeyKind("text", (("id", "text"),), (_TEXTS,)),
    KeyKind(
        "text, C",
        (("id", 'text COLLATE "C"'),),
        ("(ARRAY['a','B','b','Z','ä','é','zz','','a b','x','10','9'])[{n} + 1]",),
    ),
    KeyKind("uuid", (("id", "uuid"),), ("md5('{n}')::uuid",)),
    KeyKind("numeric", (("id", "numeric"),), ("({n} - 5)::numeric / 3",)),
    KeyKind(
        "timestamptz",
        (("id", "timestamptz"),),
        (_TIMES,),
    ),
    KeyKind("bytea", (("id", "bytea"),), ("decode(md5('{n}'), 'hex')",)),
    KeyKind("enum", (("id", "mood"),), ("(enum_range(NULL::mood))[{n} + 1]",)),
    KeyKind("domain", (("id", "short_text"),), ("('d' || {n})::short_text",)),
    KeyKind("bpchar", (("id", "char(6)"),), ("'k' || {n}",)),
    KeyKind("bit", (("id", "bit(4)"),), ("{n}::bit(4)",)),
    KeyKind("double", (("id", "double precision"),), ("({n} - 4) / 7.0",)),
    KeyKind("composite", (("part", "integer"), ("Second Key", "text")), ("{n} % 3", "'s' || {n}")),
    KeyKind(
        "reserved",
        (("order", "smallint"), ("select", "date"), ("x", "integer")),
        ("{n} % 2", "date '2024-01-01' + {n} % 3", "{n}"),
    ),
)
KEYS = 12
TYPES = (
    "CREATE TYPE mood AS ENUM ('m', 'l', 'k', 'j', 'i', 'h', 'g', 'f', 'e', 'd', 'c', 'b')",
    "CREATE DOMAIN short_text AS text",
)


@dataclass
class Sessions:
    """Sessions that change one table; a step that would wait for another session is left out.

    Attributes:
        history: the states that each key had, in the order of commits.
        key_of_version: every change sets another ``v``, so that it tells the key.
    """

    conninfo: str
    table: str
    kind: KeyKind
    connections: list[psycopg.Connection[Any]]
    history: dict[str, list[State]] = field(default_factory=dict)
    key_of_version: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._owner: dict[int, int] = {}
        self._stalled: dict[int, threading.Thread] = {}
        self._pending: list[list[tuple[str, State]]] = [[] for _ in self.connections]
        self._savepoints: list[list[int]] = [[] for _ in self.connections]
        self._version = 0
        self._name = sql.Identifier(self.table)

    def create(self, present: Sequence[int]) -> None:
        """Create the table with some rows."""
        conn = self.connections[0]
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in self.kind.columns
        )
        conn.execute(
            sql.SQL("CREATE TABLE {} ({}, v integer NOT NULL, big text, PRIMARY KEY ({}))").format(
                self._name, columns, self.kind.names
            )
        )
        conn.execute(sql.SQL("ALTER TABLE {} ALTER big SET STORAGE EXTERNAL").format(self._name))
        conn.commit()
        for number in present:
            self.step((0, "insert", number, 0))
        self.step((0, "commit", 0, 0))

    def step(self, step: Step) -> None:
        """Take one step, or leave it out if it would wait."""
        session, action, number, other = step
        conn = self.connections[session]
        self._release(session)
        if action == "commit":
            conn.commit()
            self._committed(session)
        elif action == "stall":
            self._stall(session)
        elif action == "rollback":
            conn.rollback()
            self._end(session)
        elif action == "savepoint":
            conn.execute("SAVEPOINT s")
            self._savepoints[session].append(len(self._pending[session]))
        elif action == "undo":
            if self._savepoints[session]:
                conn.execute("ROLLBACK TO SAVEPOINT s")
                conn.execute("RELEASE SAVEPOINT s")
                del self._pending[session][self._savepoints[session].pop() :]
        elif action == "truncate":
            self._truncate(session)
        elif all(self._owner.get(n, session) == session for n in (number, other)):
            self._change(session, action, number, other)

    def _committed(self, session: int) -> None:
        for key, state in self._pending[session]:
            self.history.setdefault(key, [None]).append(state)
        self._end(session)

    def _stall(self, session: int) -> None:
        """Commit, but wait for a standby that doesn't exist: the log has the commit, others don't see it."""
        if not self._pending[session]:
            return
        conn = self.connections[session]
        conn.execute("SET LOCAL synchronous_commit = 'on'")
        thread = threading.Thread(target=conn.commit)
        thread.start()
        self._stalled[session] = thread
        deadline = time.monotonic() + within(10)
        with psycopg.connect(self.conninfo, autocommit=True) as watcher:
            waiting = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
            while not watcher.execute(waiting, [conn.info.backend_pid]).fetchone():
                assert thread.is_alive(), "the commit did not wait"
                assert time.monotonic() < deadline

    def _release(self, session: int) -> None:
        """Let a commit that waits become visible."""
        thread = self._stalled.pop(session, None)
        if thread is None:
            return
        with psycopg.connect(self.conninfo, autocommit=True) as conn:
            conn.execute("SELECT pg_cancel_backend(%s)", [self.connections[session].info.backend_pid])
        thread.join(within(10))
        assert not thread.is_alive()
        self._committed(session)

    def _truncate(self, session: int) -> None:
        """Empty the table in a transaction of its own, if nobody uses it."""
        conn = self.connections[session]
        if self._owner or self._pending[session] or self._savepoints[session]:
            return
        conn.rollback()
        try:
            conn.execute("SET LOCAL lock_timeout = '20ms'")
            conn.execute(sql.SQL("TRUNCATE {}").format(self._name))
            conn.commit()
        except psycopg.errors.LockNotAvailable:
            conn.rollback()
            return
        for states in self.history.values():
            states.append(None)

    def finish(self) -> None:
        """Commit everything."""
        for session in range(len(self.connections)):
            self.step((session, "commit", 0, 0))

    def abandon(self) -> None:
        """Roll back everything, whatever state it is in."""
        for session, conn in enumerate(self.connections):
            self._release(session)
            conn.rollback()

    def rows(self) -> dict[str, State]:
        """Return the table's rows by key."""
        with psycopg.connect(self.conninfo) as conn:
            found = conn.execute(
                sql.SQL("SELECT ROW({})::text, v, big FROM {}").format(self.kind.names, self._name)
            ).fetchall()
        return {key: (v, big[:1] if big else "") for key, v, big in found}

    def drop(self) -> None:
        """Drop the table."""
        with psycopg.connect(self.conninfo, autocommit=True) as conn:
            conn.execute(sql.SQL("DROP TABLE {}").format(self._name))

    def _change(self, session: int, action: str, number: int, other: int) -> None:
        conn = self.connections[session]
        self._version += 1
        version = self._version
        letter = chr(97 + version % 26)
        self._owner[number] = self._owner[other] = session
        names, key = self.kind.names, self.kind.values(number)
        returning = sql.SQL(" RETURNING ROW({})::text, v, left(big, 1)").format(names)
        where = sql.SQL(" WHERE ({}) = ({})").format(names, key)
        if action == "insert":
            statement = sql.SQL("INSERT INTO {} VALUES ({}, {}, repeat({}, 3000)) ON CONFLICT ({}) DO NOTHING").format(
                self._name, key, sql.Literal(version), sql.Literal(letter), names
            )
        elif action == "update":
            statement = sql.SQL("UPDATE {} SET v = {}").format(self._name, sql.Literal(version)) + where
        elif action == "touch_big":
            statement = (
                sql.SQL("UPDATE {} SET v = {}, big = repeat({}, 3000)").format(
                    self._name, sql.Literal(version), sql.Literal(letter)
                )
                + where
            )
        elif action == "delete":
            statement = sql.SQL("DELETE FROM {}").format(self._name) + where
        else:
            self._rekey(session, number, other, version, letter)
            return
        for text, v, big in conn.execute(statement + returning).fetchall():
            self.key_of_version[version] = text
            self._pending[session].append((text, None if action == "delete" else (v, big or "")))

    def _rekey(self, session: int, number: int, other: int, version: int, letter: str) -> None:
        """Change a row's key, and its large value too: one that stays is in no event of the new key."""
        if number == other:
            return
        conn = self.connections[session]
        names = self.kind.names
        old, new = self.kind.values(number), self.kind.values(other)
        taken = conn.execute(sql.SQL("SELECT 1 FROM {} WHERE ({}) = ({})").format(self._name, names, new)).fetchone()
        if taken:
            return
        before = conn.execute(
            sql.SQL("SELECT ROW({})::text FROM {} WHERE ({}) = ({})").format(names, self._name, names, old)
        ).fetchone()
        changed = conn.execute(
            sql.SQL(
                "UPDATE {} SET ({}) = ROW({}), v = {}, big = repeat({}, 3000) WHERE ({}) = ({}) "
                "RETURNING ROW({})::text, v, left(big, 1)"
            ).format(self._name, names, new, sql.Literal(version), sql.Literal(letter), names, old, names)
        ).fetchone()
        if before and changed:
            self.key_of_version[version] = changed[0]
            self._pending[session] += [(before[0], None), (changed[0], (changed[1], changed[2] or ""))]

    def _end(self, session: int) -> None:
        self._pending[session] = []
        self._savepoints[session] = []
        self._owner = {number: owner for number, owner in self._owner.items() if owner != session}


def _matches(seen: State, actual: State) -> bool:
    if seen is None or actual is None:
        return seen is actual
    return seen[0] == actual[0] and seen[1] in ("?", actual[1])


def is_subsequence(seen: Sequence[State], history: Sequence[State]) -> bool:
    """Return whether the states that a key was seen in are some of those that it had, in that order."""
    place = 0
    for state in seen:
        while place < len(history) and not _matches(state, history[place]):
            place += 1
        if place == len(history):
            return False
    return True
