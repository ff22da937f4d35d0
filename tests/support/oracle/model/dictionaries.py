"""Dictionaries for LogMiner, as ``DBMS_LOGMNR_D.BUILD`` writes them: into the redo logs, or into a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model.tables import Structure, Table, column

if TYPE_CHECKING:
    from tests.support.oracle.model.database import OracleDatabase
    from tests.support.oracle.model.logs import RedoLog

OWNER, NAME = "SYS", "LOGMNRG_OBJ$"
"""One of the tables that LogMiner's own dictionary goes through; their rows are in the log."""


@dataclass(eq=False)
class StoredDictionary:
    """A dictionary.

    Attributes:
        database_id: of the database that it was made from.
        scn: when it was complete.
        structures: the tables then, by their numbers.
        logs: those that it is in, in their order; none if it is in a file.
    """

    database_id: int
    scn: int
    structures: dict[int, Structure]
    logs: list[RedoLog] = field(default_factory=list)

    def is_in(self, logs: Sequence[RedoLog]) -> bool:
        """Return whether logs have all of it."""
        return all(any(one is log for log in logs) for one in self.logs)


def made_of(database: OracleDatabase) -> StoredDictionary:
    """Return the dictionary as it is now."""
    structures = {one.object_id: one.structure for one in database.tables if not one.dropped}
    return StoredDictionary(database.settings.database_id, database.clock.scn, structures)


def write_into_logs(database: OracleDatabase, thread: int) -> None:
    """Write the dictionary into the logs of a redo thread, which are switched before and after.

    Raises:
        OracleError: the database archives no logs, or is open for reading only.
    """
    if database.settings.log_mode != "ARCHIVELOG":
        raise OracleError(1325)
    if database.settings.open_mode != "READ WRITE":
        raise OracleError(16000)
    table = _gathering_table(database)
    database.switch_log(thread)
    logs = [database.threads[thread].current]
    transaction = database.begin(OWNER, thread, session=True)
    tables = [one for one in database.tables if not one.dropped and one is not table]
    for number, one in enumerate(tables):
        if number and len(logs) < database.settings.dictionary_logs:
            database.switch_log(thread)
            logs.append(database.threads[thread].current)
        transaction.insert(table, **{"OBJ#": Decimal(one.object_id), "NAME": one.name})
    transaction.commit()
    stored = made_of(database)
    stored.logs = logs
    logs[0].begun.append(stored)
    logs[-1].ended.append(stored)
    database.switch_log(thread)


def _gathering_table(database: OracleDatabase) -> Table:
    for one in database.tables:
        if (one.owner, one.name) == (OWNER, NAME):
            return one
    columns = [column("OBJ#", "NUMBER"), column("NAME", "VARCHAR2(128)")]
    return database.create_table(OWNER, NAME, columns, container="CDB$ROOT", logged=False, session=True)
