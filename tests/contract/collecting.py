"""Which tests are collected for which connector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.contract.under_test import Capabilities, ConnectorUnderTest, Need

T = TypeVar("T", bound=Callable[..., None])


def needs(*wanted: Need) -> Callable[[T], T]:
    """Collect a test only for connectors that have capabilities."""

    def mark(test: T) -> T:
        vars(test)["needs"] = wanted
        return test

    return mark


def each(name: str, choose: Callable[[Capabilities], Sequence[Any]]) -> Callable[[T], T]:
    """Collect a test for each value of an argument that a connector's capabilities allow."""

    def mark(test: T) -> T:
        vars(test)["each"] = (name, choose)
        return test

    return mark


def of_snapshots(test: T) -> T:
    """Leave a test to ``make chaos`` for further logs of one database: how tables are read is the same with all."""
    vars(test)["of_snapshots"] = True
    return test


def collected(test: Any, connectors: Sequence[ConnectorUnderTest]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the names of a test's arguments that vary by connector, and their values."""
    wanted = getattr(test, "needs", ())
    able = [one for one in connectors if all(getattr(one.capabilities, need) for need in wanted)]
    if not hasattr(test, "each"):
        return ("connector",), [(one,) for one in able]
    name, choose = test.each
    return ("connector", name), [(one, value) for one in able for value in choose(one.capabilities)]


def is_long(test: Any, connector: ConnectorUnderTest, *values: Any) -> bool:
    """Return whether ``make test`` leaves a test out.

    Args:
        values: that of its argument that varies. Signals in files, which no log brings, are tried with one of them.
    """
    further = connector.is_further_log and (getattr(test, "of_snapshots", False) or values == ("file",))
    return connector.capabilities.is_slow or further
