"""Checks of stored structures: what the schema history and the headers of segments hold of tables and columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from types import NoneType
from typing import Any, TypeAlias

from floodmark.errors import FloodmarkError, SchemaHistoryError
from floodmark.json_data import Json

MakeError: TypeAlias = Callable[[str], FloodmarkError]
"""Makes the error for content that isn't what was written, from a sentence without its full stop."""

WAYS_OUT = (
    "Start with snapshot.mode=recovery, which reads the structures from the server, if no table was altered since the "
    "query stopped and no snapshot is unfinished (it would stay so). Otherwise start with a new "
    "checkpoint, which takes a new snapshot, and write to a new target."
)

_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, NoneType),
    "int | None": (int, NoneType),
    "bool": (bool,),
}
"""The types that JSON has for an annotation; lists stand for tuples."""


def damaged_history(problem: str) -> SchemaHistoryError:
    """Return the error for a structure in the schema history that isn't what was written.

    Args:
        problem: a sentence without its full stop.
    """
    return SchemaHistoryError(f"The schema history cannot be used: {problem}.", WAYS_OUT)


def stored_kinds(made: type) -> dict[str, tuple[type, ...]]:
    """Return the types that the members of a stored dataclass have in JSON, by name."""
    return {one.name: _KINDS.get(str(one.type), (list,)) for one in fields(made)}


def required_members(made: type) -> tuple[str, ...]:
    """Return the names of the members that are always stored, since they have no default."""
    return tuple(one.name for one in fields(made) if one.default is MISSING)


def stored_members(
    data: Json, what: str, kinds: Mapping[str, tuple[type, ...]], required: tuple[str, ...], error: MakeError
) -> dict[str, Any]:
    """Return the members of a stored dataclass, tuples in place of lists.

    A segment can hold thousands of columns, so only the members that are there are looked at.

    Args:
        data: the object as ``json.loads`` returned it.
        what: names it, such as ``a column``.
        kinds: the result of ``stored_kinds``.
        required: the result of ``required_members``.
        error: makes the error.

    Raises:
        FloodmarkError: a member is missing, not known, or of another type. Items of lists are not checked.
    """
    if not isinstance(data, Mapping):
        raise error(f"{what} is not an object")
    found: dict[str, Any] = dict(data)
    for name, value in data.items():
        if type(value) not in kinds.get(name, ()):
            raise error(f"{what} has an unknown member '{name}', or one of another type")
        if isinstance(value, list):
            found[name] = tuple(value)
    for name in required:
        if name not in found:
            raise error(f"{what} lacks '{name}'")
    return found
