"""Checks the columns of a signal table, for ``floodmark check``."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.connectors.contract.findings import Finding, name_list

CHECK = "signal table"
FIELDS = ("id", "type", "data")
_CREATE = "CREATE TABLE {} (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"


def signal_table_finding(name: str, columns: Sequence[str]) -> Finding:
    """Return the result of checking a signal table.

    Args:
        name: the table's name in ``signal.data.collection``.
        columns: the names of its columns in their order; none if there is no such table.
    """
    what = f"The table '{name}' of signal.data.collection"
    if not columns:
        fix = f"Create it: {_CREATE.format(name)}; or correct signal.data.collection."
        return Finding(CHECK, "error", f"{what} does not exist, or the account cannot see it.", fix)
    if len(columns) < len(FIELDS):
        fix = f"Create it again: {_CREATE.format(name)}."
        return Finding(CHECK, "error", f"{what} has only {name_list(columns)}; signals need {name_list(FIELDS)}.", fix)
    first = tuple(column.lower() for column in columns[: len(FIELDS)])
    if first != FIELDS and set(FIELDS) <= {column.lower() for column in columns}:
        text = f"{what} begins with {name_list(columns[: len(FIELDS)])}, but columns count by their places."
        return Finding(CHECK, "error", text, f"Create it again: {_CREATE.format(name)}.")
    return Finding(CHECK, "ok", f"signals come by {name}")
