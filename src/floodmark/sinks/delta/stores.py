"""Where target tables are kept: a folder for each of them below a path or a URI."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from floodmark.errors import ConfigError, describe
from floodmark.redact import shown_uri, without_uri_secrets


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
    folder = f"{location.rstrip('/')}/{quote(table, safe=' ')}"
    parts = urlsplit(folder)
    try:
        if parts.scheme in ("", "file"):
            path = Path(parts.path if parts.scheme else folder)
            path.mkdir(parents=True, exist_ok=True)
            return TableFolder(LocalStore(str(path)), str(path))
        return TableFolder(from_url(folder), folder)
    except (BaseError, OSError, ValueError) as error:
        reason = without_uri_secrets(location, describe(error))
        raise ConfigError(
            f"The mirror's path '{shown_uri(location)}' can't be used: {reason}.",
            "Give a directory, or a URI of an object store such as s3://, gs://, az:// or abfss://.",
        ) from error
