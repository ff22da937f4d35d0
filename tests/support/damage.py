"""Damaging files in ``state.dir`` at random."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

WAYS = ("flip", "flip", "cut", "empty", "lose", "swap")


class Saboteur:
    """Damages one file at a time.

    Args:
        chance: decides which file, and how.
        directory: ``state.dir``.

    Attributes:
        done: what was damaged, and how, the last one at the end.
    """

    def __init__(self, chance: random.Random, directory: Path) -> None:
        self._chance = chance
        self._directory = directory
        self.done: list[str] = []

    def strike(self) -> None:
        """Damage a file, if there is any; files come and go meanwhile."""
        with contextlib.suppress(FileNotFoundError):
            files = [path for path in self._directory.rglob("*") if path.is_file()]
            if files:
                # Each directory as often as the others, however many files it has.
                parent = self._chance.choice(sorted({path.parent for path in files}))
                self._damage(self._chance.choice(sorted(path for path in files if path.parent == parent)), files)

    def _damage(self, path: Path, files: list[Path]) -> None:
        way = self._chance.choice(WAYS)
        content = path.read_bytes()
        at = self._chance.randrange(len(content)) if content else 0
        if way == "lose":
            path.unlink()
        elif way == "swap":
            other = self._chance.choice([one for one in files if one.suffix == path.suffix])
            theirs = other.read_bytes()
            other.write_bytes(content)
            path.write_bytes(theirs)
        elif way == "flip" and content:
            path.write_bytes(content[:at] + bytes([content[at] ^ 1 << self._chance.randrange(8)]) + content[at + 1 :])
        else:
            path.write_bytes(content[:at] if way == "cut" else b"")
        self.done.append(f"{way} {path.relative_to(self._directory)} at {at} of {len(content)}")
