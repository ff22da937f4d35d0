"""Limits how many tables a query captures: ``guardrail.collections.max`` and its action."""

from __future__ import annotations

from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.findings import Finding
from floodmark.errors import ConfigError
from floodmark.logger import get_logger

log = get_logger(__name__)

CURE = "Narrow the filters, or raise the limit."


def guard(count: int, options: CommonOptions) -> None:
    """Verify the number of captured tables when a query is opened.

    Raises:
        ConfigError: there are more than the limit, and the action is ``fail``; otherwise that is a warning in the log.
    """
    excess = _excess(count, options)
    if excess and options.guardrail_collections_limit_action == "fail":
        raise ConfigError(excess, CURE)
    if excess:
        log.warning("too_many_tables", text=excess)


def guarded(count: int, options: CommonOptions) -> list[Finding]:
    """Return what a preflight check finds of the number of captured tables."""
    excess = _excess(count, options)
    if not excess:
        return []
    fails = options.guardrail_collections_limit_action == "fail"
    return [Finding("tables", "error" if fails else "warning", excess, CURE)]


def _excess(count: int, options: CommonOptions) -> str:
    most = options.guardrail_collections_max
    if most == 0 or count <= most:
        return ""
    return f"{count} tables are captured, but 'guardrail.collections.max' is {most}."
