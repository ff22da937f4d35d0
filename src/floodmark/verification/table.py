"""Compares one table with its target."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.connectors.contract.read_points import ReadPoint
from floodmark.errors import SourceStateError, TargetUnfitError
from floodmark.logger import get_logger
from floodmark.sinks.verifiable import DividedRows, TargetView, VerifiableTarget
from floodmark.verification.candidates import KEY_HASH, differing_keys, no_rows
from floodmark.verification.conditions import listed
from floodmark.verification.hashes import column_hashes
from floodmark.verification.lookup import KeyLookup
from floodmark.verification.recheck import Held, Recheck, Settled, as_keys
from floodmark.verification.results import KeyDifference, Status, TableResult
from floodmark.verification.source import SourceTables
from floodmark.verification.sums import Sums, bits_for, limited
from floodmark.verification.tasks import Compared, Part, Refining, Runner, Summing, add_rows, add_sums

log = get_logger(__name__)

MOST_REFINED = 2_000_000
"""Rows of both sides in differing ranges that are looked at, which bounds the memory of this process."""
MOST_KEYS = 50_000
"""Keys that are looked at again."""


@dataclass(frozen=True)
class Settings:
    """How tables are compared.

    Attributes:
        limit: how many differences of a table are listed.
        values: whether their values are listed, too.
        at_rest: whether nothing is written to the source meanwhile.
        patience_s: how long the target may take to follow, and how long keys that change all the time are looked at.
        leaves_out: returns whether a column, ``schema.table.column``, isn't compared.
    """

    limit: int
    values: bool
    at_rest: bool
    patience_s: float
    leaves_out: Callable[[str], bool]


class TableComparison:
    """Compares one table.

    Args:
        source: the source.
        tables: the table's parts at the source.
        target: the table's target.
        runner: does the work on the parts of both.
        wait: waits until the target has everything up to a position, until a time of the monotonic clock.
        settings: how it is compared.
    """

    def __init__(
        self,
        source: SourceTables,
        tables: Sequence[CapturedTable],
        target: VerifiableTarget,
        runner: Runner,
        wait: Callable[[str, float], bool],
        settings: Settings,
    ) -> None:
        self._source = source
        self._tables = tables
        self._name = tables[0].published
        self._target = target
        self._runner = runner
        self._wait = wait
        self._settings = settings
        self._lookup: KeyLookup | None = None

    def run(self) -> TableResult:
        """Compare the table.

        Raises:
            FloodmarkError: it can't be compared.
        """
        if not self._target.exists() and (result := self._without_target()) is not None:
            return result
        point = self._source.open()
        try:
            followed = self._follow(point.position)
            view = self._target.view()
            compared, left_out = self._compared(view)
            found = self._scan(point, view, compared)
            result = replace(found.result, left_out=left_out)
            if found.keys is None:
                return result
            self._lookup = KeyLookup(self._source, self._tables, compared, self._runner)
            self._lookup.prove(point, found.keys, found.present)
        finally:
            point.release()
        return self._looked_again(result, self._lookup, found.keys, followed)

    def again(self, result: TableResult, keys: pa.Table) -> TableResult:
        """Compare some keys again.

        Args:
            result: what ``run`` returned.
            keys: of ``result.proven``.

        Raises:
            FloodmarkError: they can't be compared.
        """
        assert self._lookup is not None
        point = self._source.open()
        try:
            followed = self._follow(point.position)
            if self._compared(self._target.view())[0] != self._lookup.compared:
                raise SourceStateError(f"The table {self._name} was altered meanwhile.", "Verify it again.")
        finally:
            point.release()
        clean = TableResult(self._name, "equal", position=point.position, left_out=result.left_out)
        return self._looked_again(clean, self._lookup, keys, followed)

    def key_columns(self, keys: pa.Table) -> list[str]:
        """Return which columns of proven keys are those of the key."""
        return [name for name in keys.column_names if name != KEY_HASH]

    def finds(self, keys: pa.Table) -> bool:
        """Return whether the source finds all of some proven keys by conditions."""
        return self._lookup is not None and self._lookup.finds(keys)

    def _looked_again(self, result: TableResult, lookup: KeyLookup, keys: pa.Table, followed: bool) -> TableResult:
        """Return a result with what is certain about keys that seem to differ.

        Args:
            followed: whether the target has followed so far; otherwise it isn't waited for again.
        """

        def wait(position: str) -> bool:
            return self._wait(position, time.monotonic() + (self._settings.patience_s if followed else 0.0))

        compared = lookup.compared
        recheck = Recheck(self._source, lookup, self._target, wait, self._settings.at_rest)
        settled = recheck.settle(keys, result.position, time.monotonic() + self._settings.patience_s)
        count, unconfirmed = len(settled.proven), settled.open.num_rows + len(settled.ambiguous)
        status: Status = "different" if count else "unconfirmed" if unconfirmed or result.more else "equal"
        held = settled.target, settled.source
        positions = {key: held[0].position(key) for key in settled.proven} if held[0] is not None else {}
        gone = [key for key in settled.proven if held[1] is None or not held[1].found(key)]
        shown = as_keys(keys, set(list(settled.proven)[: self._settings.limit]))
        return replace(
            result,
            status=status,
            reason=_reason(settled),
            differences=[self._difference(compared, settled, row) for row in _rows(shown)],
            proven=as_keys(keys, set(settled.proven)),
            kinds=dict(settled.proven),
            positions=positions,
            gone=frozenset(gone),
            count=count,
            unconfirmed=unconfirmed,
        )

    def _without_target(self) -> TableResult | None:
        """Return the result where there is no target, as of a table that has never had rows; None: there is one by now.

        A query makes the target with the first rows, so those that the source has at a read point are waited for.
        """
        columns = self._source.columns(self._name)
        point = self._source.open()
        try:
            work = Summing(Compared(columns, tuple(columns.names)), bits_for(0))
            rows = self._runner.run(work, self._source.chunks(point, self._tables), add_sums, Sums(work.bits)).rows
        finally:
            point.release()
        status: Status = "not compared" if rows else "equal"
        why = "the source has no rows, and the target is made with the first one"
        if rows:
            followed = self._follow(point.position)
            if self._target.exists():
                return None
            why = "there is no target" if followed else "there is no target, and the query doesn't follow the source"
        return TableResult(self._name, status, why, rows, position=point.position)

    def _follow(self, position: str) -> bool:
        """Let the target follow, so that fewer rows differ only because they have just been changed."""
        return self._settings.at_rest or self._wait(position, time.monotonic() + self._settings.patience_s)

    def _compared(self, view: TargetView) -> tuple[Compared, list[str]]:
        """Return what is compared, and the columns that are left out."""
        source = self._source.columns(self._name)
        chosen = [one for one in source if not self._settings.leaves_out(f"{self._name}.{one.name}")]
        columns = view.fitted(pa.schema(chosen))
        lacking = [name for name in view.key if name not in columns.names]
        if not view.key:
            raise TargetUnfitError(
                f"The table '{self._name}' has no key: its target keeps its changes, not its rows.",
                "Give the table a key, or name columns that are one with message.key.columns.",
            )
        if lacking:
            raise TargetUnfitError(
                f"The target '{self._name}' has the key ({', '.join(view.key)}), of which the source's columns lack "
                f"{', '.join(lacking)}.",
                "Remove the target, and start the query with the mirror's option missing.tables=read.",
            )
        both = {*source.names, *view.names()} - set(columns.names)
        return Compared(columns, tuple(view.key), view.shape), sorted(both)

    def _scan(self, point: ReadPoint, view: TargetView, compared: Compared) -> _Scanned:
        """Compare all rows, and return the keys that seem to differ."""
        rows = max(view.row_estimate, sum(max(table.rows, 0) for table in self._tables))
        bits = bits_for(rows)
        parts: list[Sequence[Part | DividedRows]] = [self._source.chunks(point, self._tables), view.parts()]
        summing = Summing(compared, bits)
        left, right = (self._runner.run(summing, side, add_sums, Sums(bits)) for side in parts)
        result = TableResult(
            self._name, "equal", "", left.rows, right.rows, position=point.position, version=view.version
        )
        differing = left.differing(right)
        if not differing.any():
            return _Scanned(result)
        wanted = limited(differing, left.counts + right.counts, MOST_REFINED)
        refining = Refining(compared, bits, wanted)
        source, target = (
            pa.concat_tables([no_rows(compared.columns, compared.key), *self._runner.run(refining, side, add_rows, [])])
            for side in parts
        )
        keys = differing_keys(source, target)
        more = bool((differing & ~wanted).any()) or keys.num_rows > MOST_KEYS
        present = np.asarray(source[KEY_HASH].to_numpy(), np.uint64)
        log.info("rows_seem_to_differ", table=self._name, keys=keys.num_rows, ranges=int(differing.sum()))
        return _Scanned(replace(result, more=more), keys.slice(0, MOST_KEYS), present)

    def _difference(self, compared: Compared, settled: Settled, row: dict[str, Any]) -> KeyDifference:
        key = row.pop(KEY_HASH)
        assert settled.source is not None
        assert settled.target is not None
        source, target = _row(settled.source, key), _row(settled.target, key)
        columns: list[str] = []
        if source is not None and target is not None:
            columns = [
                name for name in compared.columns.names if column_hashes(source, name) != column_hashes(target, name)
            ]
        values = self._settings.values
        return KeyDifference(
            settled.proven[key],
            row,
            columns,
            _values(source, compared) if values else None,
            _values(target, compared) if values else None,
            settled.target.position(key),
        )


@dataclass(frozen=True)
class _Scanned:
    """What comparing all rows has found.

    Attributes:
        keys: the keys that seem to differ, with their hashes; None: none do.
        present: the hashes of keys that the source has, of those that were looked at.
    """

    result: TableResult
    keys: pa.Table | None = None
    present: Any = None


def _row(held: Held, key: int) -> pa.Table | None:
    """Return the newest of a key's rows; None without one."""
    numbers = held.at.get(key)
    return held.rows.slice(numbers[-1], 1) if numbers else None


def _values(row: pa.Table | None, compared: Compared) -> dict[str, Any] | None:
    if row is None:
        return None
    return _rows(row.select(compared.columns.names))[0]


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = listed(table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _reason(settled: Settled) -> str:
    reasons = []
    if not settled.waited:
        reasons.append(
            "the target doesn't follow the source, so the query may still change them: let it run, or say that "
            "nothing is written to the source (--at-rest)"
        )
    elif settled.open.num_rows:
        reasons.append("some rows change too often to be compared: give them more time (--wait)")
    if settled.ambiguous:
        reasons.append(f"the source has {len(settled.ambiguous)} keys more than once")
    return "; ".join(reasons)
