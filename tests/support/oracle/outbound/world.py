"""A database with a table, whose log comes from an outbound server."""

from __future__ import annotations

from pathlib import Path

from tests.support.oracle.model.tables import Column
from tests.support.oracle.outbound.server import OutboundServer
from tests.support.oracle.scene import Scene


class World(Scene):
    """A scene whose log comes from an outbound server.

    Args:
        directory: for the queries' state.
        rows: how many rows the table has.
        columns: of the table.
    """

    def __init__(self, directory: Path, rows: int = 20, columns: list[Column] | None = None) -> None:
        super().__init__(directory, columns=columns, rows=rows)
        self.outbound = self._stack.enter_context(OutboundServer(self.database))

    def __enter__(self) -> World:
        return self

    def options(self, **more: str) -> dict[str, str]:
        given = super().options()
        del given["log.mining.poll.interval.ms"]
        named = {name.replace("_", "."): value for name, value in more.items()}
        return {**given, **self.outbound.options(), "connect.timeout.ms": "1000", **named}
