"""Targets that are set aside: they can't take their rows, and the others go on without them."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from typing import Protocol, Self

from floodmark.config.common import CommonOptions
from floodmark.json_data import Json, stored_object
from floodmark.sinks.state.remembered import Remembered

_ASIDE = "aside"
"""The folder of ``state.dir`` for them, below the query's."""


@dataclass(frozen=True)
class TargetAside:
    """A target that is set aside.

    Attributes:
        query: the query's id.
        table: the source's name of the table, ``schema.table``.
        keyed: whether its rows have a key.
        batch: the first micro-batch whose rows the target lacks.
        error: why, and what can be done.
    """

    query: str
    table: str
    keyed: bool
    batch: int
    error: str

    def to_bytes(self) -> bytes:
        """Return the content of the file that remembers it."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the target that ``to_bytes`` described.

        Raises:
            CheckpointError: it described something else.
        """
        data: Json = None
        with contextlib.suppress(ValueError):
            data = json.loads(content)
        found = stored_object(data, "A target that is set aside")
        return cls(
            found.text("query"), found.text("table"), found.flag("keyed"), found.integer("batch"), found.text("error")
        )


def targets_aside(options: CommonOptions, query: str) -> list[TargetAside]:
    """Return the targets of a query that are set aside, as ``state.dir`` has them.

    Args:
        options: the source's options.
        query: the query's id.

    Raises:
        StateDirError: the state directory can't be read.
        CheckpointError: what it has is damaged.
    """
    return [TargetAside.from_bytes(content) for content in Remembered(options, query, _ASIDE).contents()]


class Marks(Protocol):
    """Keeps marks beside the targets themselves, so that none is written again where ``state.dir`` was lost."""

    def put(self, table: str, content: bytes) -> None:
        """Mark a table."""

    def get(self, table: str) -> bytes | None:
        """Return what a table was marked with; None: it isn't marked."""

    def is_removed(self, table: str) -> bool:
        """Return whether the user has taken the table back, as the mark's place asks for."""

    def place(self, table: str) -> str:
        """Return what a user removes to take a table back, without secrets."""


class TargetsAside:
    """The targets of a query that are set aside.

    Args:
        options: the source's options.
        query: the query's id.
        marks: where they are marked.

    Raises:
        StateDirError: the state directory can't be read.
    """

    def __init__(self, options: CommonOptions, query: str, marks: Marks) -> None:
        self._query = query
        self._marks = marks
        self._files = Remembered(options, query, _ASIDE)
        self._known = {one.table: one for one in targets_aside(options, query)}

    @property
    def tables(self) -> frozenset[str]:
        """Their names."""
        return frozenset(self._known)

    def add(self, target: TargetAside) -> None:
        """Set a target aside."""
        self._marks.put(target.table, target.to_bytes())
        self._remember(target)

    def finds(self, table: str) -> bool:
        """Return whether a target that isn't known to be set aside is marked, since ``state.dir`` was lost."""
        mark = self._marks.get(table)
        target = None if mark is None else TargetAside.from_bytes(mark)
        # Another query's mark is no matter of this one: it empties the target, or refuses it.
        if target is None or target.query != self._query:
            return False
        self._remember(target)
        return True

    def removed(self) -> list[TargetAside]:
        """Return those that were removed meanwhile, and so can be made again."""
        return [target for target in self._known.values() if self._marks.is_removed(target.table)]

    def forget(self, table: str) -> None:
        """Set a target aside no more."""
        self._files.remove(table)
        del self._known[table]

    def _remember(self, target: TargetAside) -> None:
        self._files.write(target.table, target.to_bytes())
        self._known[target.table] = target
