"""What is noted of a table while its target is rebuilt."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

from floodmark.errors import TargetDamagedError
from floodmark.json_data import JsonObject


@dataclass(frozen=True)
class RebuildMark:
    """A table that is rebuilt.

    Attributes:
        id: tells this rebuilding from others.
        table: the source's name of the table, ``schema.table``.
        signal: the id of the signal that lets the source's table be read.
        batch: the newest micro-batch that the query had planned before that; -1: none.
        error: why the shadow isn't complete and gets no more rows; empty while it is.
    """

    id: str
    table: str
    signal: str
    batch: int
    error: str = ""

    def to_bytes(self) -> bytes:
        """Return the content of the mark's file, or of its row."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, content: bytes, place: str) -> Self:
        """Return the mark that ``to_bytes`` described.

        Args:
            place: the file or the row, for errors.

        Raises:
            TargetDamagedError: it described something else.
        """

        def damaged(what: str) -> TargetDamagedError:
            return TargetDamagedError(f"{what}.", f"Remove {place}, and rebuild the table again.")

        try:
            found = json.loads(content)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise damaged(f"The mark of a table that is rebuilt, {place}, is damaged")
        mark = JsonObject(found, f"The mark of a table that is rebuilt, {place},", damaged)
        return cls(mark.text("id"), mark.text("table"), mark.text("signal"), mark.integer("batch"), mark.text("error"))
