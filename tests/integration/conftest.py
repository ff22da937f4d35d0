"""What tests of targets share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import Source, drop, make_source
from tests.support.jdbc import Target, target_on


@pytest.fixture
def source(pg18: EmbeddedPostgres, tmp_path: Path) -> Iterator[Source]:
    """Return a database whose signals are soon seen."""
    made = make_source(pg18, tmp_path / "source_state", **{"signal.poll.interval.ms": "200"})
    yield made
    drop(made)


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """Return a database to write to, on the server that the parameter names."""
    with target_on(request.getfixturevalue(request.param)) as made:
        yield made
