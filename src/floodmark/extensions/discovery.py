"""Loads what installed packages offer as entry points."""

from __future__ import annotations

import difflib
from importlib.metadata import entry_points
from typing import Generic, Protocol, TypeVar

from floodmark.errors import ConfigError

Plugin = TypeVar("Plugin")


def load_plugin(group: str, name: str | None, option: str, kind: type[Plugin]) -> Plugin:
    """Return a new instance of the class that an installed package offers under a name.

    Args:
        group: the entry points' group.
        name: the entry point's name.
        option: the option that gave the name.
        kind: the protocol whose members it must have.

    Raises:
        ConfigError: there is no entry point of that name, or it cannot be used.
    """
    found = {point.name: point for point in entry_points(group=group)}
    if name is None or name not in found:
        close = difflib.get_close_matches(name or "", list(found), n=1)
        hint = f"Did you mean '{close[0]}'? " if close else ""
        installed = f"Installed: {', '.join(sorted(found))}." if found else "None is installed."
        raise ConfigError(
            f"Option '{option}' has the value '{name}', but no installed package has an entry point of that name in "
            f"the group '{group}'.",
            f"{hint}{installed}",
        )
    point = found[name]
    what = f"Option '{option}' has the value '{name}', but its {kind.__name__} {point.value}"
    try:
        plugin = point.load()()
    except Exception as exc:
        # A foreign module may raise anything when it is imported or called; the user must see what.
        raise ConfigError(f"{what} cannot be made: {type(exc).__name__}: {exc}.", "Correct or reinstall it.") from exc
    if not isinstance(plugin, kind):
        missing = [member for member in _members(kind) if not hasattr(plugin, member)]
        raise ConfigError(
            f"{what} has no {', '.join(missing)}.", f"Derive it from {kind.__module__}.{kind.__name__}, or add them."
        )
    return plugin


def _members(kind: type[object]) -> list[str]:
    protocols = [base for base in kind.__mro__ if base not in (Protocol, Generic, object)]
    own = {name for base in protocols for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return sorted(name for name in own if not name.startswith("_"))
