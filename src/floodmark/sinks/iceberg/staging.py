"""The folders in which what is written to Iceberg tables is staged."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime, timedelta

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from floodmark.errors import TargetError
from floodmark.sinks.delta.format.log_files import FOLDER

_STAGED = re.compile(r"part-[0-9a-f-]{36}\.parquet")
_AGE = timedelta(days=2)
"""Files of this age are of no micro-batch that is still written."""


def prepare(store: ObjectStore, table: str) -> None:
    """Remove what processes that were killed have left in a table's folder; files that can't be removed stay.

    Args:
        store: the folder.
        table: the table's name, for errors.

    Raises:
        TargetError: the folder is that of a Delta table.
    """
    found = obstore.list_with_delimiter(store)
    if FOLDER in found["common_prefixes"]:
        raise TargetError(
            f"The mirror's path has a Delta table for '{table}', where changes of an Iceberg table are to be staged.",
            "Give the mirror a path of its own.",
        )
    before = datetime.now(UTC) - _AGE
    with contextlib.suppress(BaseError, OSError):
        for one in found["objects"]:
            if _STAGED.fullmatch(one["path"]) and one["last_modified"] < before:
                obstore.delete(store, one["path"])
