"""The versions of Spark that Floodmark works with.

4.2 is the first whose Python sources receive a start offset and a read limit (``latestOffset(start, limit)``), can
end with ``availableNow`` and can report their lag. Minor versions change how a source is called, so untested ones are
refused.
"""

from __future__ import annotations

import re

from pyspark.version import __version__

from floodmark.errors import ConfigError

SUPPORTED = ((4, 2), (4, 3))
NAMES = " and ".join(".".join(map(str, minor)) for minor in SUPPORTED)


def is_supported(version: str) -> bool:
    """Return whether a version of PySpark is supported."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2]) in SUPPORTED


def require_spark(version: str = __version__) -> None:
    """Check that a version of PySpark is supported.

    Raises:
        ConfigError: it is not.
    """
    if not is_supported(version):
        newest = ".".join(map(str, SUPPORTED[-1]))
        raise ConfigError(
            f"This is Spark {version}; Floodmark works with {NAMES}.",
            f"Install it with: pip install 'pyspark=={newest}.*'",
        )
