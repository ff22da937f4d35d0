"""What a target table tells of itself and of the queries that have written it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Self

import pyarrow as pa

from floodmark.json_data import Json, JsonObject, stored_object

OWNER, KEY, DELETES, TABLE = "floodmark.query", "floodmark.key", "floodmark.deletes", "floodmark.table"
"""Properties: the query whose table it is, the columns of its key, what becomes of deleted rows, the source's table."""
_DONE = "floodmark.done."
"""The beginning of the property in which a query keeps what it has written last."""
_ANCESTORS = 1000
"""How far back snapshots are looked at, each of which may cost a call to the JVM."""


@dataclass(frozen=True)
class Done:
    """The last micro-batch that a query has written to a table.

    Attributes:
        batch: its number.
        mark: tells it from others with that number.
        snapshot: the one that has its rows, or had been there if it changed none.
        sequence: the number of that snapshot in the order of all; later ones have greater numbers.
    """

    batch: int
    mark: int
    snapshot: int
    sequence: int

    def to_property(self) -> str:
        """Return the value of the property that keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_property(cls, text: str) -> Self:
        """Return what ``to_property`` described.

        Raises:
            CheckpointError: it described something else.
        """
        data: Json = None
        with contextlib.suppress(ValueError):
            data = json.loads(text)
        found: JsonObject = stored_object(data, "What an Iceberg table keeps of the query that writes it")
        return cls(*(found.integer(name) for name in ("batch", "mark", "snapshot", "sequence")))


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a table.

    Attributes:
        number: its id.
        parent: the id of the one before; None: there is none.
        sequence: its number in the order of all.
    """

    number: int
    parent: int | None
    sequence: int


@dataclass(frozen=True)
class TableState:
    """A state of a table.

    Attributes:
        properties: all of them.
        columns: names and types, and which can be null.
        head: the snapshot that readers see; None: there has been none.
        has_rows: whether there may be rows.
        ancestors: the snapshots before ``head``, the newest first, as far back as is needed and known.
        complete: whether ``ancestors`` ends where it does because nothing was before.
    """

    properties: Mapping[str, str]
    columns: pa.Schema
    head: Snapshot | None
    has_rows: bool
    ancestors: Sequence[Snapshot] = ()
    complete: bool = True

    def done(self, application: str) -> Done | None:
        """Return what a query has written last; None: nothing.

        Raises:
            CheckpointError: what the table says of it is damaged.
        """
        text = self.properties.get(_DONE + application)
        return None if text is None else Done.from_property(text)

    def since(self, done: Done, by_number: Callable[[int], Snapshot | None]) -> TableState:
        """Return it with the snapshots before ``head``, as far back as that with a micro-batch's rows, or an older one.

        Args:
            done: the micro-batch.
            by_number: returns a snapshot; None: it has expired.
        """
        found: list[Snapshot] = []
        one = self.head
        while one is not None and one.parent is not None:
            if one.number == done.snapshot or one.sequence < done.sequence or len(found) == _ANCESTORS:
                break
            parent = by_number(one.parent)
            if parent is None:
                break
            one = parent
            found.append(one)
        return replace(self, ancestors=found, complete=one is None or one.parent is None)

    def lacks(self, done: Done) -> bool:
        """Return whether the table was brought back to before a micro-batch, as far as its snapshots tell."""
        line = [*([] if self.head is None else [self.head]), *self.ancestors]
        if any(one.number == done.snapshot for one in line):
            return False
        # Those before an older one, or before the first of all, don't matter: it isn't among them.
        return self.complete or any(one.sequence < done.sequence for one in line)


def done_property(application: str, done: Done) -> tuple[str, str]:
    """Return the property that says what a query has written last."""
    return _DONE + application, done.to_property()
