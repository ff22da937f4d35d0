"""Topic names."""

from __future__ import annotations

import re

_ILLEGAL = re.compile(r"[^A-Za-z0-9._\-]")


def table_topic(prefix: str, schema: str, table: str, delimiter: str = ".") -> str:
    """Return a table's topic, ``prefix.schema.table``; characters that Kafka doesn't allow become ``_``."""
    return _ILLEGAL.sub("_", delimiter.join((prefix, schema, table)))
