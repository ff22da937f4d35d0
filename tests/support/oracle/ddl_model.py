"""What tables are after statements, in the plainest form."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ModelColumn:
    """A column, in the words of ``Column``."""

    name: str
    type: str
    length: int | None = None
    scale: int | None = None
    optional: bool = True
    default: str | None = None
    comment: str | None = None


@dataclass
class ModelTable:
    """A table."""

    columns: list[ModelColumn]
    key: list[str] = field(default_factory=list)
    virtual: list[str] = field(default_factory=list)
    comment: str | None = None

    def column(self, name: str) -> ModelColumn:
        """Return a column by its name."""
        return next(one for one in self.columns if one.name == name)

    def set_key(self, names: list[str]) -> None:
        """Make columns the primary key."""
        self.key = names
        for name in names:
            self.column(name).optional = False

    def drop(self, names: list[str]) -> None:
        """Remove columns, and a key that has one of them."""
        self.columns = [one for one in self.columns if one.name not in names]
        if not set(self.key).isdisjoint(names):
            self.key = []

    def rename(self, old: str, new: str) -> None:
        """Give a column another name."""
        self.column(old).name = new
        self.key = [new if one == old else one for one in self.key]
