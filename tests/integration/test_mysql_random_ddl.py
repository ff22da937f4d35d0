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

from tests.support.ddl import Follower
from tests.support.mysql import MysqlServer
from tests.support.random_ddl import RandomDdl

STATEMENTS = int(os.environ.get("FLOODMARK_GENERATED_DDL", "100"))
MINUTES = float(os.environ.get("FLOODMARK_DDL_MINUTES", "0"))
SEED = int(os.environ.get("FLOODMARK_DDL_SEED", "1"))
ENOUGH = 0.3
SHOWN = 5
DATABASE = "random_ddl"


def test_structures_follow_random_statements(binlog_server: MysqlServer) -> None:
    binlog_server.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET latin2 COLLATE latin2_croatian_ci")
    # What MariaDB made of a table before decides the order of its indexes, too (docs/mysql.md, Limits).
    follower = Follower(binlog_server, any_key=binlog_server.flavor == "mariadb")
    follower.execute(f"USE {DATABASE}")
    source = RandomDdl(random.Random(SEED), follower.info.mariadb)
    started, executed, accepted, wrong = time.monotonic(), 0, 0, 0
    try:
        for number in numbers():
            tables = [table for (database, _), table in follower.schema.tables.items() if database == DATABASE]
            before = [follower.shown(table) for table in tables]
            text = source.statement(tables)
            accepted += accepts(follower, text)
            executed += 1
            differences = follower.compared()
            if differences:
                wrong += 1
                print(f"\nStatement {number}: {text}", *differences, *before, sep="\n", flush=True)
            if wrong == SHOWN:
                break
    finally:
        follower.execute(f"DROP DATABASE {DATABASE}")
        follower.close()
    minutes = (time.monotonic() - started) / 60
    run = f"FLOODMARK_DDL_SEED={SEED} with {binlog_server.flavor}"
    print(f"{run}: {executed} statements, {accepted} accepted, {wrong} differences, {minutes:.1f} minutes", flush=True)
    assert not wrong, run
    assert accepted >= executed * ENOUGH, run


def numbers() -> Iterator[int]:
    """Yield the numbers of the statements to run."""
    end = time.monotonic() + MINUTES * 60
    for number in count() if MINUTES else range(STATEMENTS):
        if MINUTES and time.monotonic() > end:
            return
        yield number


def accepts(follower: Follower, text: str) -> bool:
    """Return whether the server takes a statement."""
    try:
        follower.execute(text)
    except pymysql.Error:
        return False
    return True
