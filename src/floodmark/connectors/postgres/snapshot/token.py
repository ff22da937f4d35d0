"""What a chunk needs to read at a read point of PostgreSQL, as offsets store it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from floodmark.json_data import Json, stored_object


@dataclass(frozen=True)
class ReadPointToken:
    """The token of a read point.

    Attributes:
        snapshot: the exported snapshot, to be imported.
        visible: what it sees, as ``pg_current_snapshot()`` prints it.
        xid: its next transaction number, 32 bits.
        micros: its time, microseconds since the Unix epoch.
        lsn: its position in the log.
        place: the server and its timeline; None in a checkpoint that an earlier version wrote.
        window: the name of the watermark that opened its window; None: it is no window.
    """

    snapshot: str
    visible: str
    xid: int
    micros: int
    lsn: int
    place: str | None
    window: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the token as JSON data."""
        window: dict[str, Json] = {} if self.window is None else {"window": self.window}
        return {
            "snapshot": self.snapshot,
            "visible": self.visible,
            "xid": self.xid,
            "micros": self.micros,
            "place": self.place,
            "lsn": self.lsn,
            **window,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Return the token that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        stored = stored_object(data, "The token of a read point")
        return cls(
            stored.text("snapshot"),
            stored.text("visible"),
            stored.integer("xid"),
            stored.integer("micros"),
            stored.integer("lsn"),
            stored.optional_text("place"),
            stored.optional_text("window"),
        )
