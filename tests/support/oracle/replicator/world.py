"""A database with a table, whose log comes from a server."""

from __future__ import annotations

from pathlib import Path

from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.replicator.documents import Format
from tests.support.oracle.replicator.server import ReplicatorServer
from tests.support.oracle.scene import Scene


class World(Scene):
    """A scene whose log comes from a server of its own.

    Args:
        directory: for the queries' state.
        format_: the server's options.
        queue_size: how many messages it keeps.
        buffer_bytes: the size of one of its buffers.
        rows: how many rows the table has.
        database: the database; None: one of its own.
    """

    def __init__(
        self,
        directory: Path,
        format_: Format | None = None,
        queue_size: int = 65_536,
        buffer_bytes: int = 1 << 20,
        rows: int = 20,
        database: OracleDatabase | None = None,
    ) -> None:
        super().__init__(directory, database, rows=rows)
        self.replicator = self._stack.enter_context(
            ReplicatorServer(self.database, format_, queue_size=queue_size, buffer_bytes=buffer_bytes)
        )

    def __enter__(self) -> World:
        return self

    def options(self, **more: str) -> dict[str, str]:
        given = super().options()
        del given["log.mining.poll.interval.ms"]
        named = {name.replace("_", "."): value for name, value in more.items()}
        return {**given, **self.replicator.options(), "connect.timeout.ms": "1000", **named}
