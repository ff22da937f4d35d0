"""Log lines: JSON for machines, aligned text on a terminal; both on standard error."""

from __future__ import annotations

import json
import sys

import structlog

from floodmark.cli.output import printable


def configure_logs() -> None:
    """Set up structlog for this process."""
    renderer: structlog.typing.Processor
    renderer = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def readable(line: str) -> str:
    """Return a structured log line of another process as text for people; other lines as they are."""
    if not line.startswith("{"):
        return line
    try:
        entry = json.loads(line)
        head = [entry.pop("level", "info"), entry.pop("event")]
    except (ValueError, KeyError):
        return line
    entry.pop("timestamp", None)
    return printable(" ".join([*head, *(f"{name}={value}" for name, value in entry.items())]))
