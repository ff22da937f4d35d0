"""Warns of partitions that were attached with rows, which the log doesn't have.

Where changes come under the root's name, nothing else shows that such rows were added. The catalog's row of a partition
names the transaction that attached it (``xmin``), and rows name the one that wrote them: rows of earlier transactions,
and of earlier commands of the same transaction, were there before.

Source: PostgreSQL documentation, "System Columns", "pg_inherits".
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import Conn, Table, quote, running_transactions
from floodmark.connectors.postgres.server.connection import run
from floodmark.logger import get_logger

log = get_logger(__name__)

_REFUSED = (psycopg.errors.InsufficientPrivilege,)
MOST_AGE = (1 << 31) - 1
"""The largest age of a transaction that the server's ``age()`` returns."""

_ATTACHED = """
    SELECT i.inhrelid::int8, i.xmin::text::int8, i.cmin::text::int8, n.nspname, c.relname,
           pg_partition_root(i.inhrelid)::oid::int8
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relispartition AND age(i.xmin) <= {age}
"""
_HAS_OLDER = """
    SELECT EXISTS (
        SELECT FROM {leaf} WHERE age(xmin) > age('{xid}'::xid) OR (xmin = '{xid}'::xid AND cmin::text::int8 < {command})
    )
"""


class AttachedPartitions:
    """Warns of partitions that were attached with rows, to a table whose changes come under its own name.

    Args:
        options: the source's options.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self._wanted = options.publish_via_partition_root
        self._oldest: int | None = None
        self._known: set[tuple[int, int]] = set()

    def begin(self, oldest: int | None) -> None:
        """Begin with the partitions attached since an earlier process last checked.

        Args:
            oldest: all transactions below it had ended by then, 64 bits; None for a new query.
        """
        self._oldest = oldest

    def check(self, conn: Conn, tables: Sequence[Table]) -> None:
        """Warn of partitions attached since the last call.

        Args:
            conn: an ordinary connection.
            tables: the captured tables.

        Raises:
            StatementTimeoutError: a partition is locked, or reading it takes too long; the next call checks it again.
        """
        if not self._wanted:
            return
        oldest, following = running_transactions(conn)
        if self._oldest is not None:
            self._check_recent(conn, {table.oid: table for table in tables}, min(following - self._oldest, MOST_AGE))
        # Only after all partitions have been checked, so that after an error the next call checks the rest.
        self._oldest = oldest

    def _check_recent(self, conn: Conn, tables: dict[int, Table], age: int) -> None:
        for leaf, xid, command, schema, name, root in run(conn, _ATTACHED.format(age=age), "new partitions"):
            table = tables.get(root)
            if table is None or (leaf, xid) in self._known:
                continue
            quoted = f"{quote(schema)}.{quote(name)}"
            statement = _HAS_OLDER.format(leaf=quoted, xid=xid, command=command)
            try:
                older = run(conn, statement, f"reading {schema}.{name}", expected=_REFUSED)[0][0]
                reason = "it was attached with rows, which the log doesn't have" if older else ""
            except _REFUSED:
                reason = "it may have been attached with rows, which the log doesn't have: the account can't read it"
            self._known.add((leaf, xid))
            if reason:
                log.warning(
                    "rows_came_without_events",
                    table=table.full_name,
                    partition=f"{schema}.{name}",
                    reason=reason,
                    cure="send an execute-snapshot signal for the table, with a condition on the partition's rows",
                )
