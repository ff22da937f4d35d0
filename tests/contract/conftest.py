"""Fixtures of the contract suite: a source of its own for each test, and queries that end with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tests.contract.adapters import CONNECTORS
from tests.contract.collecting import collected, is_long
from tests.contract.query import Query
from tests.contract.under_test import ConnectorUnderTest, SourceUnderTest
from tests.support.hurry import hurry


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Collect each test once for each connector that has what it needs."""
    if "connector" in metafunc.fixturenames:
        names, values = collected(metafunc.function, CONNECTORS)
        ids = ["-".join([one[0].name, *map(str, one[1:])]) for one in values]
        marks = [[pytest.mark.long] if is_long(metafunc.function, *one) else [] for one in values]
        params = [pytest.param(*one, id=id_, marks=mark) for one, id_, mark in zip(values, ids, marks, strict=True)]
        metafunc.parametrize(names, params)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def source(connector: ConnectorUnderTest, request: pytest.FixtureRequest) -> Iterator[SourceUnderTest]:
    with connector.open(request.getfixturevalue) as found:
        yield found


class Start(Protocol):
    """Makes queries."""

    def __call__(self, *tables: str, **options: str) -> Query:
        """Return a query with a state directory of its own, which is stopped at the end of the test.

        Args:
            tables: regular expressions of tables, without a schema.
            options: more options, with underscores for dots.
        """


@pytest.fixture
def start(connector: ConnectorUnderTest, source: SourceUnderTest, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        numbers = itertools.count()

        def make(*tables: str, **options: str) -> Query:
            directory = tmp_path / f"query{next(numbers)}"
            directory.mkdir()
            named = {name.replace("_", "."): value for name, value in options.items()}
            query = Query(connector, source, directory, tables or ("t",), None, named)
            stack.callback(query.stop)
            return query

        yield make
