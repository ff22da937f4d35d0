"""The versions of Spark that Floodmark works with, and what differs between them.

Minor versions change how a source is called, so untested ones are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.version import __version__

from floodmark.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

SUPPORTED = ((4, 0), (4, 1), (4, 2), (4, 3))
NAMES = f"{'.'.join(map(str, SUPPORTED[0]))} to {'.'.join(map(str, SUPPORTED[-1]))}"


def minor_version(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


GIVES_START = minor_version(__version__) >= (4, 2)
"""Whether Spark tells sources where a micro-batch begins, ends them with ``availableNow`` and asks for their lag."""
CHECKPOINT_PACKAGE = "checkpointing." if minor_version(__version__) >= (4, 1) else ""
"""The last part of the package that Spark's checkpoint file managers are in."""
HAS_ARROW_FUNCTIONS = minor_version(__version__) >= (4, 1)
"""Whether functions of columns can be called with Arrow arrays."""
PUSHING = (4, 1)
"""The first version that passes filters to sources of batch reads."""


def is_supported(version: str) -> bool:
    """Return whether a version of PySpark is supported."""
    return minor_version(version) in SUPPORTED


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return Spark's columns as Arrow's, with times in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if GIVES_START:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema, timestamp_utc=True)  # type: ignore[call-arg]


def spark_schema(schema: pa.Schema) -> StructType:
    """Return Arrow's columns as Spark's; times without a time zone stay such."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


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


def require_push_down(version: str = __version__) -> None:
    """Check that Spark passes filters to sources of batch reads.

    Raises:
        ConfigError: this version doesn't.
    """
    if minor_version(version) < PUSHING:
        raise ConfigError(
            f"Option 'batch.filter.pushdown' is on, but Spark {version} doesn't pass filters to Python sources.",
            f"Turn it off, or use Spark {'.'.join(map(str, PUSHING))} or later.",
        )
