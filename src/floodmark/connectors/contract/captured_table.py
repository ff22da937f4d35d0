"""A captured table, as the planner knows it."""

from __future__ import annotations

from dataclasses import dataclass

UNCOUNTED = 1 << 40
"""The number of units of a table that is read in the order of its key: unknown, so larger than any real one."""


@dataclass(frozen=True)
class CapturedTable:
    """A table whose rows and changes are captured.

    Attributes:
        name: its own name, as ``schema.table``.
        published: the name that it has in events; that of a partition may be the root's.
        oid: the number that identifies it.
        logged: the number that its events have in the log.
        file: its fingerprint, which changes when it is rewritten or altered.
        units: how much there is to read; ``UNCOUNTED`` if it is read in the order of its key.
        rows: an estimate of the number of its rows.
    """

    name: str
    published: str
    oid: int
    logged: int
    file: str
    units: int
    rows: int
