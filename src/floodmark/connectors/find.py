"""Finding what a connector offers, without importing the others."""

from __future__ import annotations

import importlib
from types import ModuleType

from floodmark.errors import ConfigError

FOLDERS = {"postgres": "postgres", "mysql": "mysql", "mariadb": "mysql"}
"""The packages of the connectors, below this one; also the names of the extras with their drivers."""


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
        fix = f"Install it with: pip install 'floodmark[{folder}]'"
        raise ConfigError(f"The driver of connector '{connector}' is not installed: {exc}.", fix) from None
