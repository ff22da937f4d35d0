"""Statements about tables, in files that are scripts."""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "data" / "oracle_ddl"
_END = re.compile(r";\n(?:\n|$)")
FILES = tuple(sorted(path.stem for path in _FOLDER.glob("*.sql")))


def statements(name: str) -> list[str]:
    """Return the statements of a file."""
    text = (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    return [part.strip() for part in _END.split(text) if part.strip()]
