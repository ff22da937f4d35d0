"""What an offset holds besides its position, so that the log can be read on from there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Self

from floodmark.json_data import Json, damaged_checkpoint, stored_object

_DIGITS = re.compile(r"(?:[0-9a-f]{2})+")
LOGMINER = "logminer"
"""The adapter of offsets that name none."""


@dataclass(frozen=True)
class ResumePoint:
    """What is known at a position.

    Attributes:
        database: which database it is, and which of its lives (``Database.identity``).
        begin: the changes behind this number must be read again: the oldest transaction that was open began there.
        structures: names the version of the tables' structures.
        filters: what the numbers of changes depend on, if the position lies inside a transaction; else empty.
        abandoned: the identifiers of open transactions whose changes are left out
            (``log.mining.transaction.retention.ms``).
        adapter: ``database.connection.adapter``, which says what positions count.
        replicated: the highest ``c_scn`` and ``c_idx`` of OpenLogReplicator's messages that were taken over; None: no
            message was.
        lcr: the position of XStream's record up to which all was taken over, in hexadecimal digits; None: none was.
    """

    database: str
    begin: int
    structures: str = ""
    filters: str = ""
    abandoned: tuple[str, ...] = ()
    adapter: str = LOGMINER
    replicated: tuple[int, int] | None = None
    lcr: str | None = None

    def with_structures(self, name: str) -> ResumePoint:
        """Return it with another version of the structures."""
        return replace(self, structures=name)

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON data, for the offset."""
        return {
            "database": self.database,
            "begin": self.begin,
            "structures": self.structures,
            **({"filters": self.filters} if self.filters else {}),
            **({"abandoned": list(self.abandoned)} if self.abandoned else {}),
            **({"adapter": self.adapter} if self.adapter != LOGMINER else {}),
            **({"replicated": "{}.{}".format(*self.replicated)} if self.replicated is not None else {}),
            **({"lcr": self.lcr} if self.lcr is not None else {}),
        }

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return what ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        stored = stored_object(data, "A bookmark")
        return cls(
            stored.text("database"),
            stored.integer("begin"),
            stored.text("structures"),
            stored.optional_text("filters") or "",
            tuple(stored.texts("abandoned")) if "abandoned" in stored else (),
            stored.optional_text("adapter") or LOGMINER,
            _key(stored.optional_text("replicated")),
            _digits(stored.optional_text("lcr")),
        )


def _digits(text: str | None) -> str | None:
    if text is not None and not _DIGITS.fullmatch(text):
        raise damaged_checkpoint(f"'{text}' is no position of XStream's")
    return text


def _key(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    scn, _, index = text.partition(".")
    if not (scn.isdecimal() and index.isdecimal()):
        raise damaged_checkpoint(f"'{text}' names no message of OpenLogReplicator's")
    return int(scn), int(index)
