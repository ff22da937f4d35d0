"""Finding the option model of a connector."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from floodmark.errors import ConfigError

if TYPE_CHECKING:
    from floodmark.config.common import CommonOptions
    from floodmark.config.postgres import PostgresBatchOptions

MODELS = {
    "postgres": ("postgres", "PostgresOptions"),
    "mysql": ("mysql", "MysqlOptions"),
    "mariadb": ("mysql", "MariadbOptions"),
}
"""The modules and models of the connectors; only the one that is asked for is imported."""
BATCH_MODELS = {"postgres": ("postgres", "PostgresBatchOptions")}
STREAM_ONLY = ("topic.prefix", "state.dir")
"""Options that only a stream has. Spark doesn't say whether it asks for the columns of a stream; they tell."""


def load_options(options: Mapping[str, str]) -> CommonOptions:
    """Read the options of a source that is streamed.

    Raises:
        ConfigError: an option is missing, unknown or has a value that is not allowed.
    """
    return option_model(_connector(options)).parse(options)


def load_batch_options(options: Mapping[str, str]) -> PostgresBatchOptions:
    """Read the options of a batch read.

    Raises:
        ConfigError: an option is missing, unknown, a stream's or has a value that is not allowed.
    """
    if not is_batch(options):
        raise ConfigError(
            f"{' and '.join(STREAM_ONLY)} are options of a stream, but this is a batch read (spark.read).",
            "Leave them out, or use spark.readStream.",
        )
    connector = _connector(options)
    if connector not in BATCH_MODELS:
        raise ConfigError(
            f"Option 'connector' has the value '{connector}', which batch reads (spark.read) do not have: it must be "
            f"one of {', '.join(BATCH_MODELS)}.",
            "Use spark.readStream with snapshot.mode=initial_only and trigger(availableNow=True).",
        )
    model: type[PostgresBatchOptions] = _model(*BATCH_MODELS[connector])
    return model.parse(options)


def option_model(connector: str) -> type[CommonOptions]:
    """Return the options of a connector that is known."""
    model: type[CommonOptions] = _model(*MODELS[connector])
    return model


def _model(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"floodmark.config.{module}"), name)


def is_batch(options: Mapping[str, str]) -> bool:
    """Tell whether options are those of a batch read: nothing in them is only for streams."""
    return not {key.lower() for key in options} & set(STREAM_ONLY)


def _connector(options: Mapping[str, str]) -> str:
    connector = next((value for key, value in options.items() if key.lower() == "connector"), None)
    known = ", ".join(MODELS)
    if connector is None:
        raise ConfigError("Option 'connector' is required: which database to capture.", f"Allowed: {known}.")
    if connector not in MODELS:
        close = difflib.get_close_matches(connector.lower(), list(MODELS), n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        raise ConfigError(
            f"Option 'connector' has the value '{connector}', which is not allowed: it must be one of {known}.{hint}"
        )
    return connector
