"""Removes old files of a Delta table's log, without which no version within the log's retention time needs anything.

Format: the Delta protocol, section "Metadata Cleanup"; the properties are ``delta.logRetentionDuration`` and
``delta.enableExpiredLogCleanup``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Set

import obstore
from obstore.store import ObjectStore

from floodmark.sinks.delta.format.log_files import CHECKPOINT, FOLDER

_DEFAULT = "interval 30 days"
_INTERVAL = re.compile(r"(?:interval\s+)?(\d+)\s+(second|minute|hour|day|week)s?", re.IGNORECASE)
_VERSION = re.compile(r"(\d{20})\.(?:json|crc|checkpoint(?:\..+)?\.(?:parquet|json))")
"""The names of what belongs to a version."""
_REMOVED_AT_ONCE = 1000


def retention_of(properties: Mapping[str, str], features: Set[str]) -> dt.timedelta | None:
    """Return how long a table's log is kept; None: for ever, or a time that isn't understood.

    Args:
        features: those that writers of the table must know.
    """
    if "checkpointProtection" in features or properties.get("delta.enableExpiredLogCleanup", "true").lower() != "true":
        return None
    found = _INTERVAL.fullmatch(properties.get("delta.logRetentionDuration", _DEFAULT).strip())
    return None if found is None else dt.timedelta(**{f"{found[2].lower()}s": int(found[1])})


def clean_log(store: ObjectStore, retention: dt.timedelta, now: dt.datetime) -> int:
    """Remove files of versions that are older than the retention time, and return how many.

    The newest checkpoint that is so old stays, with all that follows it, so that every version since can be read.

    Args:
        store: the table's folder.
    """
    before = now - retention
    found = {
        str(one["path"]): (int(name[1]), one["last_modified"])
        for page in obstore.list(store, FOLDER)
        for one in page
        if (name := _VERSION.fullmatch(str(one["path"]).rpartition("/")[2])) and str(one["path"]).count("/") == 1
    }
    old = [
        version
        for path, (version, at) in found.items()
        # One in several parts may lack some of them.
        if (name := CHECKPOINT.fullmatch(path.rpartition("/")[2])) and name[2] is None and at < before
    ]
    if not old:
        return 0
    unused = [path for path, (version, at) in found.items() if version < max(old) and at < before]
    for first in range(0, len(unused), _REMOVED_AT_ONCE):
        obstore.delete(store, unused[first : first + _REMOVED_AT_ONCE])
    return len(unused)
