"""Repairs rows that differ: the query reads them again, and rows that the source hasn't are deleted."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.errors import FloodmarkError
from floodmark.logger import get_logger
from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.verifiable import VerifiableTarget
from floodmark.verification.conditions import key_conditions
from floodmark.verification.hashes import row_hashes
from floodmark.verification.recheck import as_keys
from floodmark.verification.results import TableResult
from floodmark.verification.table import TableComparison

log = get_logger(__name__)

_POLL_S = 1.0
Send = Callable[[Mapping[str, Any]], str]
"""Sends a signal ``execute-snapshot`` with some data to the query, and returns its id."""


class Repair:
    """Repairs one target.

    Args:
        comparison: compares the table.
        target: the target.
        send: asks the query for snapshots.
        backslashes: whether a backslash in a text of a condition must be doubled.
        follows: whether the query runs, so that the result can be waited for.
        patience_s: how long to wait for it.
    """

    def __init__(
        self,
        comparison: TableComparison,
        target: VerifiableTarget,
        send: Send,
        backslashes: bool,
        follows: bool,
        patience_s: float,
    ) -> None:
        self._comparison = comparison
        self._target = target
        self._send = send
        self._backslashes = backslashes
        self._follows = follows
        self._patience_s = patience_s

    def run(self, result: TableResult) -> TableResult:
        """Repair what is certain, and return what is left of it.

        Args:
            result: what was found of the table, with differences.
        """
        assert result.proven is not None
        keys, problem = result.proven, ""
        gone = as_keys(keys, set(result.gone))
        kept = as_keys(keys, {key for key in result.kinds if key not in result.gone})
        if not self._target.replaces_doubled:
            doubled = {key for key, kind in result.kinds.items() if kind == "doubled" and key not in result.gone}
            if doubled and not self._follows:
                problem = "rows that the target has twice are repaired only while the query runs"
                kept = as_keys(kept, {key for key in result.kinds if key not in doubled})
            elif doubled:
                # Until the query has read them again, the target lacks them.
                self._delete(result, as_keys(keys, doubled), for_good=True)
        if kept.num_rows:
            self._read_again(result.table, kept)
        if gone.num_rows:
            try:
                self._delete(result, gone)
            except FloodmarkError as error:
                problem = "; ".join(filter(None, [problem, str(error)]))
        if not self._follows and kept.num_rows:
            waits = "the query has been asked to read the rows again, which it does when it runs"
            return replace(result, repaired=0, reason="; ".join(filter(None, [result.reason, problem, waits])))
        return self._checked(result, keys, problem)

    def _checked(self, before: TableResult, keys: pa.Table, problem: str) -> TableResult:
        until = time.monotonic() + self._patience_s
        while True:
            after = self._comparison.again(before, keys)
            if (after.status == "equal" and not problem) or time.monotonic() >= until:
                break
            if problem and not after.kinds.keys() - before.gone:
                break
            time.sleep(_POLL_S)
        late = ""
        if after.kinds.keys() - before.gone:
            late = "the query hasn't read all rows again yet: floodmark status shows whether it does"
        open_before = before.unconfirmed > 0 or before.more
        status = "unconfirmed" if after.status == "equal" and open_before else after.status
        return replace(
            after,
            status=status,
            reason="; ".join(filter(None, [before.reason, after.reason, problem, late])),
            source_rows=before.source_rows,
            target_rows=before.target_rows,
            version=before.version,
            unconfirmed=before.unconfirmed + after.unconfirmed,
            more=before.more,
            repaired=before.count - after.count - after.unconfirmed,
        )

    def _read_again(self, table: str, keys: pa.Table) -> None:
        """Ask the query to read rows again by incremental snapshots, while the stream goes on."""
        pattern = re.escape(table)
        columns = keys.select(self._comparison.key_columns(keys))
        if not self._comparison.finds(keys):
            log.warning("whole_table_is_read_again", table=table, why="a condition can't name some of the keys")
            self._send({"data-collections": [pattern]})
            return
        for condition, chosen in key_conditions(columns, self._backslashes):
            signal = self._send(
                {
                    "data-collections": [pattern],
                    "additional-conditions": [{"data-collection": pattern, "filter": condition}],
                }
            )
            log.info("rows_are_read_again", table=table, rows=chosen.num_rows, signal=signal)

    def _delete(self, result: TableResult, keys: pa.Table, for_good: bool = False) -> None:
        """Delete rows that the source hasn't, unless they were written since."""
        names = self._comparison.key_columns(keys)
        wanted = pa.schema([keys.schema.field(name) for name in names])
        held = self._target.view().with_keys(keys.select(names), wanted)
        found = np.array([result.positions.get(key, "") for key in row_hashes(held, names).tolist()], dtype=object)
        # Rows that others have written may have none.
        known = np.array(pc.fill_null(held[POSITION], "").to_pylist(), dtype=object)
        rows = held.filter(pa.array((known <= found).astype(np.bool_)))
        if rows.num_rows:
            count = self._target.delete(rows, for_good)
            log.info("surplus_rows_are_deleted", table=result.table, rows=count)
