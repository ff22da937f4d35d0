"""Takes an incremental snapshot over from Debezium's offset, and hands one back.

Both read a table by ranges of its key, ``(last, highest]``, and leave what was changed since to the log. So it goes on
after the last key, if that key's columns and values are the same on both sides. If not, the table is begun anew: its
rows come again, and none is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.changes.column_plan import event_key
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.handover import Handover
from floodmark.connectors.contract.key_forms import text_of, value_of
from floodmark.connectors.contract.tables import TableCatalog
from floodmark.debezium.snapshot_state import AskedTable, DebeziumSnapshot, KeyValue
from floodmark.errors import ConditionError, OffsetError
from floodmark.snapshots.incremental.state import IncrementalState, Key, TableRun


class SnapshotMover:
    """Moves incremental snapshots.

    Args:
        options: the query's.
        tables: the source's tables.
        handover: knows their keys.
    """

    def __init__(self, options: CommonOptions, tables: TableCatalog, handover: Handover) -> None:
        self._options = options
        self._tables = tables
        self._handover = handover

    def taken_over(self, snapshot: DebeziumSnapshot) -> tuple[IncrementalState | None, list[str]]:
        """Return the state with which a query goes on, None if nothing is left, and what that means; sentences.

        Raises:
            OffsetError: a table's rows have a condition that can't be used.
            FloodmarkError: the source can't be reached.
        """
        captured: dict[str, list[CapturedTable]] = {}
        for table in self._tables.captured():
            captured.setdefault(self._named(table.published), []).append(table)
        runs: list[TableRun] = []
        lines = []
        for place, asked in enumerate(snapshot.tables):
            if asked.name not in captured:
                lines.append(
                    f"Debezium's incremental snapshot has {asked.name}, which is not a table that the query captures: "
                    "its rows are not read."
                )
            for table in captured.get(asked.name, []):
                run = self._waiting(table, asked)
                if place == 0 and snapshot.last is not None:
                    lines.append(self._begun(run, table, snapshot.last, snapshot.highest))
                runs.append(run)
        if not runs:
            return None, lines
        names = ", ".join(dict.fromkeys(run.name for run in runs))
        lines.insert(0, f"Debezium's incremental snapshot of {names} goes on in the query.")
        return IncrementalState(runs, snapshot.signal), lines

    def _named(self, published: str) -> str:
        """Return a table's name as Debezium writes it."""
        return f"{self._handover.catalog}.{published}" if self._handover.catalog else published

    def _waiting(self, table: CapturedTable, asked: AskedTable) -> TableRun:
        if asked.condition:
            try:
                self._tables.row_filter(table.oid, asked.condition)
            except ConditionError as exc:
                raise OffsetError(
                    f"Debezium's incremental snapshot of {asked.name} has the condition {asked.condition}, which can't "
                    f"be used here: {exc.what}",
                    "Let Debezium finish that table, or stop its snapshot with the signal stop-snapshot. Then import "
                    "the offset, and send the query a signal with another condition.",
                ) from None
        name, surrogate = table.published, asked.surrogate
        return TableRun(name, table.oid, "", None, surrogate, asked.condition, table.rows, described=False)

    def _begun(
        self,
        run: TableRun,
        table: CapturedTable,
        last: Sequence[KeyValue | None],
        highest: Sequence[KeyValue | None] | None,
    ) -> str:
        """Let a table go on after a key, if that is exact; return what will happen."""
        key = self._tables.key_of(run.oid, None)
        anew = f"{table.name} is read anew, so that rows come again which Debezium has delivered: "
        if run.surrogate is not None:
            return f"{anew}rows with the same value of its surrogate key may not all have been delivered."
        schema, _, name = run.name.rpartition(".")
        columns = () if key is None else key.columns
        if key is None or key.nulls or tuple(event_key(schema, name, columns, columns, self._options)) != columns:
            return f"{anew}Debezium doesn't cut it by its own key."
        forms = self._handover.key_forms(run.oid, key)
        after, top = ([text_of(*pair) for pair in zip(forms, values, strict=False)] for values in (last, highest or ()))
        bounds = [[text for text in bound if text is not None] for bound in (after, top)]
        if {len(columns)} != {len(bound) for bound in (last, highest or (), *bounds)}:
            return f"{anew}its key has a type whose values Debezium's offset doesn't say exactly."
        run.key, run.file, run.described, run.begun = key, table.file, True, True
        run.after, run.top = bounds
        return f"{table.name} is read on after the key {shown(bounds[0])}, up to {shown(bounds[1])}."

    def handed_back(self, state: IncrementalState) -> tuple[DebeziumSnapshot | None, list[str]]:
        """Return what Debezium goes on with, None if nothing is left, and what that means; sentences.

        Args:
            state: the state after its batch was settled.

        Raises:
            FloodmarkError: the source can't be reached.
        """
        left = [run for run in state.runs if not run.finished]
        if not left:
            return None, []
        asked: dict[AskedTable, list[TableRun]] = {}
        for run in left:
            signal = run.signals[-1] if run.signals else state.name or None
            asked.setdefault(AskedTable(self._named(run.name), run.condition, run.surrogate, signal), []).append(run)
        lines = [
            f"The incremental snapshot of {', '.join(dict.fromkeys(one.name for one in asked))} goes on in Debezium, "
            "if its connector has a signal.data.collection, or read.only."
        ]
        if state.paused:
            lines.append("It is paused, which Debezium's offset can't say: it goes on at once.")
        last, highest = None, None
        for number, (one, runs) in enumerate(asked.items()):
            bounds = self._exact(runs) if number == 0 else None
            if bounds is not None:
                last, highest = bounds
            elif any(run.after is not None or run.redo for run in runs):
                lines.append(f"{one.name} is read anew by Debezium: the rows that the query has delivered come again.")
        return DebeziumSnapshot(tuple(asked), state.name, last, highest), lines

    def _exact(self, runs: Sequence[TableRun]) -> tuple[tuple[KeyValue, ...], tuple[KeyValue, ...]] | None:
        """Return after which key Debezium goes on with the first table, and up to which; None: from its beginning."""
        (run, *others) = runs
        after = lowest(run)
        if others or run.key is None or run.key.nulls or run.nulls or after is None or run.top is None:
            return None
        schema, _, name = run.name.rpartition(".")
        columns = run.key.columns
        if run.surrogate is None and tuple(event_key(schema, name, columns, columns, self._options)) != columns:
            return None
        forms = self._handover.key_forms(run.oid, run.key)
        last, highest = (
            [value_of(form, text) for form, text in zip(forms, key, strict=True)] for key in (after, run.top)
        )
        exact = [tuple(value for value in bound if value is not None) for bound in (last, highest)]
        return (exact[0], exact[1]) if all(len(bound) == len(columns) for bound in exact) else None


def lowest(run: TableRun) -> Key | None:
    """Return the key up to which a table was delivered without a gap; None: none is known.

    Only the source compares keys, but the ranges that are to be read again follow one another.
    """
    if not run.redo:
        return run.after
    begins = {tuple(span.upto or ()): span.after for span in run.redo}
    at: Key | None = run.after
    for _ in run.redo:
        if at is None or tuple(at) not in begins:
            return None
        at = begins.pop(tuple(at))
    return at


def shown(key: Key) -> str:
    """Return a key for people."""
    return key[0] if len(key) == 1 else f"({', '.join(key)})"
