"""What a preflight check reports; connectors make findings, the command line shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "error"]
SHOWN_NAMES = 5


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Args:
        check: what was looked at, in a word or two.
        status: ``error`` if the pipeline cannot work this way.
        finding: what was found.
        fix: what to do about it; empty if nothing needs doing.
    """

    check: str
    status: Status
    finding: str
    fix: str = ""


def name_list(names: Sequence[str]) -> str:
    """Return names for a sentence, without growing long."""
    shown = ", ".join(names[:SHOWN_NAMES])
    rest = len(names) - SHOWN_NAMES
    return f"{shown} and {rest} more" if rest > 0 else shown
