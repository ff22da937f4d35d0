"""The connectors that the contract suite tests, each by an adapter."""

from __future__ import annotations

from tests.contract.adapters.binlog import BinlogUnderTest
from tests.contract.adapters.oracle import OracleUnderTest, OutboundUnderTest, ReplicatedUnderTest
from tests.contract.adapters.oracle_server import OracleServerUnderTest, named_server
from tests.contract.adapters.postgres import PostgresUnderTest
from tests.contract.under_test import Capabilities, ConnectorUnderTest
from tests.toy.under_test import NotebookUnderTest

ORACLE_ADAPTERS = ("logminer", "logminer_unbuffered")
_SERVER = named_server()
CONNECTORS: tuple[ConnectorUnderTest, ...] = (
    PostgresUnderTest(16),
    PostgresUnderTest(18),
    BinlogUnderTest("mysql"),
    BinlogUnderTest("mariadb"),
    *(OracleUnderTest(name) for name in ORACLE_ADAPTERS),
    ReplicatedUnderTest(),
    OutboundUnderTest(),
    *([] if _SERVER is None else [OracleServerUnderTest(_SERVER, name) for name in ORACLE_ADAPTERS]),
    NotebookUnderTest(Capabilities(watermarks=False, login=False, network=False, refuses_no_tables=False)),
)
