"""Checks that no row-level security policy hides rows from a snapshot.

With ``row_security=off`` the server would refuse to read such a table instead of returning some of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.connectors.contract.findings import name_list
from floodmark.connectors.postgres.server.catalog import Conn, Table
from floodmark.connectors.postgres.server.connection import POLICY_CURE, run
from floodmark.errors import SourceStateError

_ACTIVE = "SELECT oid::int8 FROM pg_class WHERE oid = ANY(ARRAY[{oids}]::oid[]) AND row_security_active(oid)"


def check_policies(conn: Conn, tables: Sequence[Table]) -> None:
    """Verify that no policy hides rows of the tables that are to be read.

    Raises:
        SourceStateError: a policy does.
    """
    if not tables:
        return
    oids = ",".join(str(table.oid) for table in tables)
    active = {oid for (oid,) in run(conn, _ACTIVE.format(oids=oids), "row-level security")}
    names = [table.full_name for table in tables if table.oid in active]
    if names:
        raise SourceStateError(f"Row-level security hides rows of {name_list(names)} from the snapshot.", POLICY_CURE)
