"""Where the binlog ends, and the GTIDs of just what lies before: what another server is asked for later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from structlog.testing import CapturingLogger

from floodmark.connectors.mysql.server import binlogs
from floodmark.connectors.mysql.server.binlogs import LogEnd, end_with_gtids
from floodmark.connectors.mysql.server.connection import Connection
from floodmark.connectors.mysql.snapshot import read_points
from floodmark.connectors.mysql.snapshot.read_points import ReadPoints
from floodmark.connectors.mysql.structures.session import Server
from floodmark.errors import SourceStateError

CONNECTION = cast(Connection, object())


class Committing:
    """A server on which the last transaction of the log is in its commit when it is asked first."""

    def __init__(self) -> None:
        self._ends: Iterator[LogEnd] = iter([LogEnd("b", 1, 500, "u:1-9"), *[LogEnd("b", 1, 500, "u:1-10")] * 5])
        self._owned = iter(["u:10#7"])

    def end(self, *_: object) -> LogEnd:
        return next(self._ends)

    def run(self, conn: Connection, statement: str, *_: object) -> list[tuple[Any, ...]]:
        if "gtid_owned" in statement:
            return [(next(self._owned, ""),)]
        assert "gtid_mode" in statement
        return [("ON",)]


@pytest.mark.parametrize("owned", [True, False])
def test_a_transaction_in_its_commit_is_among_the_gtids(monkeypatch: pytest.MonkeyPatch, owned: bool) -> None:
    server = Committing()
    if not owned:
        # It is over just after the end was read.
        server._owned = iter([])
    monkeypatch.setattr(binlogs, "log_end", server.end)
    monkeypatch.setattr(binlogs, "run", server.run)
    assert end_with_gtids(CONNECTION, "mysql", 90700) == LogEnd("b", 1, 500, "u:1-10")


class Busy:
    """A server whose log grows with each look."""

    def __init__(self, may_flush: bool) -> None:
        self._may_flush = may_flush
        self.file, self._offset = 1, 500

    def end(self, *_: object) -> LogEnd:
        self._offset += 100
        return LogEnd("b", self.file, self._offset, "u:1-9")

    def run(self, conn: Connection, statement: str, *_: object) -> list[tuple[Any, ...]]:
        if "gtid_owned" in statement:
            return [("",)]
        if statement.startswith("FLUSH"):
            if not self._may_flush:
                raise SourceStateError("Access denied.")
            self.file += 1
            return []
        assert statement == "SHOW BINLOG EVENTS IN 'b.000002' LIMIT 2"
        return [
            ("b.000002", 4, "Format_desc", 1, 127, "Server ver: 9"),
            ("b.000002", 127, "Previous_gtids", 1, 198, "u:1-8,\nv:1"),
        ]


@pytest.mark.parametrize("may_flush", [True, False])
def test_a_log_that_never_rests_begins_a_new_file(monkeypatch: pytest.MonkeyPatch, may_flush: bool) -> None:
    server, logger = Busy(may_flush), CapturingLogger()
    monkeypatch.setattr(binlogs, "log_end", server.end)
    monkeypatch.setattr(binlogs, "run", server.run)
    monkeypatch.setattr(binlogs, "log", logger)
    monkeypatch.setattr(binlogs, "REST_S", 0.01)
    found = end_with_gtids(CONNECTION, "mysql", 90700)
    if may_flush:
        assert found == LogEnd("b", 2, 198, "u:1-8,v:1")
        assert logger.calls == []
    else:
        assert (found.file, found.gtids) == (1, "u:1-9")
        assert [call.args[0] for call in logger.calls] == ["gtids_may_lack_a_transaction"]


def test_a_view_has_the_gtids_of_all_that_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Committing()
    server._owned = iter([])
    monkeypatch.setattr(read_points, "log_end", server.end)
    monkeypatch.setattr(read_points, "run", server.run)
    points = ReadPoints(lambda: CONNECTION, Server("mysql", 90700), lambda end: str(end.offset))
    assert points._begin_mysql(CONNECTION, [], 1.0) == LogEnd("b", 1, 500, "u:1-10")
