"""The connectors that the contract suite tests, each by an adapter."""

from __future__ import annotations

from tests.contract.adapters.binlog import BinlogUnderTest
from tests.contract.adapters.postgres import PostgresUnderTest
from tests.contract.under_test import ConnectorUnderTest

CONNECTORS: tuple[ConnectorUnderTest, ...] = (
    PostgresUnderTest(16),
    PostgresUnderTest(18),
    BinlogUnderTest("mysql"),
    BinlogUnderTest("mariadb"),
)
