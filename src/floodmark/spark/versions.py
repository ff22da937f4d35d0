"""The versions of Spark that Floodmark works with.

4.2 is the first whose Python sources are told how much to read and where to begin (``latestOffset(start, limit)``), can
end with ``availableNow`` and can report their lag. Minor versions change what a source is called with, so one that
hasn't been tried is refused.
"""

from __future__ import annotations

import re

from pyspark.version import __version__

from floodmark.errors import ConfigError

SUPPORTED = ((4, 2), (4, 3))
NAMES = " and ".join(".".join(map(str, minor)) for minor in SUPPORTED)


def is_supported(version: str) -> bool:
    """Return whether a version of PySpark is one of them."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2]) in SUPPORTED


def require_spark(version: str = __version__) -> None:
    """Prove that PySpark has a version that Floodmark works with.

    Raises:
        ConfigError: it has another one.
    """
    if not is_supported(version):
        newest = ".".join(map(str, SUPPORTED[-1]))
        raise ConfigError(
            f"This is Spark {version}; Floodmark works with {NAMES}.",
            f"Install it with: pip install 'pyspark=={newest}.*'",
        )
