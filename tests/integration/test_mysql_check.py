"""``floodmark check`` on real MySQL and MariaDB servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.contract.findings import Finding
from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.checks.server import check_source
from floodmark.connectors.mysql.log_status import log_status
from floodmark.connectors.mysql.options import BinlogOptions
from tests.integration.test_mysql_xa import Branch
from tests.support.inprocess import InProcess
from tests.support.mysql import Flavor, MysqlServer

TABLES = (
    "CREATE DATABASE checked",
    "CREATE TABLE checked.keyed (id INT PRIMARY KEY)",
    "CREATE TABLE checked.keyless (id INT)",
)


def options(server: MysqlServer, **given: str) -> BinlogOptions:
    found = load_options(
        {
            **server.options(),
            "connector": server.flavor,
            "topic.prefix": "shop",
            "state.dir": "/nowhere",
            "database.include.list": "checked",
            **{name.replace("__", "."): value for name, value in given.items()},
        }
    )
    assert isinstance(found, BinlogOptions)
    return found


def findings(server: MysqlServer, offset: dict[str, Any] | None = None, **given: str) -> dict[str, Finding]:
    return {one.check: one for one in check_source(options(server, **given), offset)}


@pytest.fixture
def prepared(binlog_server: MysqlServer) -> MysqlServer:
    binlog_server.execute("DROP DATABASE IF EXISTS checked", *TABLES)
    return binlog_server


def test_a_server_that_is_ready(prepared: MysqlServer) -> None:
    found = findings(prepared)
    # A warning says so where the account may not list them.
    found.pop("XA transactions")
    assert {name: one.status for name, one in found.items() if one.status != "ok"} == {"keys": "warning"}
    assert "checked.keyless" in found["keys"].finding
    assert found["tables"].finding == "2 captured"


def test_a_checkpoint_whose_log_is_gone(prepared: MysqlServer) -> None:
    gone = f"00{1:08X}-{4:016X}-{0:016X}-{0:08X}"
    prepared.purge_old_logs()
    found = findings(prepared, {"log": gone})["checkpoint"]
    assert found.status == "error"
    assert "purged" in found.finding
    assert "when_needed" in found.fix
    assert findings(prepared, {"log": gone}, snapshot__mode="when_needed")["checkpoint"].status == "warning"
    assert "purged" in log_status(options(prepared), gone).problem


def test_the_wrong_connector_and_an_unreachable_server(prepared: MysqlServer) -> None:
    other = {"mysql": "mariadb", "mariadb": "mysql"}[prepared.flavor]
    assert findings(prepared, connector=other)["server version"].status == "error"
    refused = findings(prepared, database__port="1")["connection"]
    assert refused.status == "error"
    assert "127.0.0.1:1" in refused.finding
    wrong = findings(prepared, database__password="not-it")["connection"]
    assert wrong.status == "error"
    assert "not-it" not in wrong.finding


def test_signal_tables(prepared: MysqlServer) -> None:
    named: dict[str, Any] = {"signal__data__collection": "checked.signals"}
    missing = findings(prepared, **named)["signal table"]
    assert (missing.status, "does not exist" in missing.finding) == ("error", True)
    prepared.execute("CREATE TABLE checked.signals (id varchar(42) PRIMARY KEY, type varchar(32))")
    assert "has only id, type" in findings(prepared, **named)["signal table"].finding
    prepared.execute("ALTER TABLE checked.signals ADD data varchar(2048)")
    assert findings(prepared, **named)["signal table"].status == "ok"
    assert findings(prepared, **named, incremental__snapshot__read__points="watermarks")["signal table"].status == "ok"


def test_filters_that_match_nothing(prepared: MysqlServer) -> None:
    database = findings(prepared, database__include__list="cheked")["tables"]
    assert (database.status, "match no database" in database.finding) == ("warning", True)
    assert database.fix.endswith("Did you mean 'checked'?")
    table = findings(prepared, table__include__list=r"checked\.gone")["tables"]
    assert (table.status, "match no table" in table.finding) == ("warning", True)
    close = findings(prepared, table__include__list=r"checked\.kyed")["tables"]
    assert close.fix.endswith("Did you mean 'checked.keyed'?")


def test_prepared_transactions(prepared: MysqlServer) -> None:
    login: dict[str, Any] = {}
    if prepared.flavor == "mysql":
        prepared.execute("DROP USER IF EXISTS sees@'%'", "CREATE USER sees@'%' IDENTIFIED BY 'sees'")
        prepared.execute("GRANT ALL ON *.* TO sees@'%'", "REVOKE XA_RECOVER_ADMIN ON *.* FROM sees@'%'")
        login = {"database__user": "sees", "database__password": "sees"}
        unseen = findings(prepared, **login)["XA transactions"]
        assert unseen.status == "warning"
        assert "may not list prepared XA transactions" in unseen.finding
        assert "GRANT XA_RECOVER_ADMIN ON *.*" in unseen.fix
        prepared.execute("GRANT XA_RECOVER_ADMIN ON *.* TO sees@'%'")
    assert findings(prepared, **login)["XA transactions"] == Finding("XA transactions", "ok", "none prepared")
    branch = Branch(prepared, "'a'", "INSERT INTO checked.keyed VALUES (1)", database="checked").prepare()
    try:
        found = findings(prepared, **login)["XA transactions"]
        assert found == Finding("XA transactions", "ok", "1 prepared: X'61',X'',1")
    finally:
        branch.end("ROLLBACK")


def test_an_account_that_may_not_read_the_log(prepared: MysqlServer) -> None:
    prepared.execute("DROP USER IF EXISTS selects@'%'", "CREATE USER selects@'%' IDENTIFIED BY 'its-secret'")
    prepared.execute("GRANT SELECT ON *.* TO selects@'%'")
    found = findings(prepared, database__user="selects", database__password="its-secret")
    assert found["privileges"].status == "warning"
    every = check_source(options(prepared, database__user="selects", database__password="its-secret"))
    errors = [one.finding for one in every if one.status == "error" and one.check == "privileges"]
    assert len(errors) == 2
    assert all(one.fix for one in every if one.status == "error")


def test_a_table_that_keeps_its_history(prepared: MysqlServer) -> None:
    if prepared.flavor == "mariadb":
        prepared.execute("CREATE TABLE checked.kept (id INT PRIMARY KEY) WITH SYSTEM VERSIONING")
        assert "checked.kept" in findings(prepared)["history"].finding
        assert "history" not in findings(prepared, table__exclude__list="checked.kept")
    else:
        assert "history" not in findings(prepared)


def test_foreign_keys_that_change_rows_by_themselves(prepared: MysqlServer, tmp_path: Path) -> None:
    """What check says is what the log has."""
    prepared.execute(
        "CREATE TABLE checked.child (id INT PRIMARY KEY, parent INT, "
        "FOREIGN KEY (parent) REFERENCES checked.keyed (id) ON DELETE CASCADE)",
        "INSERT INTO checked.keyed VALUES (1)",
        "INSERT INTO checked.child VALUES (7, 1)",
    )
    given = {"topic.prefix": "p", "state.dir": str(tmp_path), "database.include.list": "checked"}
    query = InProcess({**prepared.options(), **given})
    query.drain()
    prepared.execute("DELETE FROM checked.keyed")
    deleted = {row["table"] for row in query.drain() if row["op"] == "d"}
    query.stop()
    found = findings(prepared)
    assert ("foreign keys" in found) == (deleted == {"keyed"})
    assert deleted == ({"keyed"} if prepared.flavor == "mariadb" else {"keyed", "child"})
    if prepared.flavor == "mariadb":
        assert "checked.child" in found["foreign keys"].finding
        assert "foreign keys" not in findings(prepared, table__exclude__list=r"checked\.child")


def test_row_images_that_lack_what_an_event_needs(prepared: MysqlServer, tmp_path: Path) -> None:
    """What check says is what the log lacks."""
    prepared.execute("CREATE TABLE checked.v (id INT PRIMARY KEY, d JSON, n INT, w INT AS (n + 1) VIRTUAL)")
    document = json.dumps({"long": "text " * 30, "count": 1})
    prepared.execute(f"INSERT INTO checked.v (id, d, n) VALUES (1, '{document}', 1)")
    given = {"topic.prefix": "p", "state.dir": str(tmp_path), "database.include.list": "checked"}
    query = InProcess({**prepared.options(), **given})
    query.drain()
    assert {"JSON", "generated columns"}.isdisjoint(findings(prepared))
    partial = "SET GLOBAL binlog_row_value_options = '{}'"
    try:
        prepared.execute("SET GLOBAL binlog_row_image = 'MINIMAL'")
        if prepared.flavor == "mysql":
            prepared.execute(partial.format("PARTIAL_JSON"))
        prepared.execute("UPDATE checked.v SET n = 5, d = JSON_SET(d, '$.count', 2)")
        found = findings(prepared)
    finally:
        prepared.execute("SET GLOBAL binlog_row_image = 'FULL'")
        if prepared.flavor == "mysql":
            prepared.execute(partial.format(""))
    (changed,) = [json.loads(row["value"])["after"] for row in query.drain() if row["op"] == "u"]
    query.stop()
    assert changed["n"] == 5
    if prepared.flavor == "mysql":
        assert "checked.v" in found["JSON"].finding
        assert (changed["d"], changed["w"]) == ("__debezium_unavailable_value", 6)
    else:
        assert "checked.v" in found["generated columns"].finding
        assert (json.loads(changed["d"])["count"], changed["w"]) == (2, None)


def test_a_replica_that_does_not_log_what_it_replicates() -> None:
    with MysqlServer("mariadb", log_slave_updates="OFF") as server:
        server.execute(*TABLES)
        assert findings(server)["binlog"].status == "ok"
        server.execute("SET GLOBAL gtid_slave_pos = '0-99-7'")
        found = findings(server)["binlog"]
    assert (found.status, "log_replica_updates" in found.finding) == ("warning", True)


def test_the_servers_own_number(prepared: MysqlServer) -> None:
    found = findings(prepared, database__server__id=str(prepared.settings["server_id"]))["server id"]
    assert found.status == "error"


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
@pytest.mark.parametrize(
    ("settings", "check", "status", "said"),
    [
        ({"binlog_format": "STATEMENT"}, "binlog", "error", "STATEMENT"),
        ({"binlog_row_image": "MINIMAL"}, "binlog", "warning", "MINIMAL"),
    ],
)
def test_settings_that_matter(flavor: Flavor, settings: dict[str, str], check: str, status: str, said: str) -> None:
    with MysqlServer(flavor, **settings) as server:
        server.execute(*TABLES)
        found = findings(server)[check]
    assert (found.status, said in found.finding) == (status, True)


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_a_server_without_binlog(flavor: Flavor) -> None:
    with MysqlServer(flavor) as server:
        server.settings.pop("log_bin")
        server.settings["skip_log_bin"] = None
        server.restart()
        found = findings(server)
    assert found["binlog"].status == "error"
    assert "log_bin" in found["binlog"].fix
