"""Staging tables: where rows wait in the target for the transaction that applies them."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from uuid import uuid4

from floodmark.errors import TargetBusyError, TargetError
from floodmark.logger import get_logger
from floodmark.sinks.relational.dialect import Dialect, Session
from floodmark.sinks.relational.parts import Part

log = get_logger(__name__)

_PREFIX = "floodmark_stage_"


class StageLostError(TargetBusyError):
    """A staging table doesn't have the rows that a task has loaded; the tasks must run again."""


def prefix_of(query: str) -> str:
    """Return the beginning of the names of a query's staging tables."""
    return f"{_PREFIX}{blake2b(query.encode(), digest_size=6).hexdigest()}_"


def stage_part(dialect: Dialect, session: Session, part: Part, query: str, batch: int) -> Part:
    """Load a part into a staging table of its own, which no other attempt of a task shares.

    Args:
        dialect: the database's.
        session: a connection to it.
        part: one whose rows are at hand.
        query: the query's id.
        batch: the number of the micro-batch.
    """
    rows = part.rows
    assert rows is not None
    name = f"{prefix_of(query)}{batch}_{uuid4().hex[:8]}"
    session.execute(dialect.create_stage(name, rows.schema, temporary=False), doing="making a staging table")
    lost = session.load(dialect.stage_name(name, temporary=False), rows)
    return with_lost(part, lost).in_stage(name)


def with_lost(part: Part, lost: list[str]) -> Part:
    """Return a part that names the columns with values that the database can't hold.

    Args:
        lost: as a staging table names them.
    """
    names = [part.columns.names[int(one[1:])] for one in lost if one[0] == "c"]
    return replace(part, unrepresentable=list(dict.fromkeys([*part.unrepresentable, *names])))


def prove_staged(dialect: Dialect, session: Session, part: Part) -> None:
    """Check that a staging table has all its rows, which a crash of the server may have taken.

    Raises:
        StageLostError: it hasn't.
    """
    name = dialect.stage_name(part.staged, temporary=False)
    ((count,),) = session.query(f"SELECT count(*) FROM {name}", doing="counting staged rows")
    if count != part.count:
        raise StageLostError(
            f"The staging table {name} has {count} rows, but a task had loaded {part.count}.",
            "The target has crashed or failed over; start the query again. Nothing is lost.",
        )


def drop_stages(dialect: Dialect, session: Session, names: list[str]) -> None:
    """Drop staging tables; one that can't be dropped is left to the next start."""
    for name in names:
        try:
            session.execute(dialect.drop_stage(name, temporary=False), doing="dropping a staging table")
        except TargetError as error:
            log.warning("a_staging_table_stays", table=name, why=error.what)
            if isinstance(error, TargetBusyError):
                return


def drop_orphans(dialect: Dialect, session: Session, query: str) -> None:
    """Drop what earlier processes of a query have left."""
    drop_stages(dialect, session, dialect.stages(session, prefix_of(query)))
