"""Sessions that change tables at random while a query runs, and what each row went through."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from tests.contract.query import applied_rows
from tests.contract.under_test import Row, SourceUnderTest, Writer
from tests.support.applying import Event, delivered, duplicates, time_travel
from tests.support.interleaving import State, is_subsequence
from tests.support.patience import within

SESSIONS, KEYS, QUIET = 3, 12, 5
"""How many sessions there are, how many rows of a table they change, and how many they leave alone."""
ACTIONS = (*("insert",) * 3, *("update",) * 4, "delete", *("commit",) * 3, "rollback")
PAUSES_S = (0.0, 0.0005, 0.002, 0.005)
LARGE = 3000
MOMENT_S = 0.05
Cell = tuple[str, int]
"""A table and a key."""


class Crowd:
    """Changes tables at random in a thread; a row that a transaction has changed is left alone by others until it ends.

    Args:
        source: what is changed.
        tables: its tables.
        chance: decides how.

    Attributes:
        history: ``v`` of each row after each commit that changed it, None where there was no row.
    """

    def __init__(self, source: SourceUnderTest, tables: Sequence[str], chance: random.Random) -> None:
        self._source = source
        self._tables = tables
        self._chance = chance
        self._stack = ExitStack()
        self._writers: list[Writer] = [self._stack.enter_context(source.writer()) for _ in range(SESSIONS)]
        self._pending: list[dict[Cell, list[State]]] = [{} for _ in self._writers]
        self._owner: dict[Cell, int] = {}
        self._now: dict[Cell, State] = {}
        self.history: dict[Cell, list[State]] = {}
        self._version = 0
        self._steps = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None

    def fill(self) -> None:
        """Insert most of the rows, and some that nothing changes, so that only reading tables delivers them."""
        for table in self._tables:
            for key in [*self._chance.sample(range(KEYS), KEYS * 3 // 4), *range(KEYS, KEYS + QUIET)]:
                self._change(0, "insert", (table, key))
        self._end(0, commit=True)

    def start(self) -> None:
        """Begin to change rows."""
        self._thread.start()

    def pass_by(self, steps: int = 2) -> None:
        """Wait a moment for some steps, which the query itself may keep waiting."""
        until, deadline = self._steps + steps, time.monotonic() + MOMENT_S
        while self._steps < until and time.monotonic() < deadline and self._thread.is_alive():
            time.sleep(0.001)

    def stop(self) -> None:
        """Commit everything and end."""
        self._stop.set()
        self._thread.join(within(30))
        assert self._error is not None or not self._thread.is_alive(), "A session waits for something."
        if self._error is not None:
            raise self._error
        for session in range(SESSIONS):
            self._end(session, commit=True)

    def close(self) -> None:
        """End whatever goes on, if a test has failed."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(within(30))
        self._stack.close()

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._chance.choice(PAUSES_S)):
                self._step()
                self._steps += 1
        except BaseException as exc:
            self._error = exc

    def _step(self) -> None:
        session = self._chance.randrange(SESSIONS)
        action = self._chance.choice(ACTIONS)
        if action in ("commit", "rollback"):
            self._end(session, action == "commit")
            return
        cell = self._chance.choice(self._tables), self._chance.randrange(KEYS)
        if self._owner.get(cell, session) == session and (action == "insert") == (self._now.get(cell) is None):
            self._change(session, action, cell)

    def _change(self, session: int, action: str, cell: Cell) -> None:
        (table, key), writer = cell, self._writers[session]
        self._version += 1
        state: State = (self._version, "")
        letter = chr(97 + self._version % 26)
        if action == "insert":
            writer.insert(table, [(key, self._version, letter * self._chance.choice((1, LARGE)))])
        elif action == "delete":
            state = None
            writer.delete(table, key)
        else:
            # Where ``pad`` stays as it is, the log may lack it.
            writer.update(table, key, self._version, self._chance.choice((None, letter, letter * LARGE)))
        self._owner[cell] = session
        self._now[cell] = state
        self._pending[session].setdefault(cell, []).append(state)

    def _end(self, session: int, commit: bool) -> None:
        if commit:
            self._writers[session].commit()
        else:
            self._writers[session].rollback()
        for cell, states in self._pending[session].items():
            history = self.history.setdefault(cell, [None])
            if commit:
                # The log holds all changes of a transaction.
                history += states
            self._now[cell] = history[-1]
            del self._owner[cell]
        self._pending[session].clear()

    def check(self, events: Iterable[Event]) -> None:
        """Prove convergence, that no row went back in time, and that no change came twice."""
        wanted = {f"{self._source.schema}.{table}" for table in self._tables}
        found = [one for one in events if one.table in wanted]
        assert not time_travel(found)
        assert not duplicates([one for one in found if one.op != "r"])
        seen: dict[Cell, list[State]] = {}
        for one in delivered(found):
            if one.key is not None and one.value is not None:
                cell = one.table.removeprefix(f"{self._source.schema}."), int(json.loads(one.key)["id"])
                after = one.value["after"]
                seen.setdefault(cell, [None]).append(None if after is None else (int(after["v"]), "?"))
        for cell, states in seen.items():
            steps = [state for at, state in enumerate(states) if at == 0 or state != states[at - 1]]
            assert is_subsequence(steps, self.history[cell]), (cell, steps, self.history[cell])
        for table in self._tables:
            applied, rows = set(applied_rows(self._source, table, found)), set(self._source.rows(table))
            assert applied == rows, (table, _brief(applied - rows), _brief(rows - applied))


def _brief(rows: set[Row]) -> list[Row]:
    return sorted((key, v, pad[:8]) for key, v, pad in rows)
