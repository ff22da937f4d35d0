"""Removes files that a Delta table doesn't need any more.

delta-rs has a vacuum, too, but it leaves deletion vectors that are replaced, or removes those in use (``full=True``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

import obstore
from obstore.store import ObjectStore

from floodmark.sinks.delta.format.log import DataFile, DeltaLog, State

_REMOVED_AT_ONCE = 1000
_LISTED_AT_ONCE = 1000


def vacuum(store: ObjectStore, log: DeltaLog, state: State, hours: int, at_ms: int) -> int:
    """Remove data files and deletion vectors that no version of a table needs any more; return how many.

    Files without which a version from after that time can't be read stay, and so do young ones, which a commit may be
    about to name, and what is below a folder whose name begins with ``_`` or a dot.

    Args:
        store: the table's folder.
        state: the newest one.
        hours: how long files stay that were replaced.
        at_ms: the time, in milliseconds since the epoch.
    """
    since = at_ms - hours * 3_600_000
    needed = set(_names([*state.files.values(), *log.removed_since(since)]))
    before = dt.datetime.fromtimestamp(since / 1000, dt.UTC)
    unused = [
        str(one["path"])
        for page in obstore.list(store, chunk_size=_LISTED_AT_ONCE)
        for one in page
        if one["last_modified"] < before and _is_ours(str(one["path"])) and _name(str(one["path"])) not in needed
    ]
    for first in range(0, len(unused), _REMOVED_AT_ONCE):
        obstore.delete(store, unused[first : first + _REMOVED_AT_ONCE])
    return len(unused)


def _names(files: Iterable[DataFile]) -> Iterator[str]:
    """Yield the names of data files and of their deletion vectors; each has a UUID, so folders don't matter."""
    for file in files:
        yield _name(unquote(file.path))
        if file.vector is not None and file.vector.offset is not None:
            yield _name(file.vector.path)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_ours(path: str) -> bool:
    """Return whether a path is one that Delta gives to files of a table's rows."""
    name = _name(path)
    data = name.endswith(".parquet") or (name.startswith("deletion_vector_") and name.endswith(".bin"))
    # The folder of a partition may begin so, too.
    return data and not any(part.startswith(("_", ".")) and "=" not in part for part in path.split("/"))
