"""Random statements: what follows from the log is what the server shows.

``FLOODMARK_DDL_SEED`` makes other statements, or those of a run that failed.
"""

from __future__ import annotations

import os
import random

import pymysql

from tests.support.ddl import Follower
from tests.support.mysql import MysqlServer
from tests.support.random_ddl import RandomDdl

STATEMENTS = int(os.environ.get("FLOODMARK_GENERATED_DDL", "100"))
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
    accepted, wrong = 0, []
    try:
        for number in range(STATEMENTS):
            tables = [table for (database, _), table in follower.schema.tables.items() if database == DATABASE]
            before = [follower.shown(table) for table in tables]
            text = source.statement(tables)
            accepted += executed(follower, text)
            differences = follower.compared()
            if differences:
                wrong.append("\n".join([f"Statement {number}: {text}", *differences, *before]))
            if len(wrong) == SHOWN:
                break
    finally:
        follower.execute(f"DROP DATABASE {DATABASE}")
        follower.close()
    assert not wrong, f"FLOODMARK_DDL_SEED={SEED} with {binlog_server.flavor}\n" + "\n\n".join(wrong)
    assert accepted >= STATEMENTS * ENOUGH, f"FLOODMARK_DDL_SEED={SEED} with {binlog_server.flavor}"


def executed(follower: Follower, text: str) -> bool:
    """Return whether the server takes a statement."""
    try:
        follower.execute(text)
    except pymysql.Error:
        return False
    return True
