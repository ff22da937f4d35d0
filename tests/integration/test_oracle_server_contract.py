"""What runs the contract suite on a real Oracle server, run on the stand-in."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Event, Thread

import pytest

from tests.contract.adapters.oracle_server import VARIABLE
from tests.support.oracle.fronts.tns.server import TnsServer
from tests.support.oracle.model.database import Account, OracleDatabase

SOME = (
    "test_a_refused_login_tells_no_secret or test_broken_connections or test_stopping_leaves_nothing_open or "
    "test_a_condition_chooses_rows"
)


@pytest.mark.parametrize("adapter", ["logminer", pytest.param("logminer_unbuffered", marks=pytest.mark.long)])
def test_the_contract_suite_finds_the_server_that_the_environment_names(adapter: str) -> None:
    database, ends = OracleDatabase(), Event()
    database.accounts["SYSTEM"] = Account("SYSTEM", "manager")

    def live() -> None:
        # Its background processes write redo all the time.
        while not ends.wait(0.05):
            with database.lock:
                database.background()

    thread = Thread(target=live, daemon=True)
    thread.start()
    try:
        with TnsServer(database) as server:
            named = {
                "DSN": f"127.0.0.1:{server.port}/{database.settings.name}",
                "PDB": database.pluggable,
                "ACCOUNT": database.account,
                "PASSWORD": "dbz",
                "ADMIN": "SYSTEM",
                "ADMIN_PASSWORD": "manager",
            }
            run = subprocess.run(
                [
                    *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract"),
                    # The names of some end with how rows are read.
                    *("-k", f"(oracle-server-{adapter}] or oracle-server-{adapter}-) and ({SOME})"),
                ],
                env={**os.environ, **{f"{VARIABLE}{name}": value for name, value in named.items()}},
                capture_output=True,
                text=True,
                timeout=240,
            )
    finally:
        ends.set()
        thread.join()
    assert run.returncode == 0, run.stdout[-4000:]
    assert "5 passed" in run.stdout
    assert any("DROP USER" in one.text for one in database.statements)
    assert all(table.dropped for table in database.tables if table.owner.startswith("FLOODMARK_"))
