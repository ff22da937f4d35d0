"""JSON data, and the checks of data that was stored or received."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from floodmark.errors import CheckpointError, FloodmarkError

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""What ``json.loads`` returns and ``json.dumps`` takes."""

Value = TypeVar("Value")


class JsonObject:
    """A JSON object whose members are checked when they are read.

    Args:
        content: the object as ``json.loads`` returned it.
        what: names it at the beginning of a sentence, such as ``A gap``.
        error: makes the error for content that isn't what was written, from a sentence without its full stop.

    Raises:
        FloodmarkError: the content is no object. The methods raise it for a member that is missing or of another type.
    """

    def __init__(self, content: Json, what: str, error: Callable[[str], FloodmarkError]) -> None:
        if not isinstance(content, Mapping):
            raise error(f"{what} is not an object")
        self._content: Mapping[str, Json] = content
        self._what = what
        self._error = error

    def __contains__(self, name: str) -> bool:
        return name in self._content

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def wrong(self, name: str, expected: str) -> FloodmarkError:
        """Return the error for a member, from what it should be: ``a text``."""
        return self._error(f"{self._what} has no '{name}' that is {expected}")

    def content(self) -> dict[str, Json]:
        """Return the object as it is."""
        return dict(self._content)

    def value(self, name: str) -> Json:
        """Return a member as it is; None if it is missing."""
        return self._content.get(name)

    def text(self, name: str) -> str:
        """Return a text."""
        return self._checked(name, str, "a text")

    def optional_text(self, name: str) -> str | None:
        """Return a text; None if it is missing or null."""
        return None if self.value(name) is None else self.text(name)

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a whole number; ``default`` stands for one that is missing or null."""
        value = self.value(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool):
            raise self.wrong(name, "a whole number")
        return self._checked(name, int, "a whole number")

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return a truth value; ``default`` stands for one that is missing or null."""
        if self.value(name) is None and default is not None:
            return default
        return self._checked(name, bool, "true or false")

    def number(self, name: str) -> float:
        """Return a number."""
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(name, "a number")
        return value

    def items(self, name: str) -> Sequence[Json]:
        """Return a list."""
        return self._checked(name, list, "a list")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(self._all(name, str, "a list of texts"))

    def integers(self, name: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        return tuple(self._all(name, int, "a list of whole numbers"))

    def choice(self, name: str, choices: Sequence[Value]) -> Value:
        """Return a member that is one of several values."""
        value = self.value(name)
        for choice in choices:
            if value == choice:
                return choice
        raise self.wrong(name, f"one of {', '.join(map(repr, choices))}")

    def optional_texts(self, name: str) -> list[str] | None:
        """Return a list of texts; None if it is missing or null."""
        return None if self.value(name) is None else list(self.texts(name))

    def text_by_name(self, name: str) -> dict[str, str]:
        """Return an object whose members are texts."""
        members = self.member(name)
        return {key: members.text(key) for key in members}

    def member(self, name: str) -> JsonObject:
        """Return a member that is an object itself."""
        return JsonObject(self.value(name), f"{self._what}: '{name}'", self._error)

    def optional_member(self, name: str) -> JsonObject | None:
        """Return a member that is an object itself; None if it is missing, null or empty."""
        return self.member(name) if self.value(name) else None

    def members(self, name: str) -> list[JsonObject]:
        """Return a list of objects."""
        return [JsonObject(item, f"{self._what}: an item of '{name}'", self._error) for item in self.items(name)]

    def _checked(self, name: str, kind: type[Value], expected: str) -> Value:
        value = self.value(name)
        if not isinstance(value, kind):
            raise self.wrong(name, expected)
        return value

    def _all(self, name: str, kind: type[Value], expected: str) -> list[Value]:
        found = []
        for item in self.items(name):
            if not isinstance(item, kind) or isinstance(item, bool):
                raise self.wrong(name, expected)
            found.append(item)
        return found


def stored_object(content: Json, what: str) -> JsonObject:
    """Return an object that a checkpoint holds.

    Args:
        content: the object as ``json.loads`` returned it.
        what: names it at the beginning of a sentence.

    Raises:
        CheckpointError: it is no object; the methods raise it for a member that is not what was written.
    """
    return JsonObject(content, what, damaged_checkpoint)


def damaged_checkpoint(problem: str) -> CheckpointError:
    """Return the error for a checkpoint that holds something other than what was written.

    Args:
        problem: a sentence without its full stop.
    """
    return CheckpointError(
        f"The checkpoint is damaged: {problem}.",
        "Restore the checkpoint's directory from a copy, or start the query with a new checkpoint, which takes a new "
        "snapshot.",
    )
