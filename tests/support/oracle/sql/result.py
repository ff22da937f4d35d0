"""What a statement is answered with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.oracle.model.types import OracleType


@dataclass(frozen=True)
class ResultColumn:
    """A column of a result.

    Attributes:
        name: in capitals unless the query quotes it.
        type: its type.
    """

    name: str
    type: OracleType


@dataclass(frozen=True)
class Result:
    """Rows, or the number of rows that were changed.

    Attributes:
        columns: None: the statement was no query.
        rows: values as the model has them.
        changed: how many rows were changed.
    """

    columns: tuple[ResultColumn, ...] | None = None
    rows: Sequence[Sequence[Any]] = field(default_factory=list)
    changed: int = 0
