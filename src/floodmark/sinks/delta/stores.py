"""Where target tables are kept: a folder for each of them below a path or a URI."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from floodmark.errors import ConfigError, describe
from floodmark.redact import shown_uri, without_uri_secrets

_UNSAFE = re.compile(r"[^\w.$-]")
"""Characters that mean something in a path, in a URI or to a filesystem, that readers can't cope with, and ``~``.

What stands for them is not ``%``, as readers decode that more than once.
"""


def folder_name(table: str) -> str:
    """Return the name of a table's folder: its own, with the bytes of unsafe characters as ``~`` and two digits."""
    return _UNSAFE.sub(lambda found: "".join(f"~{byte:02X}" for byte in found[0].encode()), table)


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
    name = folder_name(table)
    parts = urlsplit(location)
    try:
        if parts.scheme in ("", "file"):
            path = Path(unquote(parts.path) if parts.scheme else location, name)
            path.mkdir(parents=True, exist_ok=True)
            return TableFolder(LocalStore(str(path)), str(path))
        uri = f"{location.rstrip('/')}/{quote(name)}"
        return TableFolder(from_url(uri), uri)
    except (BaseError, OSError, ValueError) as error:
        reason = without_uri_secrets(location, describe(error))
        raise ConfigError(
            f"The mirror's path '{shown_uri(location)}' can't be used: {reason}.",
            "Give a directory, or a URI of an object store such as s3://, gs://, az:// or abfss://.",
        ) from error
