"""A notebook as a ``Source``."""

from __future__ import annotations

from pathlib import Path

from floodmark.capture.gaps import AcceptedGaps
from floodmark.codecs.conversions import load_converters
from floodmark.connectors.contract.source import Source
from floodmark.errors import ConfigError
from tests.toy.notebook.database.notebook import Notebook
from tests.toy.notebook.options import NotebookOptions
from tests.toy.notebook.source.log import NotebookLog
from tests.toy.notebook.source.read_points import NotebookSnapshots, NotebookWindows
from tests.toy.notebook.source.tables import NotebookTables


class NotebookSource:
    """A ``Source``."""

    def __init__(self, options: NotebookOptions) -> None:
        load_converters(options)
        notebook = Notebook(Path(options.path))
        self.gaps = AcceptedGaps()
        self.snapshots = NotebookSnapshots(options, notebook)
        self.windows = NotebookWindows(self.snapshots)
        self.announcements = None
        self.completeness = None
        self.tables = NotebookTables(options, self.snapshots)
        self.log = NotebookLog(options, notebook, self.snapshots)

    def identity(self) -> dict[str, str]:
        """Return the kind of source; bookmarks have the log's identity."""
        self.snapshots.open().release()
        return {"connector": "notebook"}

    def execute_in_background(self, statement: str) -> None:
        """Raise an error: a notebook runs no statements, and the options that have some are refused."""
        raise ConfigError(f"A notebook runs no statements: {statement}")

    def close(self) -> None:
        """Do nothing: views are released by those that opened them."""


def make_source(options: NotebookOptions) -> Source:
    """Return the planner's side of a source."""
    return NotebookSource(options)
