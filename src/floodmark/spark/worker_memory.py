"""Keeps imported modules out of the garbage collection of Spark's Python workers.

A reused worker collects garbage after each task, and scans everything that it has ever imported for that, which takes
tens of milliseconds: as long as decoding 100,000 rows.
"""

from __future__ import annotations

import gc
import sys

_known_modules = 0


def keep_modules() -> None:
    """Exclude all present objects from garbage collection, if modules have been imported since the last call.

    Called when a task begins, since the garbage of the last one has just been collected then.
    """
    global _known_modules
    if len(sys.modules) > _known_modules:
        _known_modules = len(sys.modules)
        gc.freeze()
