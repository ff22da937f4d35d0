"""The results of preflight checks; connectors return them, the command line shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from floodmark.errors import FloodmarkError, LogGoneError

Status = Literal["ok", "warning", "error"]
SHOWN_NAMES = 5


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Args:
        check: what was checked, in a word or two.
        status: ``error`` if the pipeline cannot work this way.
        finding: what was found.
        fix: what to do about it; empty if nothing needs doing.
    """

    check: str
    status: Status
    finding: str
    fix: str = ""


Check = tuple[str, Callable[[], list[Finding]]]
"""What is checked, and the function that checks it."""


def results(checks: Sequence[Check], snapshots_again: bool) -> list[Finding]:
    """Run checks and return their findings; the error of a check that fails is one, too.

    Args:
        checks: the checks to run.
        snapshots_again: whether the query takes a new snapshot when its log is gone.
    """
    findings: list[Finding] = []
    for name, check in checks:
        try:
            findings += check()
        except LogGoneError as exc:
            fix = "The query will begin with a new snapshot." if snapshots_again else exc.cure
            findings.append(Finding(name, "warning" if snapshots_again else "error", exc.what, fix))
        except FloodmarkError as exc:
            findings.append(Finding(name, "error", exc.what, exc.cure))
    return findings


def name_list(names: Sequence[str]) -> str:
    """Return names as part of a sentence, and only how many there are of the rest."""
    shown = ", ".join(names[:SHOWN_NAMES])
    rest = len(names) - SHOWN_NAMES
    return f"{shown} and {rest} more" if rest > 0 else shown
