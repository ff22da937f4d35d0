"""Reads files with settings of databases and of Kafka's clients, ``<name>=<value>`` a line."""

from __future__ import annotations

from pathlib import Path

from floodmark.config.kafka_clients import JavaSettingError, connection_settings
from floodmark.errors import ConfigError

JAVA_CURE = "Give keystores and truststores as PEM files."


def settings_in(path: Path | None) -> dict[str, str]:
    """Return the settings in a file; none without one.

    Raises:
        ConfigError: it can't be read.
    """
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"Cannot read {path}: {exc}.") from None
    pairs = [line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith(("#", "!"))]
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def client_settings_in(path: Path | None) -> dict[str, str]:
    """Return the settings of Kafka's Java client in a file, by librdkafka's names.

    Raises:
        ConfigError: it can't be read, or has a setting that only Java knows.
    """
    try:
        found = connection_settings(settings_in(path))
    except JavaSettingError as exc:
        raise ConfigError(f"The setting '{exc}' in {path} is one that only Java knows.", JAVA_CURE) from None
    return {name: value for name, value in found.items() if name not in ("bootstrap.servers", "log_level")}
