"""Tries whether targets can be written and read, before there are rows to be written. Nothing of it stays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote
from uuid import uuid4

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore

from floodmark.errors import ConfigError, TargetError, describe
from floodmark.redact import shown_uri, without_uri_secrets
from floodmark.sinks.delta.format.log_files import FOLDER
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.delta.stores import TableFolder, store_of_all

_AT_ONCE = 8
"""How many tables are tried at the same time."""


def prove_usable(location: str) -> None:
    """Check that a table can be made where there is none yet.

    Where there are some already, the user that runs the query needn't be allowed to make others.

    Args:
        location: a path or a URI.

    Raises:
        ConfigError: no table can be made there.
    """
    store = store_of_all(location)
    try:
        if not _folders(store):
            _try(store, "")
    except (BaseError, OSError) as error:
        raise ConfigError(
            f"Nothing can be written to the mirror's path '{shown_uri(location)}': {_reason(location, error)}.",
            "Let the driver and all executors read and write there, or choose another path.",
        ) from error


def unusable_tables(location: str) -> dict[str, str]:
    """Return why tables can't be written or read, by the names of their folders.

    Args:
        location: a path or a URI.
    """
    store = store_of_all(location)

    def reason(folder: str) -> str:
        try:
            log = f"{folder}/{FOLDER}"
            if log in _folders(store, folder):
                _try(store, f"{folder}/")
                _try(store, f"{log}/")
                # The file is opened, but its content is not waited for.
                obstore.get(store, max(one["path"] for one in obstore.list(store, log).collect()))
        except (BaseError, OSError) as error:
            return _reason(location, error)
        return ""

    folders = _folders(store)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return {folder: why for folder, why in zip(folders, pool.map(reason, folders), strict=True) if why}


def prove_shared(folder: TableFolder, table: str, parts: Iterable[Part]) -> None:
    """Check that the driver sees what tasks have written, perhaps on other machines.

    An object store is the same everywhere, and is not asked.

    Args:
        folder: the table's.
        table: the table's name, for errors.
        parts: what the tasks have made.

    Raises:
        TargetError: it doesn't.
    """
    if not isinstance(folder.store, LocalStore):
        return
    for file in (file for part in parts for file in part.files):
        try:
            obstore.head(folder.store, unquote(file.path))
        except FileNotFoundError:
            raise TargetError(
                f"A task wrote a file of the target table '{table}' that the driver doesn't find in {folder.uri}: the "
                "mirror's path is another directory where the task ran.",
                "Give a path that the driver and all executors share, such as a network drive or an object store.",
            ) from None


def _folders(store: ObjectStore, folder: str | None = None) -> list[str]:
    return sorted(obstore.list_with_delimiter(store, folder)["common_prefixes"])


def _try(store: ObjectStore, folder: str) -> None:
    path = f"{folder}.floodmark-check-{uuid4()}"
    obstore.put(store, path, b"probe")
    # A mirror works without the right to remove files.
    with contextlib.suppress(BaseError, OSError):
        obstore.delete(store, path)


def _reason(location: str, error: Exception) -> str:
    return without_uri_secrets(location, describe(error)).rstrip(".")
