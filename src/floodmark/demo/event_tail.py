"""Reads the events that a query writes to a directory of JSON files, while it is running."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse


class EventTail:
    """Returns the lines of the files of a file sink, each once, as micro-batches are finished.

    A file counts when the sink's log names it: before, it may be half written, and a micro-batch that
    failed leaves files behind that never count.
    """

    def __init__(self, directory: Path) -> None:
        self._log = directory / "_spark_metadata"
        self._batches: set[str] = set()
        self._files: set[str] = set()

    def new(self) -> Iterator[str]:
        """Yield the lines of the files that have been added since the last call."""
        for entry in sorted(self._log.glob("[0-9]*"), key=lambda entry: int(entry.name.split(".")[0])):
            if entry.name not in self._batches:
                self._batches.add(entry.name)
                yield from self._lines(entry)

    def _lines(self, entry: Path) -> Iterator[str]:
        # A version line, then one object for each file; a compacted entry repeats those of the earlier ones.
        for line in entry.read_text(encoding="utf-8").splitlines()[1:]:
            path = json.loads(line)["path"]
            if path not in self._files:
                self._files.add(path)
                yield from Path(unquote(urlparse(path).path)).read_text(encoding="utf-8").split("\n")[:-1]
