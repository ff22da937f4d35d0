"""The transaction log of a Delta table: the table's state at a version, and commits.

Format: the Delta protocol, sections "Delta Log Entries", "Checkpoints" and "Actions"
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md).
"""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any
from uuid import uuid4

import obstore
import pyarrow.parquet as pq
from obstore.exceptions import AlreadyExistsError
from obstore.store import ObjectStore

from floodmark.errors import TargetChangedError
from floodmark.json_data import Json, JsonObject
from floodmark.sinks.delta.format.vectors import Descriptor, damaged

FOLDER = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)")
_STORED = ("protocol", "metaData", "add", "txn", "sidecar")
"""Columns of a checkpoint that matter for a writer."""
_REMOVED = ("remove.path", "remove.deletionTimestamp", "remove.deletionVector", "sidecar")
"""Columns of a checkpoint that tell which files were removed."""

_MAPS = frozenset({"partitionValues", "tags", "configuration", "options"})

Action = Mapping[str, Json]
"""An action as it is in the log, with its kind as the only member."""


@dataclass(frozen=True)
class DataFile:
    """A data file of a table's state.

    Attributes:
        path: its path as the log has it.
        add: the content of its ``add`` action.
        vector: which of its rows are deleted; None: none are.
    """

    path: str
    add: Mapping[str, Json]
    vector: Descriptor | None = None

    @classmethod
    def from_json(cls, add: Json) -> DataFile:
        """Create a file from the content of an ``add`` or ``remove`` action."""
        given = JsonObject(add, "A file of the Delta log", damaged)
        vector = given.value("deletionVector")
        return cls(given.text("path"), given.content(), None if vector is None else Descriptor.from_json(vector))

    @cached_property
    def statistics(self) -> Mapping[str, Json]:
        """Its statistics; empty if there are none ("Per-file Statistics" in the protocol)."""
        try:
            found = json.loads(str(self.add.get("stats")))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def partition(self) -> Mapping[str, str | None]:
        """The values of the table's partition columns, as texts."""
        found = self.add.get("partitionValues")
        return (
            {name: None if text is None else str(text) for name, text in found.items()}
            if isinstance(found, dict)
            else {}
        )

    @property
    def identity(self) -> tuple[str, str]:
        """What the log adds and removes: a path with its deletion vector."""
        return self.path, "" if self.vector is None else self.vector.identity

    def added(self, vector: Descriptor | None, at_ms: int, rows: int) -> list[Action]:
        """Return the actions that replace the file's deletion vector.

        Args:
            at_ms: the time, in milliseconds since the epoch.
            rows: how many rows the file has, deleted ones included; a file with a vector must tell it.
        """
        add = {name: value for name, value in self.add.items() if name != "deletionVector" and value is not None}
        if vector is not None:
            add["deletionVector"] = vector.to_json()
            add["stats"] = as_text(_wide({**self.statistics, "numRecords": rows}))
        return [self.removed(at_ms), {"add": {**add, "dataChange": True}}]

    def without(self, vector: Descriptor) -> Action:
        """Return the action that adds the file, which the table doesn't have yet, with a deletion vector."""
        stats = as_text(_wide(self.statistics))
        return {"add": {**self.add, "deletionVector": vector.to_json(), "stats": stats}}

    def removed(self, at_ms: int, changes_data: bool = True) -> Action:
        """Return the action that removes the file."""
        kept = ("path", "partitionValues", "size", "tags", "baseRowId", "defaultRowCommitVersion")
        file = {name: self.add[name] for name in kept if self.add.get(name) is not None}
        vector = {} if self.vector is None else {"deletionVector": self.vector.to_json()}
        changed = {"deletionTimestamp": at_ms, "dataChange": changes_data, "extendedFileMetadata": True}
        return {"remove": {**file, **changed, **vector}}


