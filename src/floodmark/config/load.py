"""Finding the option model of a connector."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from floodmark.config.common import CommonOptions
from floodmark.config.mysql import MariadbOptions, MysqlOptions
from floodmark.config.postgres import PostgresBatchOptions, PostgresOptions
from floodmark.errors import ConfigError

MODELS: dict[str, type[CommonOptions]] = {
    "postgres": PostgresOptions,
    "mysql": MysqlOptions,
    "mariadb": MariadbOptions,
}
BATCH_MODELS = {"postgres": PostgresBatchOptions}
STREAM_ONLY = ("topic.prefix", "state.dir")
"""Options that only a stream has. Spark doesn't say whether it asks for the columns of a stream; they tell."""


def load_options(options: Mapping[str, str]) -> CommonOptions:
    """Read the options of a source that is streamed.

    Raises:
        ConfigError: an option is missing, unknown or has a value that is not allowed.
    """
    return MODELS[_connector(options)].parse(options)


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
    return BATCH_MODELS[connector].parse(options)


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
