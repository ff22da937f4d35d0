"""Lists the connectors without importing them.

A new database is an entry in ``CONNECTORS``, or a package's entry point in the group ``floodmark.connectors`` whose
object is a ``ConnectorSpec`` of the entry point's name. Entry points are looked up only when a name that isn't in
``CONNECTORS`` is asked for, or all names are.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
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
        package: the package with the connector's modules ``options``, ``connector`` (``make_source(options)`` returns a
            ``Source``), ``executor`` (an ``ExecutorSide``), ``checks.server`` and ``log_status``.
        options: its option model, in ``options``.
        driver: the module of the driver that it needs; empty: it needs none.
        extra: the package to install for the driver, with its extra.
        debezium_class: Debezium's connector for the same database, as ``connector.class`` names it; empty: it has none.
        batch_options: the option model of batch reads; empty if tables can't be read in batch.
        backslashes: whether signals' conditions are read as MySQL does: a backslash in a text is doubled, and names are
            between backticks.
    """

    name: str
    package: str
    options: str
    driver: str = ""
    extra: str = ""
    debezium_class: str = ""
    batch_options: str = ""
    backslashes: bool = False

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
            backslashes=True,
        ),
        ConnectorSpec(
            name="mariadb",
            package="floodmark.connectors.mysql",
            options="MariadbOptions",
            driver="pymysql",
            extra="floodmark[mysql]",
            debezium_class="io.debezium.connector.mariadb.MariaDbConnector",
            backslashes=True,
        ),
        ConnectorSpec(
            name="oracle",
            package="floodmark.connectors.oracle",
            options="OracleOptions",
            driver="oracledb",
            extra="floodmark[oracle]",
            debezium_class="io.debezium.connector.oracle.OracleConnector",
        ),
    )
}
"""Floodmark's own connectors by the value of the option ``connector``."""

GROUP = "floodmark.connectors"
"""The entry points' group."""


def connector_names() -> list[str]:
    """Return the names of all connectors: Floodmark's own, then those of installed packages."""
    return [*CONNECTORS, *sorted(point.name for point in _entry_points() if point.name not in CONNECTORS)]


def spec_of(connector: str) -> ConnectorSpec | None:
    """Return a connector's description; None if there is no connector of that name.

    Raises:
        ConfigError: an installed package offers it, but its entry point can't be used.
    """
    if connector in CONNECTORS:
        return CONNECTORS[connector]
    point = next((point for point in _entry_points() if point.name == connector), None)
    return None if point is None else _loaded(point)


def all_specs() -> Iterator[ConnectorSpec]:
    """Yield the descriptions of all connectors that can be used."""
    for name in connector_names():
        try:
            spec = spec_of(name)
        except ConfigError:
            continue  # its error is raised when it is asked for
        if spec is not None:
            yield spec


def forget_installed() -> None:
    """Look installed packages up again, which a process otherwise does once."""
    _entry_points.cache_clear()
    _loaded.cache_clear()


@lru_cache(maxsize=1)
def _entry_points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


@lru_cache
def _loaded(point: EntryPoint) -> ConnectorSpec:
    what = f"The connector '{point.name}' of an installed package ({point.value}) can't be used"
    cure = "Correct or reinstall the package."
    try:
        spec = point.load()
    except Exception as exc:
        # A foreign module may raise anything when it is imported; the user must see what.
        raise ConfigError(f"{what}: {type(exc).__name__}: {exc}.", cure) from exc
    if not isinstance(spec, ConnectorSpec) or spec.name != point.name:
        raise ConfigError(f"{what}: it is not a ConnectorSpec with that name.", cure)
    return spec


def _known(connector: str) -> ConnectorSpec:
    spec = spec_of(connector)
    if spec is None:
        raise ConfigError(f"There is no connector '{connector}'.", f"There are: {', '.join(connector_names())}.")
    return spec


def require_driver(connector: str) -> None:
    """Check that a connector's driver is installed, without importing it.

    Raises:
        ConfigError: the driver is not installed.
    """
    spec = _known(connector)
    if spec.driver and find_spec(spec.driver) is None:
        raise _missing_driver(spec, f"No module named '{spec.driver}'")


def connector_module(connector: str, name: str) -> ModuleType:
    """Return a module of a connector.

    Args:
        connector: the option ``connector``.
        name: the module's name in the connector's package, such as ``executor`` or ``checks.server``.

    Raises:
        ConfigError: the connector's driver is not installed.
    """
    spec = _known(connector)
    try:
        return importlib.import_module(f"{spec.package}.{name}")
    except ImportError as exc:
        if not spec.driver or (exc.name or "").startswith(("floodmark.", f"{spec.package}.")):
            raise  # a fault of the connector, not of the installation
        raise _missing_driver(spec, exc) from None


def _missing_driver(spec: ConnectorSpec, reason: object) -> ConfigError:
    fix = f"Install it with: pip install '{spec.extra}'"
    return ConfigError(f"The driver of connector '{spec.name}' is not installed: {reason}.", fix)
