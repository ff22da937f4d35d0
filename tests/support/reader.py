"""A role that may replicate and read, and nothing else."""

from __future__ import annotations

import psycopg
import pytest

from tests.conftest import Source

PUBLICATION = "by_owner"


def read_only(source: Source) -> dict[str, str]:
    """Create such a role and return the options of a query that uses it; the publication is its owner's work."""
    role = f"reader_{source.dbname}"
    source.execute(
        f"CREATE ROLE {role} LOGIN REPLICATION",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}",
        f"REVOKE CREATE, TEMPORARY ON DATABASE {source.dbname} FROM PUBLIC",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        # A commit of this role would wait for standbys, so it must not make one that does.
        f"ALTER ROLE {role} SET synchronous_commit = 'on'",
        f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES",
    )
    prove_read_only(source, role)
    return {
        **source.options,
        "database.user": role,
        "publication.name": PUBLICATION,
        "publication.autocreate.mode": "disabled",
        "read.only": "true",
        "signal.poll.interval.ms": "1",
    }


def prove_read_only(source: Source, role: str) -> None:
    """Prove that a role can't write."""
    source.execute("CREATE TABLE proof (id integer)")
    with psycopg.connect(source.conninfo, user=role, autocommit=True) as conn:
        assert conn.execute("SELECT count(*) FROM proof").fetchall() == [(0,)]
        for statement in ("INSERT INTO proof VALUES (1)", "CREATE TABLE more (id integer)", "CREATE TEMP TABLE x ()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(statement)
        held = conn.execute("SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')").fetchone()
        assert held == (False,)
    source.execute("DROP TABLE proof")
