"""Reads the privileges of a connection's role, which several preflight checks need."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg.rows import TupleRow

from floodmark.connectors.postgres.server.catalog import literal
from floodmark.connectors.postgres.server.connection import run

ADMINS = ("rds_superuser", "cloudsqlsuperuser", "azure_pg_admin")

_ROLE = """
    SELECT r.rolname, r.rolsuper,
           EXISTS (SELECT FROM pg_roles a WHERE a.rolname IN ({admins}) AND pg_has_role(a.oid, 'member')),
           r.rolreplication OR r.rolsuper OR EXISTS (
               SELECT FROM pg_roles a WHERE a.rolname = 'rds_replication' AND pg_has_role(a.oid, 'member')),
           has_database_privilege(current_database(), 'CREATE'), pg_is_in_recovery()
    FROM pg_roles r WHERE r.rolname = current_user
"""


@dataclass(frozen=True)
class Role:
    """The role's privileges, and the server that it is logged in to.

    Attributes:
        admin: whether it is the administrator of a managed service.
        create: whether it may create objects in the database.
        standby: whether the server is a standby, on which nothing can be created.
    """

    name: str
    superuser: bool
    admin: bool
    replication: bool
    create: bool
    standby: bool


def current_role(conn: psycopg.Connection[TupleRow]) -> Role:
    """Return the role that a connection is logged in as."""
    admins = ", ".join(literal(name) for name in ADMINS)
    return Role(*run(conn, _ROLE.format(admins=admins), "the role's attributes")[0])
