"""Users without rights: root may write and read everywhere, so tests that root runs give that up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
_RIGHTS = "-dac_override,-dac_read_search"
"""Root's capabilities to write and read what modes don't allow."""


def refused() -> list[str]:
    """Return what begins a command that modes of files apply to."""
    return ["setpriv", "--bounding-set", _RIGHTS, "--inh-caps", _RIGHTS] if os.geteuid() == 0 else []


@contextmanager
def as_nobody() -> Iterator[None]:
    """Act as a user that modes of files apply to, in all threads of this process, which may not start others."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@contextmanager
def mode_of(path: Path, mode: int) -> Iterator[None]:
    """Give a file or directory a mode within the block."""
    known = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(known)
