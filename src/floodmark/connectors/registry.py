"""Lists the connectors without importing them. A new database is an entry in ``CONNECTORS``."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from floodmark.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from floodmark.config.common import CommonOptions
    from floodmark.config.model import Advise
    from floodmark.connectors.contract.batch import BatchOptions


class BatchModel(Protocol):
    """The option model of a connector's batch reads."""

    def parse(self, options: Mapping[str, str], advise: Advise) -> BatchOptions:
        """Parse options, as ``Options.parse`` does."""


@dataclass(frozen=True)
class ConnectorSpec:
    """Describes where the rest of Floodmark finds a connector.

    Attributes:
        name: the value of the option ``connector``.
        package: the package with the connector's modules ``options``, ``connector``, ``executor``, ``checks.server``
            and ``log_status``.
        options: its option model, in ``options``.
        driver: the module of the driver that it needs.
        extra: the package to install for the driver, with its extra.
        debezium_class: Debezium's connector for the same database, as ``connector.class`` names it.
        batch_options: the option model of batch reads; empty if tables can't be read in batch.
    """

    name: str
    package: str
    options: str
    driver: str
    extra: str
    debezium_class: str
    batch_options: str = ""

    @property
    def option_model(self) -> type[CommonOptions]:
        """The model of its options; of the connector, only the module ``options`` is imported."""
        model: type[CommonOptions] = getattr(self._option_module, self.options)
        return model

    @property
    def batch_option_model(self) -> BatchModel:
        """The model of the options of a batch read."""
        model: BatchModel = getattr(self._option_module, self.batch_options)
        return model

    @property
    def _option_module(self) -> ModuleType:
        return importlib.import_module(f"{self.package}.options")


CONNECTORS = {
    spec.name: spec
    for spec in (
        ConnectorSpec(
            name="postgres",
            package="floodmark.connectors.postgres",
            options="PostgresOptions",
            driver="psycopg",
            extra="floodmark[postgres]",
            debezium_class="io.debezium.connector.postgresql.PostgresConnector",
            batch_options="PostgresBatchOptions",
        ),
        ConnectorSpec(
            name="mysql",
            package="floodmark.connectors.mysql",
            options="MysqlOptions",
            driver="pymysql",
            extra="floodmark[mysql]",
            debezium_class="io.debezium.connector.mysql.MySqlConnector",
        ),
        ConnectorSpec(
            name="mariadb",
            package="floodmark.connectors.mysql",
            options="MariadbOptions",
            driver="pymysql",
            extra="floodmark[mysql]",
            debezium_class="io.debezium.connector.mariadb.MariaDbConnector",
        ),
    )
}
"""The connectors by the value of the option ``connector``."""


def require_driver(connector: str) -> None:
    """Check that a connector's driver is installed, without importing it.

    Raises:
        ConfigError: the driver is not installed.
    """
    driver = CONNECTORS[connector].driver
    if find_spec(driver) is None:
        raise _missing_driver(connector, f"No module named '{driver}'")


def connector_module(connector: str, name: str) -> ModuleType:
    """Return a module of a connector.

    Args:
        connector: the option ``connector``.
        name: the module's name in the connector's package, such as ``executor`` or ``checks.server``.

    Raises:
        ConfigError: the connector's driver is not installed.
    """
    try:
        return importlib.import_module(f"{CONNECTORS[connector].package}.{name}")
    except ImportError as exc:
        raise _missing_driver(connector, exc) from None


def _missing_driver(connector: str, reason: object) -> ConfigError:
    fix = f"Install it with: pip install '{CONNECTORS[connector].extra}'"
    return ConfigError(f"The driver of connector '{connector}' is not installed: {reason}.", fix)
