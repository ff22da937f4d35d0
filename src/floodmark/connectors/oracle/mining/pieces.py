"""Pieces of a transaction's rows that are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, overload

import pyarrow as pa

P = TypeVar("P")


class Pieces(Sequence[pa.Table], Generic[P]):
    """A sequence of tables, none of which is kept.

    Args:
        places: what tells them apart.
        read: returns one by its place.
    """

    def __init__(self, places: Sequence[P], read: Callable[[P], pa.Table]) -> None:
        self._places = places
        self._read = read

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> pa.Table: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[pa.Table]: ...

    def __getitem__(self, index: int | slice) -> pa.Table | Sequence[pa.Table]:
        if isinstance(index, slice):
            return Pieces(self._places[index], self._read)
        return self._read(self._places[index])
