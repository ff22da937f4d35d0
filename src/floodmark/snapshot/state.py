"""The state of a snapshot: what has been read of which table, at which read point.

A table's units (pages, say) are covered by spans ``[first, last, view]``. In ``pending`` the view says
which rows of the span are still to be read: those changed since that view, or all (-1). In ``done`` it is
the view that the span was read at. ``views`` holds the read points' visibility texts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

ALL = -1
Span = tuple[int, int, int]


@dataclass
class TableState:
    """One table of a snapshot.

    Attributes:
        file: changes when the table's units get another meaning.
        units: how many there are.
        rows: estimate of the table's rows.
        statement: a SELECT that its rows come from, if this snapshot was asked for with one.
    """

    name: str
    oid: int
    file: str
    units: int
    rows: int
    pending: list[Span] = field(default_factory=list)
    done: list[Span] = field(default_factory=list)
    statement: str = ""

    def to_json(self) -> list[Any]:
        """Return the state as JSON data."""
        return [self.name, self.oid, self.file, self.units, self.rows, self.pending, self.done, self.statement]

    @classmethod
    def from_json(cls, data: list[Any]) -> Self:
        """Return the state that ``to_json`` described."""
        name, oid, file, units, rows, pending, done, statement = data
        return cls(name, oid, file, units, rows, [_span(s) for s in pending], [_span(s) for s in done], statement)

    def finished_units(self) -> int:
        """Return how many units have been read once."""
        return self.units - sum(last - first for first, last, view in self.pending if view == ALL)


@dataclass
class SnapshotState:
    """A snapshot, as the offset holds it.

    Attributes:
        position: of the current read point; chunks are read when the log has been delivered up to it.
        token: what a chunk needs to read at the read point.
        views: visibility of this and earlier read points.
        tables: in the order in which they are read.
        batch: what the micro-batch that ends with this offset reads: table index and span.
        blocking: whether a signal asked for it while the log was streamed.
    """

    position: str
    token: dict[str, Any]
    views: list[str]
    tables: list[TableState]
    batch: list[tuple[int, Span]] = field(default_factory=list)
    blocking: bool = False

    @property
    def pending(self) -> bool:
        """Whether anything is still to be read."""
        return any(table.pending for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON data."""
        return {
            "position": self.position,
            "token": self.token,
            "views": self.views,
            "tables": [table.to_json() for table in self.tables],
            "blocking": self.blocking,
            "batch": [[table, list(span)] for table, span in self.batch],
            "progress": [
                {"name": t.name, "done": t.finished_units(), "units": t.units, "rows": t.rows} for t in self.tables
            ],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the state that ``to_json`` described."""
        return cls(
            data["position"],
            data["token"],
            list(data["views"]),
            [TableState.from_json(table) for table in data["tables"]],
            [(table, _span(span)) for table, span in data["batch"]],
            data["blocking"],
        )


def _span(data: Any) -> Span:
    first, last, view = data
    return int(first), int(last), int(view)


def take_units(state: SnapshotState, units: int) -> None:
    """Move up to ``units`` pending units into the batch, in the order of the tables."""
    state.batch = []
    view = len(state.views) - 1
    for index, table in enumerate(state.tables):
        while table.pending and units > 0:
            first, last, since = table.pending[0]
            cut = min(last, first + units)
            state.batch.append((index, (first, cut, since)))
            units -= cut - first
            table.pending[:1] = [(cut, last, since)] if cut < last else []
            table.done = _merge([*table.done, (first, cut, view)])


def rebase(
    state: SnapshotState, position: str, token: dict[str, Any], view: str, found: dict[int, tuple[int, str]]
) -> SnapshotState:
    """Return the state for a new read point, after the one before was lost.

    Rows may have moved between units since, and the last batch may have been read again without its read
    point, leaving out the rows that had changed. So in every table that is not finished, and in those of
    the last batch, the rows changed since they were read are read again.

    Args:
        state: the state so far.
        position: the new read point's position.
        token: the new read point's token.
        view: the new read point's visibility.
        found: units and file of the tables that exist now, by OID.
    """
    in_batch = {index for index, _ in state.batch}
    tables = []
    for index, table in enumerate(state.tables):
        if table.oid not in found:
            continue
        units, file = found[table.oid]
        if file != table.file and (table.pending or index in in_batch):
            fresh = TableState(table.name, table.oid, file, units, table.rows, _all(units), [], table.statement)
            tables.append(fresh)
        elif table.pending or index in in_batch:
            grown = [(table.units, units, ALL)] if units > table.units else []
            pending = _merge([*table.pending, *table.done, *grown])
            size = max(units, table.units)
            tables.append(TableState(table.name, table.oid, file, size, table.rows, pending, [], table.statement))
        else:
            tables.append(table)
    return SnapshotState(position, token, [*state.views, view], tables, [], state.blocking)


def _all(units: int) -> list[Span]:
    return [(0, units, ALL)] if units else []


def first_state(
    position: str, token: dict[str, Any], view: str, tables: list[dict[str, Any]], blocking: bool = False
) -> SnapshotState:
    """Return the state of a snapshot that begins.

    Args:
        tables: as the connector describes them; with ``statement`` if they are to be read by one.
        blocking: whether a signal asked for it.
    """
    states = [
        TableState(t["name"], t["oid"], t["file"], t["units"], t["rows"], _all(t["units"]), [], t.get("statement", ""))
        for t in tables
    ]
    return SnapshotState(position, token, [view], states, [], blocking)


def _merge(spans: list[Span]) -> list[Span]:
    """Sort spans and join neighbours of the same view."""
    result: list[Span] = []
    for span in sorted(spans):
        if result and result[-1][1] == span[0] and result[-1][2] == span[2]:
            result[-1] = (result[-1][0], span[1], span[2])
        else:
            result.append(span)
    return result
