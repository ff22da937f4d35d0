"""Structured logging: JSON lines on standard error, by default only warnings and errors.

Spark's source process and executors are separate processes, so the level travels in the environment
variable ``FLOODMARK_LOG`` (``debug``, ``info``, ``warning``, ``error``).
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import structlog

LEVEL_VARIABLE = "FLOODMARK_LOG"


class Logger:
    """The logger of a component; it doesn't change the application's structlog configuration.

    structlog is imported for the first line: most processes log nothing, and the import slows down their start.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._level = logging.getLevelNamesMapping().get(os.environ.get(LEVEL_VARIABLE, "").upper(), logging.WARNING)

    def info(self, event: str, **fields: object) -> None:
        """Log an event with its data."""
        if self._level <= logging.INFO:
            self._lines.info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log an event that may need attention."""
        if self._level <= logging.WARNING:
            self._lines.warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Log a failure."""
        self._lines.error(event, **fields)

    @property
    def _lines(self) -> structlog.BoundLogger:
        import structlog

        # Made for each line: notebooks and test runners replace standard error, and close what it was.
        lines: structlog.BoundLogger = structlog.wrap_logger(
            structlog.WriteLogger(sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(),
            ],
            wrapper_class=structlog.BoundLogger,
            component=self._name,
        )
        return lines


def get_logger(name: str) -> Logger:
    """Return the logger of a component."""
    return Logger(name)
