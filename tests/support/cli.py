"""The command ``floodmark``."""

from __future__ import annotations

import sys

CLI = (sys.executable, "-c", "from floodmark.cli.main import main; main()")
"""What begins a command line; the installed script may be another Python's."""
