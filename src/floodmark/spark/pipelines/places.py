"""Where a query keeps its directories: none may contain another one."""

from __future__ import annotations

import os
import re

from floodmark.connectors.contract.findings import Finding
from floodmark.errors import ConfigError
from floodmark.redact import shown_uri


def check_places(state_dir: str, checkpoint: str | None, sink: str | None) -> list[Finding]:
    """Check that no directory contains another one: each is written and cleaned up by a different program.

    Args:
        state_dir: the option ``state.dir``.
        checkpoint: the query's checkpoint; None if it isn't known.
        sink: where the sink writes files; None if it writes none.
    """
    pairs = [("checkpoint", checkpoint, "state.dir", state_dir), ("state.dir", state_dir, "the sink's path", sink)]
    pairs.insert(1, ("checkpoint", checkpoint, "the sink's path", sink))
    findings = []
    for check, inner, what, outer in pairs:
        if inner is None or outer is None:
            continue
        if how := lies_in(inner, outer):
            text = f"The {check.removeprefix('the ')} {shown_uri(inner)} {how} {what} ({shown_uri(outer)})."
            findings.append(Finding(check, "error", text, "Give each a directory of its own, side by side."))
    return findings


def refuse_shared_places(state_dir: str, checkpoint: str, sink: str | None) -> None:
    """Raise an error if a directory contains another one; the arguments are those of ``check_places``.

    Raises:
        ConfigError: one does.
    """
    for found in check_places(state_dir, checkpoint, sink):
        raise ConfigError(found.finding, found.fix)


def lies_in(inner: str, outer: str) -> str:
    """Return how a directory lies in another one, ``is`` or ``is inside``; empty if it doesn't."""
    place, around = _place(inner), _place(outer)
    if place == around:
        return "is"
    return "is inside" if place.startswith(f"{around.rstrip('/')}/") else ""


def _place(uri: str) -> str:
    """Return a directory in a form that can be compared: a local path without links, or a URI."""
    if "://" in uri and not uri.startswith("file://"):
        return uri.rstrip("/")
    return os.path.realpath(re.sub("^file:(//)?", "", uri))
