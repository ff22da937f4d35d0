"""The names of targets: of their folders, and in catalogues."""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[^\w.$-]")
"""Characters that mean something in a path, in a URI or to a filesystem, that readers can't cope with, and ``~``.

What stands for them is not ``%``, as readers decode that more than once.
"""


def folder_name(table: str) -> str:
    """Return the name of a table's folder: its own, with the bytes of unsafe characters as ``~`` and two digits."""
    return _UNSAFE.sub(lambda found: "".join(f"~{byte:02X}" for byte in found[0].encode()), table)


def table_name(table: str) -> str:
    """Return the name of a table in a catalogue: Spark's own takes letters, digits and underscores only."""
    return re.sub(r"\W", "_", folder_name(table), flags=re.ASCII)
