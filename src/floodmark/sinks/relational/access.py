"""Tries whether a target database can be written, as a query will write it."""

from __future__ import annotations

from uuid import uuid4

import pyarrow as pa

from floodmark.sinks.relational.connect import dialect_of
from floodmark.sinks.relational.options import JdbcOptions


def prove_usable(options: JdbcOptions) -> str:
    """Make a table in the target, write to it, and drop it; return the server's version.

    Args:
        options: the sink's.

    Raises:
        ConfigError: the driver is not installed.
        TargetError: the target can't be reached or written, or is too old.
    """
    dialect = dialect_of(options)
    session = dialect.connect()
    try:
        name = f"floodmark_check_{uuid4().hex[:12]}"
        for temporary in (False, True):
            rows = pa.table({"c0": ["probe"]})
            session.begin()
            try:
                session.execute(dialect.create_stage(name, rows.schema, temporary), doing="making a table")
                session.load(dialect.stage_name(name, temporary), rows)
                session.execute(dialect.drop_stage(name, temporary), doing="dropping a table")
            finally:
                session.rollback()
        return session.version
    finally:
        session.close()
