"""Finds the dialect of a target, and tries again what may pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from floodmark.errors import ConfigError, TargetBusyError
from floodmark.logger import get_logger
from floodmark.sinks.relational.dialect import Dialect
from floodmark.sinks.relational.options import JdbcOptions

log = get_logger(__name__)

_DIALECTS = {
    "postgres": ("floodmark.sinks.relational.postgres.dialect", "PostgresDialect"),
    "mysql": ("floodmark.sinks.relational.mysql.dialect", "MysqlDialect"),
}
_LONGEST_DELAY_S = 60.0

T = TypeVar("T")


def dialect_of(options: JdbcOptions) -> Dialect:
    """Return the dialect of a target.

    Raises:
        ConfigError: the driver is not installed.
    """
    kind = options.connection_url.kind
    module, name = _DIALECTS[kind]
    try:
        made: Dialect = getattr(import_module(module), name)(options)
    except ImportError as error:
        raise ConfigError(
            f"What the sink 'jdbc' needs for this target is not installed: {error}.",
            f"Install it with: pip install 'floodmark[{kind},jdbc]'",
        ) from None
    return made


def persistent(options: JdbcOptions, act: Callable[[], T]) -> T:
    """Do something, and again after errors that may pass, as often as the options say.

    Raises:
        TargetBusyError: it failed each time.
    """
    for attempt in range(options.retries):
        try:
            return act()
        except TargetBusyError as error:
            delay = min(options.retry_delay_ms / 1000 * 2**attempt, _LONGEST_DELAY_S)
            log.warning("the_target_is_tried_again", error=error.what, attempt=attempt + 1, seconds=delay)
            time.sleep(delay)
    return act()
