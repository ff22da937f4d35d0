"""Where target tables are kept: a folder for each of them below a path or a URI."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from floodmark.errors import ConfigError, describe
from floodmark.redact import shown_uri, without_uri_secrets
from floodmark.sinks.delta.format.log_files import FOLDER
from floodmark.sinks.folders import folder_name

_MARK = "_floodmark/set_aside.json"
"""A table that is set aside has this file in its folder."""

_UNOPENED = re.compile(r"[\[\]^|\\]")
"""Characters with which delta-rs opens no folder."""


def prove_location(location: str) -> None:
    """Check that the libraries can open tables at a place.

    Args:
        location: a path or a URI.

    Raises:
        ConfigError: it has a character with which they can't.
    """
    found = _UNOPENED.search(location)
    if found is not None:
        raise ConfigError(
            f"The mirror's path '{shown_uri(location)}' has the character '{found[0]}', with which no Delta table can "
            "be opened.",
            "Use a path without the characters [ ] ^ | \\",
        )


@dataclass(frozen=True)
class TableFolder:
    """The folder of a table.

    Attributes:
        store: reads and writes its files.
        uri: names it for libraries that open it by themselves.
    """

    store: ObjectStore
    uri: str


def table_folder(location: str, table: str) -> TableFolder:
    """Return the folder of a table, which is named like it.

    Args:
        location: a path, or a URI such as ``s3://bucket/tables``.
        table: the source's name of it, ``schema.table``.

    Raises:
        ConfigError: there is no such place.
    """
    return _opened(location, folder_name(table))


def subfolder(location: str, table: str, name: str) -> TableFolder:
    """Return a folder in a table's folder.

    Args:
        location: a path, or a URI such as ``s3://bucket/tables``.
        table: the source's name of the table, ``schema.table``.
        name: the folder's path in the table's.

    Raises:
        ConfigError: there is no such place.
    """
    return _opened(location, f"{folder_name(table)}/{name}")


def store_of_all(location: str, cleans: bool = False) -> ObjectStore:
    """Return the store whose folders are those of all tables.

    Args:
        location: a path or a URI.
        cleans: whether local folders in it are removed with their last file; elsewhere there are no others.

    Raises:
        ConfigError: there is no such place.
    """
    return _opened(location, "", cleans).store


def _opened(location: str, name: str, cleans: bool = False) -> TableFolder:
    """Return a folder; without a name the one that all tables are in.

    Args:
        cleans: whether local folders in it are removed with their last file; elsewhere there are no others.
    """
    parts = urlsplit(location)
    try:
        if parts.scheme in ("", "file"):
            path = Path(unquote(parts.path) if parts.scheme else location, name)
            path.mkdir(parents=True, exist_ok=True)
            return TableFolder(LocalStore(str(path), automatic_cleanup=cleans), str(path))
        uri = f"{location.rstrip('/')}/{quote(name)}"
        return TableFolder(from_url(uri), uri)
    except (BaseError, OSError, ValueError) as error:
        reason = without_uri_secrets(location, describe(error))
        raise ConfigError(
            f"The mirror's path '{shown_uri(location)}' can't be used: {reason}.",
            "Give a directory where the driver and all executors may read and write, or a URI of an object store such "
            "as s3://, gs://, az:// or abfss://.",
        ) from error


class FolderMarks:
    """Marks in the folders of tables, under a name that ``VACUUM`` leaves alone.

    Its methods raise an ``OSError`` or a ``BaseError`` of obstore if the store can't be used.

    Args:
        location: a path or a URI, below which the folders are.

    Raises:
        ConfigError: there is no such place.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._store = store_of_all(location)

    def put(self, table: str, content: bytes) -> None:
        """Mark a table."""
        obstore.put(self._store, self._path(table), content)

    def get(self, table: str) -> bytes | None:
        """Return what a table was marked with; None: it isn't marked."""
        try:
            return bytes(obstore.get(self._store, self._path(table)).bytes())
        except FileNotFoundError:
            return None

    def is_removed(self, table: str) -> bool:
        """Return whether neither the table nor its mark is there any more."""
        log = obstore.list(self._store, f"{folder_name(table)}/{FOLDER}", chunk_size=1)
        return self.get(table) is None and not any(map(len, log))

    def place(self, table: str) -> str:
        """Return what a user removes to take a table back, without secrets."""
        return shown_uri(table_folder(self._location, table).uri)

    def _path(self, table: str) -> str:
        return f"{folder_name(table)}/{_MARK}"
