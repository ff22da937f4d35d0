"""The older versions of PySpark that the Makefile installs beside the one that the tests run on."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark

OLDER = ("4.0.5", "4.1.4", "4.2.1")
HERE = pyspark.__version__


def installed(version: str) -> Path | None:
    """Return the directory that the Makefile installs a version of PySpark in; None for the one that runs here."""
    if version == HERE:
        return None
    path = Path(sys.prefix) / f"spark-{version}"
    assert (path / "pyspark").is_dir(), f"PySpark {version} is missing; install it with: make test-spark-{version}"
    return path
