"""Reports the end of a notebook's log and the pipeline's lag behind it."""

from __future__ import annotations

from pathlib import Path

from floodmark.connectors.contract.log_status import LogStatus
from floodmark.errors import FloodmarkError
from tests.toy.notebook.continuity import Continuity
from tests.toy.notebook.database.notebook import Notebook
from tests.toy.notebook.options import NotebookOptions
from tests.toy.notebook.position import parse
from tests.toy.notebook.source.read_points import NotebookView

_UNKNOWN = "a file does not show whether it is read"


def log_status(options: NotebookOptions, position: str) -> LogStatus:
    """Return the end of the log, the pipeline's lag, and any problem with its position.

    Args:
        options: the source's options.
        position: the pipeline's log position; empty for a new pipeline.
    """
    notebook = Notebook(Path(options.path))
    name = str(notebook.log.path)
    try:
        with NotebookView(notebook, options.snapshot_chunk_bytes) as view:
            end = view.position
    except FloodmarkError as exc:
        return LogStatus(name, problem=exc.what)
    if not position:
        return LogStatus(name, end=end, absent=_UNKNOWN)
    problem = ""
    try:
        Continuity(notebook).prove(position)
    except FloodmarkError as exc:
        problem = exc.what
    lag = notebook.log.size() - notebook.log.offset_of(parse(position)[0])
    return LogStatus(name, end=end, lag_bytes=lag, absent=_UNKNOWN, problem=problem)
