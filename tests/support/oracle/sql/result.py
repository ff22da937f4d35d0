"""What a statement is answered with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


Encode = Callable[[Sequence[ResultColumn], Sequence[Any]], bytes]


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

    def encoded(self, encode: Encode, begin: int = 0, end: int | None = None) -> Sequence[bytes]:
        """Return rows in the form of a front.

        Args:
            encode: returns a row in that form.
            begin: the first row's place.
            end: the place behind the last one's; None: all.
        """
        columns = self.columns or ()
        return [encode(columns, values) for values in self.rows[begin:end]]
