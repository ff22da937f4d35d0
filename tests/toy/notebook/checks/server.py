"""Finds what would make capturing a notebook fail. Everything here only reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from floodmark.connectors.contract.findings import Check, Finding, name_list, results
from floodmark.errors import FloodmarkError
from floodmark.signals.table import CHECK, signal_table_finding
from floodmark.snapshots.modes import make_snapshotter
from tests.toy.notebook.continuity import Continuity
from tests.toy.notebook.database.notebook import SCHEMA, Notebook
from tests.toy.notebook.options import NotebookOptions
from tests.toy.notebook.source.log import IDENTITY
from tests.toy.notebook.source.read_points import NotebookView


def check_source(options: NotebookOptions, offset: Mapping[str, Any] | None = None) -> list[Finding]:
    """Check the notebook, its log and its tables.

    Args:
        options: the source's options.
        offset: the source's last offset in the query's checkpoint; None for a new query.
    """
    try:
        with NotebookView(Notebook(Path(options.path)), options.snapshot_chunk_bytes) as view:
            checks: list[Check] = [
                ("checkpoint", lambda: _checkpoint(options, offset)),
                ("tables", lambda: _tables(view, options)),
                (CHECK, lambda: _signals(view, options)),
            ]
            again = make_snapshotter(options).should_snapshot_on_data_error()
            return [Finding("connection", "ok", f"the notebook in {options.path}"), *results(checks, again)]
    except FloodmarkError as exc:
        return [Finding("connection", "error", exc.what, exc.cure)]


def _checkpoint(options: NotebookOptions, offset: Mapping[str, Any] | None) -> list[Finding]:
    if offset is None:
        return []
    continuity = Continuity(Notebook(Path(options.path)))
    continuity.known = (offset.get("bookmark") or {}).get(IDENTITY)
    continuity.prove(offset["log"])
    return [Finding("checkpoint", "ok", f"the log has what follows {offset['log']}")]


def _tables(view: NotebookView, options: NotebookOptions) -> list[Finding]:
    captured = [table for table in view.tables.values() if options.captures(SCHEMA, table.name)]
    if not captured:
        fix = "Correct table.include.list or table.exclude.list."
        return [Finding("tables", "warning", "The filters match no table.", fix)]
    findings = [Finding("tables", "ok", f"{len(captured)} captured")]
    bare = [f"{SCHEMA}.{table.name}" for table in captured if not table.key]
    if bare:
        text = f"Without a primary key: {name_list(bare)}; their events have no key."
        findings.append(Finding("tables", "warning", text, "Set message.key.columns."))
    return findings


def _signals(view: NotebookView, options: NotebookOptions) -> list[Finding]:
    columns = {f"{SCHEMA}.{table.name}": [one.name for one in table.columns] for table in view.tables.values()}
    return [signal_table_finding(name, columns.get(name, [])) for name in options.signal_tables]
