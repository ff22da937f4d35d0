"""ROWIDs as LogMiner shows them."""

from __future__ import annotations

_LENGTH = 18
NO_ROW_ID = "A" * _LENGTH
"""Stands for the ROWID of a row that LogMiner can't name, as it happens where large values are changed."""


def known_row_id(row_id: str | None) -> str | None:
    """Return a ROWID; None: the row isn't named."""
    return None if row_id == NO_ROW_ID else row_id
