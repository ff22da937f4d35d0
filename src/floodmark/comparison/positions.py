"""Where in a database's log a change was, by the source blocks of its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Order = NDArray[np.int64]
UNKNOWN = -1
"""The place of an event that doesn't say where it was."""
UNSETTLED = -2
"""The order of a transaction before which the connector knew of no other, as at its start."""
_FILE_BITS = 40
"""Bits for the place in a binlog file, below those for the file's number."""


@dataclass(frozen=True)
class Positions:
    """What source blocks of a connector's events say of the log.

    Attributes:
        fields: names and types; together with the key and the operation they tell each change from others.
        order: returns the order in which transactions are delivered, of these fields' columns and ``further``.
        further: fields that only the order needs.
        transaction: the field with the transaction's number, where an order may be unsettled; None: it never is.
    """

    fields: Mapping[str, pa.DataType]
    order: Callable[[pa.Table], Order]
    further: Mapping[str, pa.DataType]
    transaction: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """All fields."""
        return pa.schema({**self.fields, **self.further})

    def shown(self, place: Mapping[str, object]) -> str:
        """Return a place for people."""
        return ", ".join(f"{name} {place[name]}" for name in self.fields if place.get(name) is not None)


def _numbers(column: pa.ChunkedArray) -> Order:
    found: Order = pc.fill_null(column, UNKNOWN).to_numpy().astype(np.int64)
    return found


def _digits(texts: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """Return the number that a pattern's group ``n`` finds in each text; null where it finds none."""
    found = pc.struct_field(pc.extract_regex(texts, pattern), "n")
    return pc.if_else(pc.equal(found, ""), None, found).cast(pa.int64())


def _commits_of_postgres(places: pa.Table) -> Order:
    # Positions of rows aren't in the order of commits. The first of a sequence is the commit before the transaction.
    before = pc.fill_null(_digits(places["sequence"], r'^\["?(?P<n>\d*)'), UNSETTLED)
    found: Order = np.where(places["lsn"].is_null().to_numpy(), UNKNOWN, before.to_numpy())
    return found


def _places_in_binlog(places: pa.Table) -> Order:
    files = _numbers(_digits(places["file"], r"(?P<n>\d+)$"))
    found: Order = np.where(files == UNKNOWN, UNKNOWN, (files << _FILE_BITS) | _numbers(places["pos"]))
    return found


def _commits_of_oracle(places: pa.Table) -> Order:
    commits = (_digits(places[name], r"^(?P<n>\d*)") for name in ("commit_scn", "scn"))
    return _numbers(pc.coalesce(*commits))


_BINLOG = Positions({"file": pa.string(), "pos": pa.int64(), "row": pa.int64()}, _places_in_binlog, {})
CONNECTORS: Mapping[str, Positions] = {
    "postgresql": Positions(
        {"lsn": pa.int64(), "txId": pa.int64()}, _commits_of_postgres, {"sequence": pa.string()}, "txId"
    ),
    "mysql": _BINLOG,
    "mariadb": _BINLOG,
    "oracle": Positions(
        {
            "scn": pa.string(),
            "commit_scn": pa.string(),
            "rs_id": pa.string(),
            "ssn": pa.int64(),
            "redo_thread": pa.int64(),
            "txId": pa.string(),
        },
        _commits_of_oracle,
        {},
    ),
}
"""By the field ``connector`` of source blocks."""
NAMES: Sequence[str] = tuple(CONNECTORS)
