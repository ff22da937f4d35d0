"""What a chunk needs to read at a read point of Oracle, as offsets store it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from floodmark.json_data import Json, stored_object


@dataclass(frozen=True)
class ReadPointToken:
    """The token of a read point.

    Attributes:
        scn: the change number that rows are read as of.
        micros: when it was the newest, microseconds since the epoch.
        database: which database it is of (``Database.identity``).
    """

    scn: int
    micros: int
    database: str

    def to_json(self) -> dict[str, Json]:
        """Return the token as JSON data."""
        return {"scn": self.scn, "micros": self.micros, "database": self.database}

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Return the token that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        stored = stored_object(data, "The token of a read point")
        return cls(stored.integer("scn"), stored.integer("micros"), stored.text("database"))
