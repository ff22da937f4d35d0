"""The state of a snapshot: what has been read of which table, at which read point.

A table's units (pages, say) are covered by spans ``[first, last, view]``. In ``pending`` the view says
which rows of the span are still to be read: those changed since that view, or all (-1). In ``done`` it is
the view that the span was read at. ``views`` holds the read points' visibility texts.

Some tables can only be read in the order of their key. Then a unit is what was read into one piece, so the number of
units isn't known in advance, and the keys at which units begin are kept as long as they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Self, get_args

from floodmark.connectors.contract.captured_table import UNCOUNTED, CapturedTable
from floodmark.json_data import Json, damaged_checkpoint, stored_object
from floodmark.packing import FEW, pack, pack_numbers, unpack, unpack_numbers
from floodmark.snapshots.reports import Part, TaskReports

ALL = -1
RANGE_UNITS = 1 << 32
"""Distance between the first units of the ranges of such a table, if several are read in parallel. The last unit of a
range is never used, so that no span reaches into the next range."""
MOST_RANGES = UNCOUNTED // RANGE_UNITS
Span = tuple[int, int, int]
_LOOKED_UP = "", 1, 0
"""File, units and rows of a table in an offset with many tables of which nothing has been read: they are looked up
again when the state goes on at another read point."""


Outcome = Literal["", "SUCCEEDED", "SKIPPED", "SQL_EXCEPTION"]
OUTCOMES: dict[str, Outcome] = {name: name for name in get_args(Outcome)}


class Found(NamedTuple):
    """A table that exists now.

    Attributes:
        units: number of units.
        file: changes when the units get another meaning.
        rows: estimated number of rows.
    """

    units: int
    file: str
    rows: int = 0


@dataclass
class TableState:
    """One table of a snapshot.

    Attributes:
        file: changes when the table's units get another meaning.
        units: number of units.
        rows: estimated number of rows.
        statement: a SELECT that its rows come from, if the snapshot was requested with one.
        read: how many rows were read, each counted once.
        keys: for a table that is read in the order of its key, by unit, the key before the unit's first row; a unit
            that isn't here begins with the table, or ends with it.
        failures: how often in a row it could not be read.
        outcome: how its scan ended; empty: it goes on.
    """

    name: str
    oid: int
    file: str
    units: int
    rows: int
    pending: list[Span] = field(default_factory=list)
    done: list[Span] = field(default_factory=list)
    statement: str = ""
    read: int = 0
    failures: int = 0
    outcome: Outcome = ""
    keys: dict[int, list[str]] = field(default_factory=dict)

    @property
    def all_units(self) -> list[Span]:
        """The span of all units of the table."""
        return _all(self.units)

    def to_json(self) -> list[Json]:
        """Return the state as JSON data."""
        return list(vars(self).values())

    def copy(self) -> Self:
        """Return a copy that can be changed."""
        # For thousands of tables with each micro-batch; ``replace`` is slower.
        made = type(self)(*vars(self).values())
        made.pending, made.done, made.keys = list(self.pending), list(self.done), dict(self.keys)
        return made

    @property
    def waits(self) -> bool:
        """Whether no read has been tried yet."""
        changed = self.done or self.failures or self.keys or self.statement or self.read or self.outcome
        return not changed and self.pending == _all(self.units)

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the state that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        match data:
            case [
                str(name),
                int(oid),
                str(file),
                int(units),
                int(rows),
                list(pending),
                list(done),
                str(statement),
                int(read),
                int(failures),
                str(outcome),
                dict(keys),
            ] if outcome in OUTCOMES:
                begin_keys = {_unit(unit): _key(key) for unit, key in keys.items()}
                spans = list(map(_span, pending)), list(map(_span, done))
                ended = OUTCOMES[outcome]
                return cls(name, oid, file, units, rows, *spans, statement, read, failures, ended, begin_keys)
        raise damaged_checkpoint("a table of a snapshot is not what was written")

    @property
    def progress(self) -> tuple[int, int]:
        """How much has been read and how much there is: units, or rows if the number of units is unknown."""
        if self.units != UNCOUNTED:
            return self.finished_units(), self.units
        total = max(self.rows, self.read, 1)
        return (min(self.read, total - 1) if self.pending else total), total

    def finished_units(self) -> int:
        """Return how many units have been read once."""
        return self.units - sum(last - first for first, last, view in self.pending if view == ALL)


@dataclass
class SnapshotState:
    """A snapshot, as stored in the offset.

    Attributes:
        position: the position of the current read point; chunks are read when the log has been delivered up to it.
        token: what a chunk needs to read at the read point.
        views: visibility of this and earlier read points.
        tables: in the order in which they are read.
        batch: what the micro-batch that ends with this offset reads: table index and span.
        blocking: whether it was requested while the log was streamed, which waits for it.
    """

    position: str
    token: dict[str, Json]
    views: list[str]
    tables: list[TableState]
    batch: list[tuple[int, Span]] = field(default_factory=list)
    blocking: bool = False

    @property
    def pending(self) -> bool:
        """Whether anything is still to be read."""
        return any(table.pending for table in self.tables)

    def copy(self) -> Self:
        """Return a copy that can be changed."""
        tables = [table.copy() for table in self.tables]
        return replace(self, views=list(self.views), tables=tables, batch=list(self.batch))

    def progress(self) -> list[dict[str, Json]]:
        """Return what has been read of each table, as JSON data."""
        return [
            {
                "name": t.name,
                "done": t.progress[0],
                "units": t.progress[1],
                "rows": t.rows,
                "read": t.read,
                "outcome": t.outcome,
            }
            for t in self.tables
        ]

    def to_json(self) -> dict[str, Json]:
        """Return the state as JSON data.

        Many tables are packed into one text. For those that wait or are finished, it omits what can be looked up again
        or isn't needed any more.
        """
        state: dict[str, Json] = {
            "position": self.position,
            "token": self.token,
            "views": self.views,
            "blocking": self.blocking,
        }
        batch: list[Json] = [[table, list(span)] for table, span in self.batch]
        if len(self.tables) <= FEW:
            tables = [table.to_json() for table in self.tables]
            return {**state, "tables": tables, "batch": batch, "progress": self.progress()}
        packed = [
            [table.name for table in self.tables],
            pack_numbers((table.name, table.oid) for table in self.tables),
            [[i, table.outcome, table.read] for i, table in enumerate(self.tables) if table.outcome],
            [[i, table.to_json()] for i, table in enumerate(self.tables) if not table.outcome and not table.waits],
            batch,
        ]
        return {**state, "packed": pack(packed)}

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the state that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        state = stored_object(data, "A snapshot")
        if "packed" in state:
            tables, batch = _unpacked(state.text("packed"))
        else:
            tables, batch = list(map(TableState.from_json, state.items("tables"))), state.items("batch")
        return cls(
            state.text("position"),
            state.member("token").content(),
            list(state.texts("views")),
            tables,
            list(map(_planned, batch)),
            state.flag("blocking"),
        )


def _unpacked(packed: str) -> tuple[list[TableState], Sequence[Json]]:
    """Return the tables and the batch of a state."""
    names, numbers, finished, begun, batch = unpack(packed)
    file, units, rows = _LOOKED_UP
    tables = [
        TableState(name, oid, file, units, rows, _all(units))
        for name, oid in zip(names, unpack_numbers(names, numbers), strict=True)
    ]
    for index, outcome, read in finished:
        tables[index] = replace(tables[index], pending=[], outcome=outcome, read=read)
    for index, table in begun:
        tables[index] = TableState.from_json(table)
    return tables, batch


def settle_batch(state: SnapshotState, reports: TaskReports, part: Part, size: int) -> dict[int, str]:
    """Apply the reports of the last batch: what was delivered counts as read.

    What was not read is pending again. What was read without its read point stays in the batch.

    Args:
        state: is changed.
        reports: the reports of the batch's tasks.
        part: the part under which its chunks are reported.
        size: how many units make a chunk.

    Returns:
        The error of each table with failed chunks, by the table's index.
    """
    failed: dict[int, str] = {}
    partly: list[tuple[int, Span]] = []
    for number, (index, (first, last, since)) in enumerate(state.batch):
        table = state.tables[index]
        for begin in range(first, last, size):
            span = (begin, min(begin + size, last), since)
            report = reports.of(part, number, begin)
            # Rows that are read again, because they may have changed, were counted before.
            if since == ALL and report.outcome in ("complete", "unchanged"):
                table.read += report.rows
            if report.outcome == "unchanged":
                partly.append((index, span))
            elif report.outcome != "complete":
                table.done = _without(table.done, span)
                table.pending = merge_spans([*table.pending, span])
            # A chunk that waited for a lock is read later, and doesn't count as a failure of the table.
            if report.outcome in ("slow", "failed"):
                failed[index] = report.error
    for index in {index for index, _ in state.batch} - set(failed):
        state.tables[index].failures = 0
    state.batch = partly
    return failed


def defer_batch(state: SnapshotState) -> None:
    """Postpone what was read without its read point, and so only in part, to the next read point."""
    view = len(state.views) - 1
    for index, (first, last, _) in state.batch:
        table = state.tables[index]
        table.done = _without(table.done, (first, last, view))
        table.pending = merge_spans([*table.pending, (first, last, view)])
    state.batch = []


def _without(spans: list[Span], hole: Span) -> list[Span]:
    """Return spans without the units of another span."""
    cut = []
    for first, last, view in spans:
        pieces = ((first, min(last, hole[0])), (max(first, hole[1]), last))
        cut += [(begin, end, view) for begin, end in pieces if begin < end]
    return cut


def _span(data: Json) -> Span:
    match data:
        case [int(first), int(last), int(view)]:
            return first, last, view
    raise damaged_checkpoint("a part of a snapshot's table is not what was written")


def _planned(data: Json) -> tuple[int, Span]:
    match data:
        case [int(table), list(span)]:
            return table, _span(span)
    raise damaged_checkpoint("a planned part of a snapshot is not what was written")


def _unit(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise damaged_checkpoint("a unit of a snapshot's table is no number") from None


def _key(data: Json) -> list[str]:
    texts = [value for value in data if isinstance(value, str)] if isinstance(data, list) else []
    if not isinstance(data, list) or len(texts) < len(data):
        raise damaged_checkpoint("a key of a snapshot's table is no list of texts")
    return texts


def take_units(state: SnapshotState, units: int, least: int = 1) -> None:
    """Move up to ``units`` pending units into the batch, in the order of the tables.

    Args:
        state: is changed.
        units: how many.
        least: how many units a smaller piece counts as, since each has a fixed cost.
    """
    state.batch = []
    view = len(state.views) - 1
    for index, table in enumerate(state.tables):
        while table.pending and units > 0:
            first, last, since = table.pending[0]
            cut = min(last, first + units)
            state.batch.append((index, (first, cut, since)))
            units -= max(cut - first, least)
            table.pending[:1] = [(cut, last, since)] if cut < last else []
            table.done = merge_spans([*table.done, (first, cut, view)])


def rebase(
    state: SnapshotState, position: str, token: dict[str, Json], view: str, found: Mapping[int, Found]
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
        found: the tables that exist now, by OID; nothing more is read of the others.
    """
    in_batch = {index for index, _ in state.batch}
    tables = []
    for index, table in enumerate(state.tables):
        if table.oid not in found:
            # It may be back before the snapshot ends.
            tables.append(replace(table, pending=[]))
            continue
        units, file, rows = found[table.oid]
        if file != table.file and (table.pending or index in in_batch):
            fresh = replace(table, file=file, units=units, rows=rows, pending=_all(units), done=[], read=0, outcome="")
            tables.append(fresh)
        elif table.pending or index in in_batch:
            grown = [(table.units, units, ALL)] if units > table.units else []
            pending = merge_spans([*table.pending, *table.done, *grown])
            size = max(units, table.units)
            tables.append(replace(table, file=file, units=size, pending=pending, done=[]))
        else:
            tables.append(table)
    return SnapshotState(position, token, [*state.views, view], tables, [], state.blocking)


