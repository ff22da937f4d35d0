"""Registers the notebook connector as an installed package would, without installing anything."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from floodmark.connectors import registry

INSTALLED = Path(__file__).parent / "installed"
"""A directory as ``pip install --target`` makes it, but for the package itself, which is imported from here."""
ROOT = Path(__file__).parents[2]
PATHS = "PYTHONPATH"


@contextmanager
def registered() -> Iterator[None]:
    """Let this process, and the Python processes that it starts, find the connector."""
    with pytest.MonkeyPatch.context() as patch:
        found = [str(INSTALLED), str(ROOT)]
        patch.syspath_prepend(INSTALLED)
        patch.setenv(PATHS, os.pathsep.join([*found, *filter(None, [os.environ.get(PATHS)])]))
        _forget()
        try:
            yield
        finally:
            patch.undo()
            _forget()


def _forget() -> None:
    """Forget which packages are installed: processes look that up once."""
    importlib.invalidate_caches()
    registry.forget_installed()
