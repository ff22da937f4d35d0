"""The files of a Delta table's log: their names, and the actions that they hold.

Format: the Delta protocol, sections "Delta Log Entries" and "Checkpoints"
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md).
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import obstore
import pyarrow.parquet as pq
from obstore.store import ObjectStore

from floodmark.json_data import Json, JsonObject
from floodmark.sinks.delta.format.vectors import damaged

FOLDER = "_delta_log"
COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)")
_MAPS = frozenset({"partitionValues", "tags", "configuration", "options"})

Action = Mapping[str, Json]
"""An action as it is in the log, with its kind as the only member."""


def commit_path(version: int) -> str:
    """Return the path of a commit in the table's folder."""
    return f"{FOLDER}/{version:020d}.json"


def newest_checkpoint(names: Sequence[str]) -> tuple[int, list[str]]:
    """Return the version of the newest whole checkpoint, and the paths of its files; -1 without one."""
    parts: dict[tuple[int, int], list[str]] = {}
    for name in sorted(names):
        found = CHECKPOINT.fullmatch(name)
        if found:
            parts.setdefault((int(found[1]), int(found[3] or 1)), []).append(name)
    whole = [at for at, files in parts.items() if len(files) >= at[1]]
    if not whole:
        return -1, []
    version, count = max(whole)
    return version, [f"{FOLDER}/{name}" for name in parts[version, count][:count]]


def actions_of_commit(store: ObjectStore, version: int) -> list[Action]:
    """Return the actions of a commit.

    Args:
        store: the table's folder.

    Raises:
        FileNotFoundError: there is none.
        TargetDamagedError: it holds something else.
    """
    path = commit_path(version)
    return _parsed(bytes(obstore.get(store, path).bytes()), path)


def stored_actions(store: ObjectStore, path: str, wanted: Sequence[str]) -> list[Action]:
    """Return actions of a file of a checkpoint.

    Args:
        store: the table's folder.
        wanted: the columns that are read.
    """
    data = bytes(obstore.get(store, path).bytes())
    actions = _parsed(data, path) if path.endswith(".json") else _rows(data, wanted)
    sidecars = [action["sidecar"] for action in actions if action.get("sidecar") is not None]
    for sidecar in sidecars:
        name = JsonObject(sidecar, "A sidecar of a checkpoint", damaged).text("path")
        actions += stored_actions(store, name if "/" in name else f"{FOLDER}/_sidecars/{name}", wanted)
    return actions


def _parsed(data: bytes, path: str) -> list[Action]:
    try:
        actions = [json.loads(line) for line in data.splitlines() if line.strip()]
    except ValueError as error:
        raise damaged(f"'{path}' holds a line that is no JSON") from error
    if not all(isinstance(action, dict) for action in actions):
        raise damaged(f"'{path}' holds a line that is no action")
    return actions


def _rows(data: bytes, wanted: Sequence[str]) -> list[Action]:
    """Return the actions of a checkpoint; of each only the columns that are wanted."""
    file = pq.ParquetFile(io.BytesIO(data))
    columns = [name for name in wanted if name.partition(".")[0] in file.schema_arrow.names]
    found: list[dict[str, Any]] = file.read(columns=columns).to_pylist()
    return [{kind: _plain(value) for kind, value in row.items() if value is not None} for row in found]


def _plain(value: Any, name: str = "") -> Any:
    """Return a value of a checkpoint as JSON has it, without what is missing."""
    if name in _MAPS and isinstance(value, list):
        return dict(value)
    if isinstance(value, dict):
        return {key: _plain(item, key) for key, item in value.items() if item is not None}
    return value
