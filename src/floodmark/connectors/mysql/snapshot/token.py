"""What tasks need to know of a read point of MySQL or MariaDB, as offsets store it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from floodmark.json_data import Json, stored_object


@dataclass(frozen=True)
class ReadPointToken:
    """The token of a read point.

    Attributes:
        id: identifies the view.
        file: the binlog file of its place in the log.
        offset: the place in that file.
        micros: its time, microseconds since the Unix epoch.
        visible: the GTIDs that it sees; empty if it isn't known by them.
    """

    id: str
    file: str
    offset: int
    micros: int
    visible: str

    def to_json(self) -> dict[str, Json]:
        """Return the token as JSON data."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """Return the token that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        stored = stored_object(data, "The token of a read point")
        return cls(
            stored.text("id"),
            stored.text("file"),
            stored.integer("offset"),
            stored.integer("micros"),
            stored.text("visible"),
        )