@dataclass(frozen=True)
class State:
    """A table at a version.

    Attributes:
        version: number of its last commit; -1: there is no table.
        protocol, metadata: the contents of these actions.
        files: by their identities.
        transactions: the last version that each application has committed.
        undone: applications that have committed nothing since the table was restored to an earlier version. A
            checkpoint of the log doesn't tell.
    """

    version: int
    protocol: Mapping[str, Json]
    metadata: Mapping[str, Json]
    files: Mapping[tuple[str, str], DataFile]
    transactions: Mapping[str, int]
    undone: Set[str] = frozenset()


NO_TABLE = State(-1, {}, {}, {}, {})


class DeltaLog:
    """Reads and writes the log of a table.

    Args:
        store: the table's folder.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def state(self, known: State = NO_TABLE) -> State:
        """Return the table's newest state.

        Args:
            known: an earlier state, of which only later commits are read.

        Raises:
            TargetChangedError: commits between the known state and the newest one are gone.
            TargetDamagedError: the log lacks a commit, or holds something else.
        """
        names = self._names(known.version)
        commits = sorted(int(found[1]) for name in names if (found := _COMMIT.fullmatch(name)))
        if known.version < 0:
            known = self._checkpoint(names)
        elif known.version not in commits:
            raise TargetChangedError(
                f"The Delta log has no version {known.version} any more, which this query knows.",
                "The table was removed, or restored from a copy. Start the query again.",
            )
        later = [version for version in commits if version > known.version]
        if later and later[0] != known.version + 1:
            raise TargetChangedError(
                f"The Delta log goes on with version {later[0]}, but this query knows version {known.version}.",
                "The table was removed, or its log was cleaned up meanwhile. Start the query again.",
            )
        if later != list(range(known.version + 1, known.version + 1 + len(later))):
            raise damaged(f"The Delta log lacks a version between {later[0]} and {later[-1]}")
        for version in later:
            known = replace(_applied(known, self._actions(version)), version=version)
        return known

    def removed_since(self, at_ms: int) -> Iterator[DataFile]:
        """Yield the files that were removed since a time, each with its deletion vector; some may be there again.

        The log forgets them after the table's ``delta.deletedFileRetentionDuration``, a week by default.

        Args:
            at_ms: in milliseconds since the epoch.
        """
        names = self._names(-1)
        version, paths = self._newest_checkpoint(names)
        commits = sorted(int(found[1]) for name in names if (found := _COMMIT.fullmatch(name)))
        stored = (action for path in paths for action in self._stored(path, _REMOVED))
        later = (action for number in commits if number > version for action in self._actions(number))
        for action in chain(stored, later):
            content = action.get("remove")
            if isinstance(content, dict):
                at = content.get("deletionTimestamp")
                if not isinstance(at, int) or at >= at_ms:
                    yield DataFile.from_json(content)

    def commit(self, version: int, actions: Iterable[Action]) -> bool:
        """Write a commit unless there is one; return whether it was written."""
        content = "".join(as_text(_named(action)) + "\n" for action in actions).encode()
        try:
            obstore.put(self._store, commit_path(version), content, mode="create")
        except AlreadyExistsError:
            # A client that got no answer sends its request again, and finds the commit that it has written itself.
            return bytes(obstore.get(self._store, commit_path(version)).bytes()) == content
        return True

    def note_of(self, state: State, application: str) -> str:
        """Return the text that an application's last commit carries (``userMetadata``).

        It is empty if there is none, or if that commit is in the log no more.
        """
        for version in range(state.version, -1, -1):
            try:
                kinds = list(_contents(self._actions(version)))
            except FileNotFoundError:
                break
            if any(kind == "txn" and _member(content, "appId") == application for kind, content in kinds):
                return next((_member(content, "userMetadata") for kind, content in kinds if kind == "commitInfo"), "")
        return ""

    def _names(self, after: int) -> list[str]:
        """Return the names of the log's files, from the one of a version on, or from the last checkpoint on."""
        start = after if after >= 0 else self._hinted()
        offset = None if start < 0 else f"{FOLDER}/{start:020d}"
        found = obstore.list(self._store, FOLDER, offset=offset).collect()
        return [str(one["path"]).rpartition("/")[2] for one in found]

    def _hinted(self) -> int:
        """Return the version of the last checkpoint that the log names; -1 without one."""
        try:
            data = bytes(obstore.get(self._store, f"{FOLDER}/_last_checkpoint").bytes())
            return JsonObject(json.loads(data), "The Delta log's _last_checkpoint", damaged).integer("version")
        except (FileNotFoundError, ValueError):
            # It is only a hint.
            return -1

    def _checkpoint(self, names: Sequence[str]) -> State:
        """Return the state that the newest whole checkpoint has."""
        version, paths = self._newest_checkpoint(names)
        actions = [action for path in paths for action in self._stored(path, _STORED)]
        return replace(_applied(NO_TABLE, actions), version=version) if paths else NO_TABLE

    def _newest_checkpoint(self, names: Sequence[str]) -> tuple[int, list[str]]:
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

    def _stored(self, path: str, wanted: Sequence[str]) -> list[Action]:
        """Return actions of a file of a checkpoint.

        Args:
            wanted: the columns that are read.
        """
        data = bytes(obstore.get(self._store, path).bytes())
        actions = _parsed(data, path) if path.endswith(".json") else _rows(data, wanted)
        sidecars = [action["sidecar"] for action in actions if action.get("sidecar") is not None]
        for sidecar in sidecars:
            name = JsonObject(sidecar, "A sidecar of a checkpoint", damaged).text("path")
            actions += self._stored(name if "/" in name else f"{FOLDER}/_sidecars/{name}", wanted)
        return actions

    def _actions(self, version: int) -> list[Action]:
        path = commit_path(version)
        return _parsed(bytes(obstore.get(self._store, path).bytes()), path)


