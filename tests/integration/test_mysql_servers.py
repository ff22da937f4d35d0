"""The private MySQL and MariaDB servers themselves."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.mysql import Flavor, MysqlServer
from tests.support.patience import within


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_servers_restart_and_write_a_binlog(flavor: Flavor, tmp_path: Path) -> None:
    with MysqlServer(flavor, binlog_row_metadata="FULL") as server:
        directory = server.directory
        server.execute("CREATE DATABASE shop", "CREATE TABLE shop.items (id int PRIMARY KEY)")
        server.restart()
        server.execute("INSERT INTO items VALUES (1)", database="shop")
        server.restart(kill=True)
        assert _rows(server, "SELECT id FROM shop.items") == [(1,)]
        assert _rows(server, "SELECT @@binlog_format, @@binlog_row_metadata") == [("ROW", "FULL")]
        assert [row[0] for row in _rows(server, "SHOW BINARY LOGS")] == [
            "binlog.000001",
            "binlog.000002",
            "binlog.000003",
        ]
        server.run_tool("mysqlbinlog", "--read-from-remote-server", "--raw", "binlog.000001", cwd=tmp_path)
        assert (tmp_path / "binlog.000001").read_bytes() == (server.data / "binlog.000001").read_bytes()
    assert not directory.exists()


def test_the_capturing_user_reads_the_binlog_but_writes_nothing(binlog_server: MysqlServer) -> None:
    with binlog_server.connect(user=binlog_server.user, password=binlog_server.password) as session:
        cursor = session.cursor()
        cursor.execute("SHOW BINARY LOGS")
        assert cursor.fetchall()
        with pytest.raises(Exception, match="denied"):
            cursor.execute("CREATE DATABASE forbidden")


def test_a_server_ends_with_the_process_that_started_it() -> None:
    script = (
        "import os; from tests.support.mysql import MysqlServer; server = MysqlServer('mariadb').__enter__(); "
        "print(server.directory, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    directory = done.stdout.strip()
    deadline = time.monotonic() + within(30)
    while Path(directory).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # Another server may have its port by now.
    assert not any(directory in " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))


def _rows(server: MysqlServer, query: str) -> list[tuple[Any, ...]]:
    with server.connect() as session, session.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())
