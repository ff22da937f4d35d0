"""The status of a log, as its source reports it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogStatus:
    """The status of a source's log and of its reader.

    Attributes:
        reader: the name that the pipeline reads the log under (PostgreSQL: the slot).
        active: whether it is being read now; None if unknown.
        confirmed: up to where the source may discard log, in the source's notation; empty if unknown.
        end: the end of the log, in the source's notation; empty if unknown.
        lag_bytes: log between the pipeline's position and the end; None if unknown.
        absent: what it means if ``active`` is None though the server answers.
        problem: why the rest is unknown, or what will stop the pipeline; empty if nothing.
    """

    reader: str
    active: bool | None = None
    confirmed: str = ""
    end: str = ""
    lag_bytes: int | None = None
    absent: str = "does not exist"
    problem: str = ""
