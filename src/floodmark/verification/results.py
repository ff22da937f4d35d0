"""What a verification found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import pyarrow as pa

Kind = Literal["missing", "surplus", "differs", "doubled"]
"""``missing``: only the source has the row. ``surplus``: only the target has. ``doubled``: the target has it twice."""
KINDS: tuple[Kind, ...] = get_args(Kind)
Status = Literal["equal", "different", "unconfirmed", "not compared"]

EQUAL, DIFFERENT, NOT_COMPARED = 0, 1, 2
"""Exit codes."""


@dataclass(frozen=True)
class KeyDifference:
    """A key in which a target differs from the source.

    Attributes:
        key: its values by column.
        columns: the columns in which the rows differ, if both have it.
        source: the source's row; None without one, or where values weren't asked for.
        target: the target's row, likewise.
        position: the position of the target's row; empty without one.
    """

    kind: Kind
    key: Mapping[str, Any]
    columns: Sequence[str] = ()
    source: Mapping[str, Any] | None = None
    target: Mapping[str, Any] | None = None
    position: str = ""


@dataclass(frozen=True)
class TableResult:
    """What was found of a table.

    Attributes:
        table: its name, as in events.
        status: ``different``: rows differ for certain. ``unconfirmed``: rows differ that the query may still change.
            ``not compared``: see ``reason``.
        reason: why it wasn't compared, or differences couldn't be confirmed.
        source_rows: rows of the source at the read point; None: not counted.
        target_rows: rows of the target at its version; None: not counted.
        position: the read point's.
        version: the target's version that all rows were compared with.
        differences: those that are certain, up to the limit that was asked for.
        count: how many there are together.
        unconfirmed: how many keys differed and are not certain.
        more: whether more keys may differ than were looked at.
        left_out: columns that were not compared: those that only one side has, or that were left out.
        proven: all keys that differ for certain, with their hashes; None: there are none.
        kinds: how each of these differs, by its hash.
        positions: the positions of the target's rows, likewise.
        gone: hashes of those that the source hasn't.
        repaired: how many of the differences were repaired; None: that wasn't asked for.
    """

    table: str
    status: Status
    reason: str = ""
    source_rows: int | None = None
    target_rows: int | None = None
    position: str = ""
    version: str = ""
    differences: Sequence[KeyDifference] = ()
    count: int = 0
    unconfirmed: int = 0
    more: bool = False
    left_out: Sequence[str] = ()
    proven: pa.Table | None = None
    kinds: Mapping[int, Kind] = field(default_factory=dict)
    positions: Mapping[int, str] = field(default_factory=dict)
    gone: frozenset[int] = frozenset()
    repaired: int | None = None

    def counted(self) -> dict[Kind, int]:
        """Return how many differences there are of each kind."""
        found = Counter(self.kinds.values())
        return {kind: found[kind] for kind in KINDS if found[kind]}


@dataclass(frozen=True)
class Verification:
    """What was found of all tables."""

    tables: Sequence[TableResult] = field(default=())

    @property
    def equal(self) -> bool:
        """Whether all tables are equal."""
        return all(table.status == "equal" for table in self.tables)

    @property
    def exit_code(self) -> int:
        """0: all tables are equal; 1: one is different; 2: none is, but one couldn't be compared."""
        states = {table.status for table in self.tables}
        if "different" in states:
            return DIFFERENT
        return NOT_COMPARED if states - {"equal"} else EQUAL
