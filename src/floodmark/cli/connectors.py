"""Finding what a connector offers to commands."""

from __future__ import annotations

import importlib
from types import ModuleType

from floodmark.errors import ConfigError


def connector_module(connector: str, name: str) -> ModuleType:
    """Return a module of what a connector knows of its server.

    Raises:
        ConfigError: the connector's driver is not installed.
    """
    try:
        return importlib.import_module(f"floodmark.connectors.{connector}.server.{name}")
    except ImportError as exc:
        fix = f"Install it with: pip install 'floodmark[{connector}]'"
        raise ConfigError(f"The driver of connector '{connector}' is not installed: {exc}.", fix) from None
