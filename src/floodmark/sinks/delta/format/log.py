"""The transaction log of a Delta table: the table's state at a version, and commits.

Format: the Delta protocol, sections "Delta Log Entries", "Checkpoints" and "Actions"
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import ObjectStore

from floodmark.errors import TargetChangedError
from floodmark.json_data import Json, JsonObject
from floodmark.sinks.delta.format.log_files import (
    COMMIT,
    FOLDER,
    Action,
    actions_of_commit,
    commit_path,
    newest_checkpoint,
    stored_actions,
)
from floodmark.sinks.delta.format.vectors import Descriptor, damaged

_STORED = ("protocol", "metaData", "add", "txn", "sidecar")
"""Columns of a checkpoint that matter for a writer."""
_REMOVED = ("remove.path", "remove.deletionTimestamp", "remove.deletionVector", "sidecar")
"""Columns of a checkpoint that tell which files were removed."""
_LISTED_EVERY_S = 600.0
"""How long the log's files need not be listed again; nothing that younger versions need is cleaned up meanwhile."""

Commit = Sequence[tuple[str, Json]]
"""The kinds and contents of a commit's actions."""


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

    def after(self, actions: Iterable[Action]) -> State:
        """Return the state after the next commit, which has these actions."""
        return replace(_applied(self, actions), version=self.version + 1)


NO_TABLE = State(-1, {}, {}, {}, {})


class DeltaLog:
    """Reads and writes the log of a table.

    Args:
        store: the table's folder.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._listed = (-1, 0.0)

    def state(self, known: State = NO_TABLE) -> State:
        """Return the table's newest state.

        Args:
            known: an earlier state, of which only later commits are read.

        Raises:
            TargetChangedError: commits between the known state and the newest one are gone.
            TargetDamagedError: the log lacks a commit, or holds something else.
        """
        version, at = self._listed
        began = time.monotonic()
        if 0 <= version <= known.version and began - at < _LISTED_EVERY_S:
            return self._followed(known)
        names = self._names(known.version)
        commits = sorted(int(found[1]) for name in names if (found := COMMIT.fullmatch(name)))
        if known.version < 0:
            known = self._checkpoint(names)
        elif known.version not in commits:
            raise _gone(known.version)
        later = [version for version in commits if version > known.version]
        if later and later[0] != known.version + 1:
            raise TargetChangedError(
                f"The Delta log goes on with version {later[0]}, but this query knows version {known.version}.",
                "The table was removed, or its log was cleaned up meanwhile. Start the query again.",
            )
        if later != list(range(known.version + 1, known.version + 1 + len(later))):
            raise damaged(f"The Delta log lacks a version between {later[0]} and {later[-1]}")
        for _ in later:
            known = self._next(known)
        self._listed = (known.version, began)
        return known

    def _followed(self, known: State) -> State:
        """Return the newest state without a list of the log's files, which takes long where there are many."""
        state = known
        with contextlib.suppress(FileNotFoundError):
            while True:
                state = self._next(state)
        # After the others: what cleans up a log removes the oldest versions first.
        try:
            obstore.head(self._store, commit_path(known.version))
        except FileNotFoundError:
            raise _gone(known.version) from None
        return state

    def _next(self, state: State) -> State:
        return state.after(actions_of_commit(self._store, state.version + 1))

    def removed_since(self, at_ms: int) -> Iterator[DataFile]:
        """Yield the files that were removed since a time, each with its deletion vector; some may be there again.

        The log forgets them after the table's ``delta.deletedFileRetentionDuration``, a week by default.

        Args:
            at_ms: in milliseconds since the epoch.
        """
        names = self._names(-1)
        version, paths = newest_checkpoint(names)
        commits = sorted(int(found[1]) for name in names if (found := COMMIT.fullmatch(name)))
        stored = (action for path in paths for action in stored_actions(self._store, path, _REMOVED))
        later = (action for number in commits if number > version for action in actions_of_commit(self._store, number))
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
        for commit in self._back_to(state, application):
            if _is_by(commit, application):
                return next((_member(content, "userMetadata") for kind, content in commit if kind == "commitInfo"), "")
        return ""

    def is_undone(self, state: State, application: str) -> bool:
        """Return whether the table was restored to an earlier version since an application's last commit.

        Unlike the state it tells so even if the log has got a checkpoint since, as far as the commits before it are
        still there.
        """
        return any(map(_restores, chain.from_iterable(self._back_to(state, application))))

    def _back_to(self, state: State, application: str) -> Iterator[Commit]:
        """Yield the commits, the newest first, back to an application's last one, as far as the log has them."""
        for version in range(state.version, -1, -1):
            try:
                commit = list(_contents(actions_of_commit(self._store, version)))
            except FileNotFoundError:
                return
            yield commit
            if _is_by(commit, application):
                return

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
        version, paths = newest_checkpoint(names)
        actions = [action for path in paths for action in stored_actions(self._store, path, _STORED)]
        return replace(_applied(NO_TABLE, actions), version=version) if paths else NO_TABLE


def _gone(version: int) -> TargetChangedError:
    return TargetChangedError(
        f"The Delta log has no version {version} any more, which this query knows.",
        "The table was removed, or restored from a copy. Start the query again.",
    )


def _is_by(commit: Commit, application: str) -> bool:
    return any(kind == "txn" and _member(content, "appId") == application for kind, content in commit)


def _restores(action: tuple[str, Json]) -> bool:
    kind, content = action
    return kind == "commitInfo" and _member(content, "operation") == "RESTORE"


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


def _applied(state: State, actions: Iterable[Action]) -> State:
    protocol, metadata = state.protocol, state.metadata
    files, transactions, undone = dict(state.files), dict(state.transactions), set(state.undone)
    for kind, content in _contents(actions):
        if kind == "commitInfo":
            if _restores((kind, content)):
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
