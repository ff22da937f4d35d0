"""The option ``database.hostname``: a host alone, without what other options hold."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_PORT = re.compile(r"[^:]*:\d+")
"""A host and a port; an IPv6 address has more colons."""


def _check(value: str) -> str:
    host = value.strip()
    if not host:
        raise ValueError("it must be the name or address of a host")
    if "@" in host or ("/" in host[1:] and not host.startswith("/")):
        raise ValueError(
            "it must be the name or address of a host alone; port, user, password and database have options of "
            "their own"
        )
    if _PORT.fullmatch(host):
        raise ValueError("it must be the name or address of a host alone; the port is the option 'database.port'")
    return host


Host = Annotated[str, AfterValidator(_check)]
"""The name or address of a host, or for PostgreSQL the directory of a socket."""
