"""Random statements: what follows from the log is what the server shows.

``FLOODMARK_DDL_SEED`` makes other statements, or those of a run that failed. ``FLOODMARK_DDL_MINUTES`` goes on for so
long, rather than for ``FLOODMARK_GENERATED_DDL`` statements.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from itertools import count

import pymysql
from pymysql.constants import CR

from tests.support.ddl import Follower
from tests.support.mysql import MysqlServer
from tests.support.random_ddl import RandomDdl

STATEMENTS = int(os.environ.get("FLOODMARK_GENERATED_DDL", "100"))
MINUTES = float(os.environ.get("FLOODMARK_DDL_MINUTES", "0"))
SEED = int(os.environ.get("FLOODMARK_DDL_SEED", "1"))
ENOUGH = 0.3
SHOWN = 5
DATABASE = "random_ddl"
GONE = (CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST)


def test_structures_follow_random_statements(binlog_server: MysqlServer) -> None:
    chance = random.Random(SEED)
    follower = begun(binlog_server)
    source = RandomDdl(chance, follower.info.mariadb)
    started, executed, accepted, wrong, crashes = time.monotonic(), 0, 0, 0, 0
    for number in numbers():
        tables = [table for (database, _), table in follower.schema.tables.items() if database == DATABASE]
        before = [follower.shown(table) for table in tables]
        text = source.statement(tables)
        executed += 1
        try:
            accepted += accepts(follower, text)
        except pymysql.OperationalError as error:
            # Some statements end the server, by a mistake of its own.
            crashes += 1
            print(f"\nThe server is gone, {error}, at statement {number}: {text}", *before, sep="\n", flush=True)
            follower.close()
            binlog_server.restart(kill=True)
            follower = begun(binlog_server)
            source = RandomDdl(chance, follower.info.mariadb)
            continue
        differences = follower.compared()
        if differences:
            wrong += 1
            print(f"\nStatement {number}: {text}", *differences, *before, sep="\n", flush=True)
        if SHOWN in (wrong, crashes):
            break
    follower.execute(f"DROP DATABASE {DATABASE}")
    follower.close()
    minutes = (time.monotonic() - started) / 60
    run = f"FLOODMARK_DDL_SEED={SEED} with {binlog_server.flavor}"
    print(
        f"{run}: {executed} statements, {accepted} accepted, {wrong} differences, {crashes} crashes of the server, "
        f"{minutes:.1f} minutes",
        flush=True,
    )
    assert not wrong, run
    assert accepted >= executed * ENOUGH, run


def begun(server: MysqlServer) -> Follower:
    """Make the database and return what follows the statements of its session."""
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE} CHARACTER SET latin2 COLLATE latin2_croatian_ci",
    )
    # What MariaDB made of a table before decides the order of its indexes, too (docs/mysql.md, Limits).
    follower = Follower(server, any_key=server.flavor == "mariadb")
    follower.execute(f"USE {DATABASE}")
    return follower


def numbers() -> Iterator[int]:
    """Yield the numbers of the statements to run."""
    end = time.monotonic() + MINUTES * 60
    for number in count() if MINUTES else range(STATEMENTS):
        if MINUTES and time.monotonic() > end:
            return
        yield number


def accepts(follower: Follower, text: str) -> bool:
    """Return whether the server takes a statement.

    Raises:
        OperationalError: the server is gone.
    """
    try:
        follower.execute(text)
    except pymysql.Error as error:
        if error.args[0] in GONE:
            raise
        return False
    return True
