"""The state of incremental snapshots: tables that are read by ranges of their key while the log goes on.

A table's rows are read from the lowest key to the highest that there was at the beginning; rows beyond it
come from the log. Keys are lists of texts that only the source can compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, Self, get_args

from floodmark.connectors.contract.table_key import TableKey
from floodmark.json_data import Json, JsonObject, stored_object
from floodmark.notifications.records import ScanStatus
from floodmark.packing import FEW, pack, pack_numbers, unpack, unpack_numbers
from floodmark.snapshots.reports import Report, TaskReports

Key = list[str]
RunOutcome = ScanStatus | Literal[""]
OUTCOMES: tuple[RunOutcome, ...] = ("", *get_args(ScanStatus))


@dataclass
class KeyRange:
    """Part of a table: ``(after, upto]`` in the key's order.

    Attributes:
        after: None: from the beginning.
        upto: None: the rows whose key is null.
        since: only rows changed since that view of the source; None: all.
    """

    after: Key | None
    upto: Key | None
    since: str | None = None

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the range that ``asdict`` described.

        Raises:
            CheckpointError: it described something else.
        """
        stored = stored_object(data, "A range of an incremental snapshot")
        for name in ("after", "upto"):
            if name not in stored:
                # Null means that the range has no bound there.
                raise stored.wrong(name, "a key or null")
        return cls(stored.optional_texts("after"), stored.optional_texts("upto"), stored.optional_text("since"))


@dataclass
class TableRun:
    """One table of an incremental snapshot.

    Attributes:
        name: the name that its events have, ``schema.table``.
        file: changes when what was read of it may not fit what follows.
        key: the key that it is cut by; None until it is described.
        surrogate: the column to use instead of the key.
        condition: an SQL condition that the rows fulfil; empty: all rows.
        estimate: how many rows it has, roughly.
        begun: whether ``top`` has been looked up.
        after: the key up to which it has been read.
        top: the highest key to read; None: no rows.
        nulls: whether the rows without key are still to be read.
        redo: ranges to be read again.
        rows: how many rows were read, roughly.
        chunks: how many chunks were read.
        failures: how often in a row it could not be read.
        outcome: why it is not read at all or no further; empty: it is.
        error: the last error.
        described: whether ``file``, ``key`` and ``nulls`` are known; they must be when it begins.
        owed: whether the table is new, so that only this snapshot delivers its rows.
        signals: ids of the signals that asked for it, the oldest first.
    """

    name: str
    oid: int
    file: str
    key: TableKey | None
    surrogate: str | None
    condition: str
    estimate: int
    begun: bool = False
    after: Key | None = None
    top: Key | None = None
    nulls: bool = False
    redo: list[KeyRange] = field(default_factory=list)
    rows: int = 0
    chunks: int = 0
    failures: int = 0
    outcome: RunOutcome = ""
    error: str = ""
    described: bool = True
    owed: bool = False
    signals: list[str] = field(default_factory=list)

    @property
    def waits(self) -> bool:
        """Whether no read has been tried yet."""
        return not (self.begun or self.redo or self.failures or self.outcome)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to be planned."""
        return bool(self.outcome) or (self.begun and not self.redo and not self.nulls and self.after == self.top)

    def copy(self) -> Self:
        """Return a copy that can be changed; what is in its lists stays."""
        return replace(self, redo=list(self.redo), signals=list(self.signals))

    def to_json(self) -> dict[str, Json]:
        """Return the state as JSON data."""
        state = {**asdict(self), "key": {} if self.key is None else self.key.to_json()}
        if not self.signals:
            # As checkpoints of earlier versions have it.
            del state["signals"]
        return state

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the state that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        run = stored_object(data, "A table of an incremental snapshot")
        return cls(
            run.text("name"),
            run.integer("oid"),
            run.text("file"),
            TableKey.from_json(run.value("key")) if run.value("key") else None,
            run.optional_text("surrogate"),
            run.text("condition"),
            run.integer("estimate"),
            run.flag("begun"),
            run.optional_texts("after"),
            run.optional_texts("top"),
            run.flag("nulls"),
            list(map(KeyRange.from_json, run.items("redo"))),
            run.integer("rows"),
            run.integer("chunks"),
            run.integer("failures"),
            run.choice("outcome", OUTCOMES),
            run.text("error"),
            # Checkpoints of earlier versions lack these three.
            run.flag("described", True),
            run.flag("owed", False),
            run.optional_texts("signals") or [],
        )


@dataclass
class BatchRange:
    """A range that a micro-batch reads."""

    run: int
    range: KeyRange


@dataclass
class IncrementalState:
    """Incremental snapshots, as stored in the offset.

    Attributes:
        runs: the tables that are not finished, and those of the batch, in their order.
        name: id of the newest signal that requested tables.
        paused: whether no more chunks are to be read for now.
        switched_ms: when the last pause or resume signal was sent, milliseconds since the epoch.
        batch: what the micro-batch that ends with this offset reads.
        position: the position of the batch's read point.
        token: what a chunk needs to read at the batch's read point.
    """

    runs: list[TableRun] = field(default_factory=list)
    name: str = ""
    paused: bool = False
    batch: list[BatchRange] = field(default_factory=list)
    position: str = ""
    token: dict[str, Json] = field(default_factory=dict)
    switched_ms: int = 0

    @property
    def active(self) -> bool:
        """Whether chunks are to be read now."""
        return not self.paused and any(not run.finished for run in self.runs)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to remember."""
        return not self.runs and not self.paused

    def copy(self) -> Self:
        """Return a copy that can be changed."""
        return replace(self, runs=[run.copy() for run in self.runs], batch=list(self.batch))

    def to_json(self) -> dict[str, Json]:
        """Return the state as JSON data; many tables that wait are packed into one text."""
        state: dict[str, Json] = {
            "runs": [run.to_json() for run in self.runs] if len(self.runs) <= FEW else [],
            "name": self.name,
            "paused": self.paused,
            "batch": [asdict(chunk) for chunk in self.batch],
            "position": self.position,
            "token": self.token,
            "switched_ms": self.switched_ms,
        }
        return state if len(self.runs) <= FEW else {**state, "packed": _packed(self.runs)}

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return the state that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        state = stored_object(data, "An incremental snapshot")
        return cls(
            runs_of(state),
            state.text("name"),
            state.flag("paused"),
            [
                BatchRange(item.integer("run"), KeyRange.from_json(item.value("range")))
                for item in state.members("batch")
            ],
            state.text("position"),
            state.member("token").content(),
            state.integer("switched_ms", 0),
        )

    @property
    def tables(self) -> list[str]:
        """The names of the tables that are not finished, each once."""
        return list(dict.fromkeys(run.name for run in self.runs if not run.finished))

    def drop(self, unwanted: Callable[[TableRun], bool]) -> list[str]:
        """Remove tables, and their chunks from the batch; return their names."""
        dropped = [run for run in self.runs if unwanted(run)]
        kept = [index for index, run in enumerate(self.runs) if not unwanted(run)]
        self.batch = [BatchRange(kept.index(chunk.run), chunk.range) for chunk in self.batch if chunk.run in kept]
        self.runs = [self.runs[index] for index in kept]
        return list(dict.fromkeys(run.name for run in dropped))

    def settle_batch(self, reports: TaskReports) -> dict[int, Report]:
        """Apply the reports of the last batch: what was not delivered is to be read again.

        Returns:
            The worst report of each table whose chunks failed, or took too long, by the table's index.
        """
        failed: dict[int, Report] = {}
        for number, chunk in enumerate(self.batch):
            report = reports.of("incremental", number)
            if report.outcome == "complete":
                continue
            since = chunk.range.since
            # The rows that were unchanged have been delivered, so only those changed since are read again.
            if report.outcome == "unchanged" and since is None:
                since = str(self.token["visible"])
            self.runs[chunk.run].redo.append(KeyRange(chunk.range.after, chunk.range.upto, since))
            if report.failed and (chunk.run not in failed or report.worse(failed[chunk.run])):
                failed[chunk.run] = report
        for index in {chunk.run for chunk in self.batch} - set(failed):
            self.runs[index].failures = 0
        self.batch = []
        return failed

    def take_redo(self, index: int, most: int) -> int:
        """Move up to ``most`` ranges that are to be read again into the batch; return how many."""
        run = self.runs[index]
        taken, run.redo = run.redo[:most], run.redo[most:]
        self.batch += [BatchRange(index, item) for item in taken]
        return len(taken)

    def split_redo(self, index: int, bounds: Sequence[tuple[Key, int]]) -> None:
        """Split the first range that is to be read again at bounds, the upper keys of its pieces."""
        run = self.runs[index]
        first = run.redo.pop(0)
        after, pieces = first.after, []
        for upto, _ in bounds:
            pieces.append(KeyRange(after, upto, first.since))
            after = upto
        if after != first.upto:
            pieces.append(KeyRange(after, first.upto, first.since))
        run.redo[:0] = pieces

    def take_nulls(self, index: int) -> None:
        """Move the rows without key into the batch."""
        self.runs[index].nulls = False
        self.batch.append(BatchRange(index, KeyRange(None, None)))

    def take(self, index: int, bounds: Sequence[tuple[Key, int]]) -> None:
        """Move the ranges between bounds into the batch.

        Args:
            index: the table's index.
            bounds: the upper key of each range and how many rows it has.
        """
        run = self.runs[index]
        for upto, rows in bounds:
            self.batch.append(BatchRange(index, KeyRange(run.after, upto)))
            run.after = upto
            run.rows += rows
            run.chunks += 1


