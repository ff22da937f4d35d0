"""ARCHITECTURE.md names files and folders that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "floodmark"
# A path has a slash; a text in backquotes without one is a name, of which there are many kinds.
PATH = re.compile(r"`([a-z<][\w<>/.]*/[\w.]*)`")
TABLES = ("connectors/<database>", ("connectors/postgres", "connectors/mysql"))


def section(title: str) -> str:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def paths() -> list[str]:
    """Return the paths of the table, with each database in place of ``<database>``."""
    pattern, databases = TABLES
    found = dict.fromkeys(PATH.findall(section("To change X, open Y")))
    return [path.replace(pattern, one) for path in found for one in (databases if pattern in path else ("",))]


def test_the_table_names_enough() -> None:
    assert len(paths()) > 30


@pytest.mark.parametrize("path", paths())
def test_what_the_table_names_exists(path: str) -> None:
    assert (SOURCE / path).exists() or (ROOT / path).exists()
