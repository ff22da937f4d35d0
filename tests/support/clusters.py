"""PostgreSQL servers that take over from others: standbys, and copies of data directories."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from floodmark.demo.embedded import EmbeddedPostgres, identity
from tests.support.patience import within

WAIT_S = within(60.0)


def ask(server: EmbeddedPostgres, statement: str, dbname: str = "postgres") -> list[tuple[Any, ...]]:
    """Run a statement as the superuser and return its rows."""
    with psycopg.connect(server.conninfo(dbname), autocommit=True) as conn:
        cursor = conn.execute(statement)
        return cursor.fetchall() if cursor.description else []


def wait_until(server: EmbeddedPostgres, condition: str, dbname: str = "postgres") -> None:
    """Wait until a condition of SQL holds."""
    deadline = time.monotonic() + WAIT_S
    while ask(server, f"SELECT ({condition})", dbname)[0][0] is not True:
        assert time.monotonic() < deadline, condition
        time.sleep(0.02)


class Copy:
    """A copy of a server's data directory, taken while the server was stopped.

    Args:
        server: which runs before and after.
        place: where the copy goes.
    """

    def __init__(self, server: EmbeddedPostgres, place: Path) -> None:
        self._place = place
        server.stop("fast")
        shutil.copytree(server.data, place, symlinks=True)
        server.start()

    def restore(self, server: EmbeddedPostgres) -> None:
        """Put the copy in the place of the server's directory, which runs again afterwards."""
        server.stop("immediate")
        shutil.rmtree(server.data)
        shutil.copytree(self._place, server.data, symlinks=True)
        _own(server)
        server.start()


def standby_of(primary: EmbeddedPostgres, slot: str, dbname: str, settings: Mapping[str, str]) -> EmbeddedPostgres:
    """Return a standby, not started yet, that streams from a server through a physical slot of its own."""
    made = EmbeddedPostgres(primary.version, {"hot_standby_feedback": "on", **settings})
    _own(made)
    ask(primary, f"SELECT pg_create_physical_replication_slot('{slot}', true)")
    source = primary.conninfo(dbname)
    arguments = ("-D", str(made.data), "-d", source, "-R", "-X", "stream", "-S", slot, "-c", "fast")
    made.run_tool("pg_basebackup", *arguments, **identity())
    with (made.data / "postgresql.auto.conf").open("a") as file:
        # The worker that copies slots needs a database.
        file.write(f"primary_conninfo = '{source}'\nprimary_slot_name = '{slot}'\n")
    return made


def promote(standby: EmbeddedPostgres) -> None:
    """Let a standby become a primary, and wait until it is one."""
    ask(standby, "SELECT pg_promote(true)")
    wait_until(standby, "NOT pg_is_in_recovery()")


def wait_for_standby(primary: EmbeddedPostgres, standby: EmbeddedPostgres) -> None:
    """Wait until a standby has replayed all that its primary has written."""
    end = ask(primary, "SELECT pg_current_wal_insert_lsn()::text")[0][0]
    wait_until(standby, f"pg_last_wal_replay_lsn() >= '{end}'")


def _own(server: EmbeddedPostgres) -> None:
    """Give a server's directory to the user that it runs as."""
    owner = identity()
    server.directory.mkdir(parents=True, exist_ok=True)
    if owner:
        for path in (server.directory, *server.directory.rglob("*")):
            shutil.chown(path, owner["user"])
