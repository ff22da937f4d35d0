"""Checks a stream's options in ``load``, before the source is contacted: what is installed, and ``state.dir``.

Mistakes that would end the query at its first micro-batch are reported here, in one message. No connection is opened,
and nothing is imported that the options don't need.
"""

from __future__ import annotations

import os
import re

from floodmark.config.common import CommonOptions
from floodmark.connectors.registry import require_driver
from floodmark.errors import StateDirError
from floodmark.redact import shown_uri
from floodmark.schema_registry.client import require_client

_LOCAL = ("", "file")
_REMOTE = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
"""Schemes of the remote filesystems that PyArrow opens."""
_SCHEME = re.compile(r"(?:file|s3a?|gs|gcs|hdfs|viewfs|abfss?|dbfs):", re.IGNORECASE)
_EXAMPLES = "Give a whole path, such as /shared/floodmark, or a URI, such as s3://bucket/floodmark."


def preflight(options: CommonOptions) -> None:
    """Check a stream's options against what is installed here.

    Raises:
        ConfigError: a driver, a converter, a snapshotter or a function is missing.
        StateDirError: ``state.dir`` can't be a directory.
    """
    require_driver(options.connector)
    _check_state_dir(options.state_dir)
    if options.snapshot_mode == "custom":
        from floodmark.snapshots.modes import make_snapshotter

        make_snapshotter(options)
    if options.converters:
        from floodmark.codecs.conversions import load_converters

        load_converters(options)
    if options.binary_columns:
        require_client()
    if options.notification_enabled_channels:
        from floodmark.notifications.channels import notification_channels

        notification_channels(options)


def _check_state_dir(uri: str) -> None:
    """Refuse a file, and a filesystem that PyArrow doesn't know; nothing is opened, which may need the network."""
    scheme, found, path = uri.partition("://")
    if not found:
        path, scheme = uri, ""
    if not path.strip("/ ") and path != "/":
        raise StateDirError(f"Option 'state.dir' is '{shown_uri(uri)}', which names no directory.", _EXAMPLES)
    if not found and (path.startswith(("~", "$")) or _SCHEME.match(path)):
        raise StateDirError(
            f"Option 'state.dir' is '{uri}', which would be a directory of that very name: '~', variables and "
            "schemes without '//' are not replaced.",
            _EXAMPLES,
        )
    if scheme in _LOCAL and os.path.exists(path) and not os.path.isdir(path):
        raise StateDirError(f"Option 'state.dir' is '{uri}', which is a file.", "Give a directory.")
    if scheme not in (*_LOCAL, *_REMOTE):
        raise StateDirError(
            f"Option 'state.dir' is on the filesystem '{scheme}', which PyArrow does not open.",
            f"Give a local path, or a URI that begins with {', '.join(f'{name}://' for name in _REMOTE)}.",
        )
