"""Delivers notifications to channels other than the sink: the log, and functions of the user."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Protocol

from floodmark.config.common import CommonOptions
from floodmark.errors import ConfigError
from floodmark.json_data import Json
from floodmark.logger import get_logger
from floodmark.notifications.records import Notification

log = get_logger(__name__)


class NotificationChannel(Protocol):
    """Receives notifications when the micro-batch that they belong to has been planned."""

    def notify(self, notification: Notification) -> None:
        """Deliver a notification; never raises."""


class LogChannel:
    """Writes notifications to the log, at the level ``info``."""

    def notify(self, notification: Notification) -> None:
        """Write a line to the log."""
        log.info("notification", **notification.to_json())


class FunctionChannel:
    """Calls a function with the notification's fields as a dictionary.

    Args:
        name: ``module:function``.

    Raises:
        ConfigError: there is no such function.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        module, _, function = name.partition(":")
        try:
            self._function: Callable[[dict[str, Json]], object] = getattr(importlib.import_module(module), function)
        except Exception as exc:
            # Importing runs the user's code, which can fail in any way.
            raise ConfigError(
                f"Option 'notification.enabled.channels' has the value '{name}', which cannot be imported: {exc}.",
                "The module must be importable where the driver runs.",
            ) from None
        if not callable(self._function):
            raise ConfigError(f"Option 'notification.enabled.channels' has the value '{name}', which is no function.")

    def notify(self, notification: Notification) -> None:
        """Call the function; what it raises is logged, since a listener must not stop the capture."""
        try:
            self._function(notification.to_json())
        except Exception as exc:
            log.warning("notification_function_failed", function=self._name, error=f"{type(exc).__name__}: {exc}")


def notification_channels(options: CommonOptions) -> list[NotificationChannel]:
    """Return the channels that notifications are sent to; the sink receives them as events.

    Raises:
        ConfigError: a function cannot be imported.
    """
    channels: list[NotificationChannel] = []
    for name in options.notification_enabled_channels:
        if name == "log":
            channels.append(LogChannel())
        elif name == "jmx":
            log.info("notification_channel_without_effect", channel="jmx", reason="it needs a Java process")
        elif name != "sink":
            channels.append(FunctionChannel(name))
    return channels
