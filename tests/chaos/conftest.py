"""Databases for queries that are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import drop, make_source
from tests.support.databases import Database, Mysql

NAME = "typed_kills"


@pytest.fixture(params=["pg18", "mysql", "mariadb"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Database, dict[str, str]]]:
    """Return a database and the options of a source that reads it."""
    server = request.getfixturevalue(request.param)
    if request.param == "pg18":
        source = make_source(server, tmp_path / "state")
        yield source.database, source.options
        drop(source)
        return
    server.execute(f"CREATE DATABASE {NAME}")
    options = {
        **server.options(),
        "topic.prefix": NAME,
        "state.dir": str(tmp_path / "state"),
        "database.include.list": NAME,
    }
    yield Mysql(server, NAME, image="MINIMAL"), options
    server.execute(f"DROP DATABASE {NAME}")
