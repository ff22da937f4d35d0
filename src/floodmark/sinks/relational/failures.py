"""What is told about a target that fails."""

from __future__ import annotations

from floodmark.errors import TargetBusyError, TargetError, TargetUnfitError

CURE_BUSY = "See to it that the target can be reached and has room, and start the query again. Nothing is lost."
CURE_RIGHTS = "See docs/jdbc.md for the rights that the user needs."


def busy(title: str, doing: str, reason: str) -> TargetBusyError:
    """Return the error for what may pass.

    Args:
        title: the database's name.
        doing: what failed.
        reason: what the server or the driver says.
    """
    return TargetBusyError(f"{title}, the target, failed while {doing}: {reason}.", CURE_BUSY)


def unfit(title: str, doing: str, reason: str) -> TargetUnfitError:
    """Return the error for a table that can't take its rows, with the same arguments."""
    return TargetUnfitError(
        f"{title}, the target, refused {doing}: {reason}.",
        "Alter the target table so that it takes the source's rows, or remove it and let it be made.",
    )


def refused(title: str, doing: str, reason: str, cure: str) -> TargetError:
    """Return the error for what someone has to mend, with the same arguments.

    Args:
        cure: what to do.
    """
    return TargetError(f"{title}, the target, refused {doing}: {reason}.", cure)
