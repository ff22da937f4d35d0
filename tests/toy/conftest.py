"""A notebook of its own for each test, and queries that end with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.toy.notebook.database.notebook import Notebook
from tests.toy.registration import registered


@pytest.fixture(autouse=True)
def connector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    hurry(monkeypatch)
    with registered():
        yield


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    """Return a notebook with a table ``t`` of 20 rows, and a table for signals."""
    made = Notebook.make(tmp_path / "notebook")
    made.create("t", {"id": "integer", "v": "integer?", "pad": "text?"})
    made.create("signals", {"id": "text", "type": "text", "data": "text?"})
    with made.page() as page:
        page.insert("t", *({"id": number, "v": 0, "pad": f"row {number}"} for number in range(20)))
    return made


class Start(Protocol):
    """Makes queries."""

    def __call__(self, offset: dict[str, Any] | None = None, **options: str) -> InProcess:
        """Return a query with an empty state directory of its own, which is stopped at the end of the test.

        Args:
            offset: where to go on; None: a new query.
            options: more options, with underscores for dots.
        """


@pytest.fixture
def start(notebook: Notebook, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        number = 0

        def make(offset: dict[str, Any] | None = None, **options: str) -> InProcess:
            nonlocal number
            number += 1
            named = {name.replace("_", "."): value for name, value in options.items()}
            query = InProcess({**options_of(notebook, tmp_path / f"state{number}"), **named}, offset)
            stack.callback(query.stop)
            return query

        yield make


def options_of(notebook: Notebook, state: Path) -> dict[str, str]:
    """Return the options of a query that captures all tables of a notebook."""
    return {
        "connector": "notebook",
        "notebook.path": str(notebook.path),
        "topic.prefix": "toy",
        "state.dir": str(state),
        "signal.data.collection": "notebook.signals",
        "signal.poll.interval.ms": "1",
    }
