"""What Floodmark's modules log, as data."""

from __future__ import annotations

from typing import Any

import pytest


class Recorder:
    """Stands in for the loggers of some modules.

    Attributes:
        lines: level, event and fields of each line, oldest first.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def listen(self, patch: pytest.MonkeyPatch, *modules: str) -> None:
        """Take the place of the modules' loggers until the patch is undone."""
        for module in modules:
            patch.setattr(f"{module}.log", self)

    def info(self, event: str, **fields: Any) -> None:
        self.lines.append(("info", event, fields))

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append(("warning", event, fields))

    def of(self, event: str) -> list[dict[str, Any]]:
        """Return the fields of the lines with an event."""
        return [fields for _, found, fields in self.lines if found == event]