def _member(content: Json, name: str) -> str:
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, str) else ""


def _wide(statistics: Mapping[str, Json]) -> dict[str, Json]:
    """Return statistics of a file whose deleted rows may have been the least or the greatest."""
    return {**statistics, "tightBounds": False}


def _named(action: Action) -> Action:
    """Return an action; one that tells about the commit gets a name that no other commit has."""
    told = action.get("commitInfo")
    return {"commitInfo": {**told, "txnId": str(uuid4())}} if isinstance(told, dict) else action


def now_ms() -> int:
    """Return the time, in milliseconds since the epoch."""
    return int(time.time() * 1000)


def commit_info(operation: str, at_ms: int) -> Action:
    """Return the action that tells what a commit does.

    Args:
        at_ms: the time, in milliseconds since the epoch.
    """
    return {"commitInfo": {"timestamp": at_ms, "operation": operation, "engineInfo": "floodmark"}}


def as_text(content: Mapping[str, Json]) -> str:
    """Return JSON without escapes where it can: delta-rs and DuckDB misread those of the highest characters."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def commit_path(version: int) -> str:
    """Return the path of a commit in the table's folder."""
    return f"{FOLDER}/{version:020d}.json"


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


def _applied(state: State, actions: Iterable[Action]) -> State:
    protocol, metadata = state.protocol, state.metadata
    files, transactions, undone = dict(state.files), dict(state.transactions), set(state.undone)
    for kind, content in _contents(actions):
        if kind == "commitInfo":
            if isinstance(content, dict) and content.get("operation") == "RESTORE":
                undone.update(transactions)
        elif kind == "remove":
            files.pop(DataFile.from_json(content).identity, None)
        elif kind == "protocol":
            protocol = JsonObject(content, "The protocol of a Delta table", damaged).content()
        elif kind == "metaData":
            metadata = JsonObject(content, "The metadata of a Delta table", damaged).content()
        elif kind == "txn":
            given = JsonObject(content, "A transaction of the Delta log", damaged)
            transactions[given.text("appId")] = given.integer("version")
            undone.discard(given.text("appId"))
        elif kind == "add":
            file = DataFile.from_json(content)
            files[file.identity] = file
    return State(state.version, protocol, metadata, files, transactions, frozenset(undone))


def _contents(actions: Iterable[Action]) -> Iterator[tuple[str, Json]]:
    """Yield the kinds and contents of a commit's actions, those that remove files first, as their order is free."""
    flat = [(kind, content) for action in actions for kind, content in action.items()]
    yield from sorted(flat, key=lambda one: one[0] != "remove")
