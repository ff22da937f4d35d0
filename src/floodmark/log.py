"""Structured logging: JSON lines on standard error, warnings only unless asked for more.

Spark's source process and executors are separate processes, so the level travels in the environment
variable ``FLOODMARK_LOG`` (``debug``, ``info``, ``warning``, ``error``).
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

import structlog

LEVEL_VARIABLE = "FLOODMARK_LOG"


def get_logger(name: str) -> Any:
    """Return a logger that leaves the application's own structlog configuration alone."""
    level = logging.getLevelNamesMapping().get(os.environ.get(LEVEL_VARIABLE, "").upper(), logging.WARNING)
    return structlog.wrap_logger(
        structlog.WriteLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        component=name,
    )
