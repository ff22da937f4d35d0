"""Finding what a connector offers, without importing the others."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import ModuleType

from floodmark.errors import ConfigError

FOLDERS = {"postgres": "postgres", "mysql": "mysql", "mariadb": "mysql"}
"""The packages of the connectors, below this one; also the names of the extras with their drivers."""

DRIVERS = {"postgres": "psycopg", "mysql": "pymysql"}
"""The modules of the drivers, by connectors' packages."""


def require_driver(connector: str) -> None:
    """Prove that a connector's driver is installed, without importing it.

    Raises:
        ConfigError: it isn't.
    """
    driver = DRIVERS[FOLDERS[connector]]
    if find_spec(driver) is None:
        raise _missing_driver(connector, f"No module named '{driver}'")


def connector_module(connector: str, name: str) -> ModuleType:
    """Return a module of a connector.

    Args:
        connector: the option ``connector``.
        name: of the module in the connector's package, such as ``executor`` or ``server.preflight``.

    Raises:
        ConfigError: the connector's driver is not installed.
    """
    folder = FOLDERS[connector]
    try:
        return importlib.import_module(f"floodmark.connectors.{folder}.{name}")
    except ImportError as exc:
        raise _missing_driver(connector, exc) from None


def _missing_driver(connector: str, reason: object) -> ConfigError:
    fix = f"Install it with: pip install 'floodmark[{FOLDERS[connector]}]'"
    return ConfigError(f"The driver of connector '{connector}' is not installed: {reason}.", fix)
