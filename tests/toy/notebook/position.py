"""Positions in a notebook's log.

``<transaction>-<change>``, 12 and 8 digits: after that change of the transaction, or for change 0 before the
transaction. An event's position adds ``-<sub>``, two digits that order the events made from one change.
"""

from __future__ import annotations

import re

from floodmark.errors import CheckpointError

NUMBER_DIGITS, CHANGE_DIGITS = 12, 8
_FORM = re.compile(r"(\d{12})-(\d{8})(?:-[0-9A-F]{2})?")


def position(transaction: int, change: int = 0) -> str:
    """Return a position: after a change, or for change 0 before the transaction."""
    return f"{transaction:0{NUMBER_DIGITS}d}-{change:0{CHANGE_DIGITS}d}"


def after_transaction(number: int) -> str:
    """Return the position after a transaction, which is the one before the next."""
    return position(number + 1)


def parse(text: str) -> tuple[int, int]:
    """Return the transaction and the change of a log position, or of an event's position.

    Raises:
        CheckpointError: the text is not such a position.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise CheckpointError(f"'{text}' is not a position in a notebook's log.", "Use another checkpoint.")
    return int(found[1]), int(found[2])
