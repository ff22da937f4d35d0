"""Finds the option model of a connector, and parses options with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from floodmark.config.model import nearest
from floodmark.connectors.advice import advice
from floodmark.connectors.registry import ConnectorSpec, all_specs, connector_names, spec_of
from floodmark.errors import ConfigError

if TYPE_CHECKING:
    from floodmark.config.common import CommonOptions
    from floodmark.connectors.contract.batch import BatchOptions

CONNECTOR = "connector"
CONNECTOR_CLASS = "connector.class"
STREAM_ONLY = ("topic.prefix", "state.dir")
"""Options that only a stream has. Spark doesn't pass on whether it reads a stream, so they show it."""


def load_options(options: Mapping[str, str]) -> CommonOptions:
    """Parse the options of a source that is streamed.

    Raises:
        ConfigError: an option is missing, unknown or has a value that is not allowed.
    """
    options = as_texts(options)
    spec = _spec(connector_of(options))
    return spec.option_model.parse(_with_connector(options, spec.name), advice)


def load_batch_options(options: Mapping[str, str]) -> BatchOptions:
    """Parse the options of a batch read.

    Raises:
        ConfigError: an option is missing, unknown, only for streams or has a value that is not allowed.
    """
    options = as_texts(options)
    if not is_batch(options):
        raise ConfigError(
            f"{' and '.join(STREAM_ONLY)} are options of a stream, but this is a batch read (spark.read).",
            "Leave them out, or use spark.readStream.",
        )
    spec = _spec(connector_of(options))
    if not spec.batch_options:
        readable = [one.name for one in all_specs() if one.batch_options]
        raise ConfigError(
            f"Option 'connector' has the value '{spec.name}', which batch reads (spark.read) do not have: it must be "
            f"one of {', '.join(readable)}.",
            "Use spark.readStream with snapshot.mode=initial_only and trigger(availableNow=True).",
        )
    return spec.batch_option_model.parse(_with_connector(options, spec.name), advice)


def as_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options with their values as text, as Spark's ``option`` writes numbers and truth values.

    Raises:
        ConfigError: the options are no mapping, or a value is neither text, nor a number, nor a truth value.
    """
    if not isinstance(options, Mapping):
        raise ConfigError(
            f"The options are of the type {type(options).__name__}.",
            "Give a mapping of names to values, such as {'connector': 'postgres', …}.",
        )
    for name, value in options.items():
        if not isinstance(name, str):
            raise ConfigError(f"The options have a name of the type {type(name).__name__}.", "Names are text.")
        if value is None:
            raise ConfigError(f"Option '{name}' has no value.", "Give it one, or leave it out.")
        if not isinstance(value, str | bool | int | float):
            raise ConfigError(
                f"Option '{name}' has a value of the type {type(value).__name__}; it must be text.",
                "Separate the items of a list by commas.",
            )
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


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
            f"Option '{CONNECTOR}' is required: which database to capture.", f"Allowed: {', '.join(connector_names())}."
        )
    if connector is None or connector == named:
        return str(named)
    if spec_of(connector) is None:
        raise ConfigError(
            f"Option '{CONNECTOR}' has the value '{connector}', which is not allowed: it must be one of "
            f"{', '.join(connector_names())}.",
            nearest(connector, connector_names()),
        )
    if named is not None:
        raise ConfigError(
            f"Options '{CONNECTOR}' ({connector}) and '{CONNECTOR_CLASS}' ({by_class}) contradict each other.",
            f"Leave one of them out; this class is the connector '{named}'.",
        )
    return connector


def _spec(connector: str) -> ConnectorSpec:
    spec = spec_of(connector)
    assert spec is not None, "`connector_of` returns only connectors that there are"
    return spec


def connector_classes() -> dict[str, str]:
    """Return the connectors by Debezium's connector class, as ``connector.class`` names it."""
    return {spec.debezium_class: spec.name for spec in all_specs() if spec.debezium_class}


def _known_class(name: str) -> str:
    classes = connector_classes()
    if name in classes:
        return classes[name]
    raise ConfigError(
        f"Option '{CONNECTOR_CLASS}' has the value '{name}', which is not allowed: it must be one of "
        f"{', '.join(classes)}.",
        nearest(name, list(classes), cutoff=0.9),
    )


def _given(options: Mapping[str, str], name: str) -> str | None:
    return next((value for key, value in options.items() if key.lower() == name), None)


def _with_connector(options: Mapping[str, str], connector: str) -> dict[str, str]:
    """Return the options with the connector named by ``connector`` alone."""
    kept = {key: value for key, value in options.items() if key.lower() != CONNECTOR_CLASS}
    return kept if _given(kept, CONNECTOR) is not None else {**kept, CONNECTOR: connector}