def _packed(runs: Sequence[TableRun]) -> str:
    """Return many tables as a text; of those that wait, only what was requested."""
    asked: dict[tuple[str | None, str, bool, tuple[str, ...]], int] = {}
    waiting = [run for run in runs if run.waits]
    which = [
        asked.setdefault((run.surrogate, run.condition, run.owed, tuple(run.signals)), len(asked)) for run in waiting
    ]
    return pack(
        [
            [run.name for run in waiting],
            pack_numbers((run.name, run.oid) for run in waiting),
            which,
            list(asked),
            [run.estimate for run in waiting],
            [[index, run.to_json()] for index, run in enumerate(runs) if not run.waits],
        ]
    )


def runs_of(state: JsonObject) -> list[TableRun]:
    """Return the tables of a state that ``IncrementalState.to_json`` described."""
    if "packed" not in state:
        return list(map(TableRun.from_json, state.items("runs")))
    names, numbers, which, asked, estimates, others = unpack(state.text("packed"))
    waiting = iter(
        # Checkpoints of earlier versions lack the signals.
        TableRun(
            name,
            oid,
            "",
            None,
            surrogate,
            condition,
            estimate,
            described=False,
            owed=owed,
            signals=[*by[0]] if by else [],
        )
        for name, oid, (surrogate, condition, owed, *by), estimate in zip(
            names, unpack_numbers(names, numbers), (asked[place] for place in which), estimates, strict=True
        )
    )
    begun = {index: TableRun.from_json(run) for index, run in others}
    return [begun[index] if index in begun else next(waiting) for index in range(len(names) + len(begun))]
