"""A case: a database, options, and what happens while a connector streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import Table, column

SCHEMA = "CASES"
END = "END_OF_CASE"
_LAST_SCN, _NUMBER = column("LAST_SCN", "NUMBER(19,0)"), column("ID", "NUMBER(9,0)", nullable=False)

Step = Callable[[OracleDatabase], None]


@dataclass(frozen=True)
class Pause:
    """A place among the steps at which all that was done before must have been delivered.

    Attributes:
        text: what values of Debezium's have by then; empty: the change that ends a case is made, and awaited.
        times: how many of them.
    """

    text: str = ""
    times: int = 1


@dataclass(frozen=True)
class Case:
    """A case.

    Attributes:
        name: of its golden file.
        setup: what is done before the connector starts; it makes the tables.
        steps: what is done while it streams; each is one step of the stand-in.
        options: of the connector.
        adapter: ``database.connection.adapter``.
        tables: the names of the tables.
        reads: whether a snapshot delivers rows.
        streams: whether changes are delivered.
        threads: how many redo threads the database has.
        compact: whether its golden file is compressed.
    """

    name: str
    setup: Step
    steps: Sequence[Step | Pause]
    options: Mapping[str, str] = field(default_factory=dict)
    adapter: str = "logminer"
    tables: Sequence[str] = ()
    reads: bool = True
    streams: bool = True
    threads: int = 1
    compact: bool = False

    @property
    def changes(self) -> list[Step]:
        """The steps that change something."""
        return [step for step in self.steps if not isinstance(step, Pause)]

    def prepared(self) -> OracleDatabase:
        """Return a database on which the case can begin."""
        database = OracleDatabase(threads=self.threads)
        database.create_table(database.account, "LOG_MINING_FLUSH", [_LAST_SCN], logged=False)
        database.create_table(SCHEMA, END, [_NUMBER], ["ID"], logged=False)
        with database.step():
            self.setup(database)
        # A snapshot waits until the tables are older than what the clock can tell apart.
        with database.step():
            return database

    def end(self, database: OracleDatabase) -> None:
        """Make the change that is the last one."""
        with database.step():
            transaction = database.begin()
            transaction.insert(table(database, END), ID=database.clock.scn % 10**9)
            if "c" in self.options.get("skipped.operations", "").split(","):
                transaction.delete(table(database, END), {})
            transaction.commit()


def table(database: OracleDatabase, name: str) -> Table:
    """Return a table of the case."""
    return database.table(SCHEMA, name)
