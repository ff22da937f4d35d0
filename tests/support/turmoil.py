"""What else happens in a database beside changes of rows: tables come, go and are replaced by copies; XA branches."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterable

from tests.support.applying import Event, apply
from tests.support.databases import Database, Session
from tests.support.patience import within

ROWS = 20
MOST_TABLES = 3
MOST_BRANCHES = 4


class Turmoil:
    """Does such things at random in a thread, beside a ``Workload``.

    Args:
        database: that of the workload.
        seed: of the random numbers.
        xa: whether branches of distributed transactions are prepared, too, and committed or rolled back later.
    """

    def __init__(self, database: Database, seed: int, xa: bool = False) -> None:
        self._database = database
        self._random = random.Random(seed)
        self._xa = xa
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._tables: list[str] = []
        self._branches: list[str] = []
        self._count = 0
        self.error: BaseException | None = None

    def create(self) -> None:
        """Create the tables that stay."""
        with self._database.session() as session:
            for table in ("ghosted", "branched"):
                self._create(session, table)

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, leaving no branch prepared, and change every row that stays once more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(within(60))
            assert self.error is not None or not self._thread.is_alive(), "The last transaction does not end."
        if self.error is not None:
            raise self.error
        while self._branches:
            self._decide()
        with self._database.session() as session:
            for table in self._names():
                session.execute(f"UPDATE {table} SET v = v + 1")
            session.commit()

    def check(self, events: Iterable[Event]) -> None:
        """Prove that what was delivered makes the tables that are there."""
        applied = apply(events)
        with self._database.session() as session:
            for table in self._names():
                rows = {json.dumps({"id": key}, separators=(",", ":")): v for key, v in self._read(session, table)}
                delivered = applied.get(f"{self._database.schema}.{table}", {})
                assert {key: row["v"] for key, row in delivered.items()} == rows, table

    def _names(self) -> list[str]:
        return ["ghosted", "branched", *self._tables]

    def _run(self) -> None:
        actions = [self._come, self._go, self._replace, self._change]
        if self._xa:
            actions += [self._prepare, self._prepare, self._decide]
        try:
            while not self._stop.wait(self._random.choice([0.02, 0.1, 0.3])):
                self._random.choice(actions)()
        except BaseException as exc:
            self.error = exc

    def _create(self, session: Session, table: str) -> None:
        session.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY, v bigint NOT NULL)")
        session.execute(f"INSERT INTO {table} SELECT g, 0 FROM ({self._database.numbers}) n", [ROWS])
        session.commit()

    def _read(self, session: Session, table: str) -> list[tuple[int, int]]:
        return [(int(key), int(v)) for key, v in session.execute(f"SELECT id, v FROM {table}")]

    def _come(self) -> None:
        if len(self._tables) == MOST_TABLES:
            return
        self._count += 1
        with self._database.session() as session:
            self._create(session, f"passing_{self._count}")
        self._tables.append(f"passing_{self._count}")

    def _go(self) -> None:
        if self._tables:
            with self._database.session() as session:
                session.execute(f"DROP TABLE {self._tables.pop(0)}")
                session.commit()

    def _replace(self) -> None:
        """Put a copy in a table's place, as tools for schema changes without locks do."""
        with self._database.session() as session:
            session.execute("CREATE TABLE ghosted_new (id integer PRIMARY KEY, v bigint NOT NULL)")
            session.execute("INSERT INTO ghosted_new SELECT id, v FROM ghosted")
            for statement in self._database.swap("ghosted", "ghosted_new", "ghosted_old"):
                session.execute(statement)
            session.commit()
            session.execute("DROP TABLE ghosted_old")
            session.commit()

    def _change(self) -> None:
        table = self._random.choice(["ghosted", *self._tables])
        with self._database.session() as session:
            session.execute(f"UPDATE {table} SET v = v + 1 WHERE id %% 3 = %s", [self._random.randrange(3)])
            session.commit()

    def _prepare(self) -> None:
        """Change rows that no other branch holds, and prepare that."""
        if len(self._branches) == MOST_BRANCHES:
            return
        self._count += 1
        name = f"'branch-{self._count}'"
        free = set(range(MOST_BRANCHES)) - {int(branch.split("/")[1]) for branch in self._branches}
        part = self._random.choice(sorted(free))
        with self._database.session() as session:
            session.execute(f"XA START {name}")
            # By their keys, or the branch would lock the whole table.
            keys = ", ".join(str(key) for key in range(1, ROWS + 1) if key % MOST_BRANCHES == part)
            session.execute(f"UPDATE branched SET v = v + 1 WHERE id IN ({keys})")
            session.execute(f"XA END {name}")
            session.execute(f"XA PREPARE {name}")
        self._branches.append(f"{name}/{part}")

    def _decide(self) -> None:
        """Commit or roll back a branch, in a session that did not prepare it."""
        if not self._branches:
            return
        name = self._branches.pop(self._random.randrange(len(self._branches))).split("/")[0]
        with self._database.session() as session:
            # Without it MariaDB takes the session for one that is in another transaction.
            session.execute("SET autocommit = 1")
            session.execute(f"XA {self._random.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} {name}")
