"""Names in Spark's SQL: of columns, and of target tables."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from floodmark.errors import ConfigError
from floodmark.redact import shown_uri
from floodmark.sinks.folders import folder_name, table_name

_GLOB = re.compile(r"[*?{}]")
"""Characters that stand for others where Spark reads files."""


def quoted(name: str) -> str:
    """Return one part of a name as SQL has it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a text as a constant of SQL; with the session's default for backslashes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def spark_folder(location: str, table: str) -> str:
    """Return the URI of a table's folder as Spark names it, without escapes.

    Args:
        location: the mirror's path.
        table: the source's name of the table, ``schema.table``.

    Raises:
        ConfigError: Spark can't open folders there.
    """
    found = _GLOB.search(location)
    if found is not None:
        raise ConfigError(
            f"The mirror's path '{shown_uri(location)}' has the character '{found[0]}', with which Spark reads other "
            "folders, too.",
            "Use a path without the characters * ? { }, or format=delta with engine=floodmark.",
        )
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        path = unquote(parts.path) if parts.scheme else location
        return f"file://{Path(path, folder_name(table)).absolute()}"
    return f"{unquote(location).rstrip('/')}/{folder_name(table)}"


def catalog_name(schema: str, table: str) -> str:
    """Return the quoted name that a table has in a catalogue.

    Args:
        schema: the catalogue's schema, such as ``main.shop``.
        table: the source's name of the table, ``schema.table``.
    """
    return ".".join(map(quoted, [*schema.split("."), table_name(table)]))
