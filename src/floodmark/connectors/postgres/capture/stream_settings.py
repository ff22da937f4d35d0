"""Formats the options of START_REPLICATION.

Source: PostgreSQL documentation, "Logical Streaming Replication Parameters".
"""

from __future__ import annotations

from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import literal, quote

MESSAGES_SINCE = 14


def stream_settings(options: PostgresOptions, version: int) -> str:
    """Return the options in the command's syntax.

    Args:
        options: the source's options.
        version: the server's major version.
    """
    settings = {**options.stream_params(), "proto_version": "1", "publication_names": quote(options.publication_name)}
    if version >= MESSAGES_SINCE:
        settings["messages"] = "true"
    return ", ".join(f"{name} {literal(value)}" for name, value in settings.items())
