"""What Spark's Python workers hold for good.

A worker that is used again collects garbage after each task, and looks at all that it has ever imported for that, which
takes tens of milliseconds: as much as the decoding of 100,000 rows.
"""

from __future__ import annotations

import gc
import sys

_known_modules = 0


def keep_modules() -> None:
    """Take all that there is now for living for ever, if modules have been imported since the last call.

    Called when a task begins: the garbage of the last one has just been collected then.
    """
    global _known_modules
    if len(sys.modules) > _known_modules:
        _known_modules = len(sys.modules)
        gc.freeze()
