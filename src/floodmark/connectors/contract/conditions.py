"""Conditions on rows that a source may evaluate itself; independent of databases and engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Operation = Literal["=", "<=>", "<", "<=", ">", ">=", "in", "null", "starts", "ends", "contains"]
"""``<=>`` is equality for which nulls are equal; ``null`` has no value."""


@dataclass(frozen=True)
class Condition:
    """A condition on one column, with SQL's three-valued logic.

    Attributes:
        column: its name.
        operation: how its values are compared.
        value: with what; a sequence for ``in``.
        negated: whether rows are wanted for which it is false.
    """

    column: str
    operation: Operation
    value: Any = None
    negated: bool = False


@dataclass(frozen=True)
class SqlCondition:
    """A condition for the server.

    Attributes:
        sql: true for every row that is wanted.
        exact: whether it is true for no other row.
    """

    sql: str
    exact: bool
