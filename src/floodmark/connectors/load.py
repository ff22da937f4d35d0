"""Finds the option model of a connector, and parses options with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from floodmark.config.model import nearest
from floodmark.connectors.advice import advice
from floodmark.connectors.registry import CONNECTORS
from floodmark.errors import ConfigError

if TYPE_CHECKING:
    from floodmark.config.common import CommonOptions
    from floodmark.connectors.contract.batch import BatchOptions

CONNECTOR = "connector"
CONNECTOR_CLASS = "connector.class"
CLASSES = {spec.debezium_class: name for name, spec in CONNECTORS.items()}
"""The connectors, by the option ``connector.class``."""
STREAM_ONLY = ("topic.prefix", "state.dir")
"""Options that only a stream has. Spark doesn't pass on whether it reads a stream, so they show it."""


def load_options(options: Mapping[str, str]) -> CommonOptions:
    """Parse the options of a source that is streamed.

    Raises:
        ConfigError: an option is missing, unknown or has a value that is not allowed.
    """
    connector = connector_of(options)
    return CONNECTORS[connector].option_model.parse(_with_connector(options, connector), advice)


def load_batch_options(options: Mapping[str, str]) -> BatchOptions:
    """Parse the options of a batch read.

    Raises:
        ConfigError: an option is missing, unknown, only for streams or has a value that is not allowed.
    """
    if not is_batch(options):
        raise ConfigError(
            f"{' and '.join(STREAM_ONLY)} are options of a stream, but this is a batch read (spark.read).",
            "Leave them out, or use spark.readStream.",
        )
    connector = connector_of(options)
    readable = [name for name, spec in CONNECTORS.items() if spec.batch_options]
    if connector not in readable:
        raise ConfigError(
            f"Option 'connector' has the value '{connector}', which batch reads (spark.read) do not have: it must be "
            f"one of {', '.join(readable)}.",
            "Use spark.readStream with snapshot.mode=initial_only and trigger(availableNow=True).",
        )
    return CONNECTORS[connector].batch_option_model.parse(_with_connector(options, connector), advice)


def is_batch(options: Mapping[str, str]) -> bool:
    """Return whether options are those of a batch read: none of them is only for streams."""
    return not {key.lower() for key in options} & set(STREAM_ONLY)


def connector_of(options: Mapping[str, str]) -> str:
    """Return the connector that options name, by ``connector`` or by Debezium's ``connector.class``.

    Raises:
        ConfigError: the options name no connector, an unknown one, or two.
    """
    connector, by_class = _given(options, CONNECTOR), _given(options, CONNECTOR_CLASS)
    named = None if by_class is None else _known_class(by_class)
    if connector is None and named is None:
        raise ConfigError(
            f"Option '{CONNECTOR}' is required: which database to capture.", f"Allowed: {', '.join(CONNECTORS)}."
        )
    if connector is None or connector == named:
        return str(named)
    if connector not in CONNECTORS:
        raise ConfigError(
            f"Option '{CONNECTOR}' has the value '{connector}', which is not allowed: it must be one of "
            f"{', '.join(CONNECTORS)}.",
            nearest(connector, list(CONNECTORS)),
        )
    if named is not None:
        raise ConfigError(
            f"Options '{CONNECTOR}' ({connector}) and '{CONNECTOR_CLASS}' ({by_class}) contradict each other.",
            f"Leave one of them out; this class is the connector '{named}'.",
        )
    return connector


def _known_class(name: str) -> str:
    if name in CLASSES:
        return CLASSES[name]
    raise ConfigError(
        f"Option '{CONNECTOR_CLASS}' has the value '{name}', which is not allowed: it must be one of "
        f"{', '.join(CLASSES)}.",
        nearest(name, list(CLASSES), cutoff=0.9),
    )


def _given(options: Mapping[str, str], name: str) -> str | None:
    return next((value for key, value in options.items() if key.lower() == name), None)


def _with_connector(options: Mapping[str, str], connector: str) -> dict[str, str]:
    """Return the options with the connector named by ``connector`` alone."""
    kept = {key: value for key, value in options.items() if key.lower() != CONNECTOR_CLASS}
    return kept if _given(kept, CONNECTOR) is not None else {**kept, CONNECTOR: connector}