def cut_into_ranges(table: TableState, cuts: Sequence[list[str]]) -> None:
    """Split an unstarted, key-ordered table into key ranges.

    Args:
        table: is changed.
        cuts: the last keys of all ranges but the last one, in their order.
    """
    firsts = [number * RANGE_UNITS for number in range(len(cuts) + 1)]
    lasts = [first - 1 for first in firsts[1:]]
    table.pending = [(first, last, ALL) for first, last in zip(firsts, [*lasts, UNCOUNTED], strict=True)]
    for first, last, key in zip(firsts[1:], lasts, cuts, strict=True):
        table.keys |= {first: key, last: key}


def is_open(last: int) -> bool:
    """Return whether a span with this end reaches the open end of a range, or table, of unknown length."""
    return last % RANGE_UNITS == RANGE_UNITS - 1 or last == UNCOUNTED


def _all(units: int) -> list[Span]:
    return [(0, units, ALL)] if units else []


def first_state(
    position: str,
    token: dict[str, Json],
    view: str,
    tables: Sequence[CapturedTable],
    statements: Mapping[int, str] | None = None,
) -> SnapshotState:
    """Return the state of a snapshot that begins.

    Args:
        position: the read point's position.
        token: the read point's token.
        view: the read point's visibility.
        tables: to be read.
        statements: those that a signal gives, by the table's OID; None: it is no signal's snapshot.
    """
    states = [
        TableState(t.name, t.oid, t.file, t.units, t.rows, _all(t.units), [], (statements or {}).get(t.oid, ""))
        for t in tables
    ]
    return SnapshotState(position, token, [view], states, [], blocking=statements is not None)


def merge_spans(spans: list[Span]) -> list[Span]:
    """Sort spans and join neighbours of the same view."""
    result: list[Span] = []
    for span in sorted(spans):
        if result and result[-1][1] == span[0] and result[-1][2] == span[2]:
            result[-1] = (result[-1][0], span[1], span[2])
        else:
            result.append(span)
    return result
