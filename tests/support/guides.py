"""The examples of the guides in ``docs/``, which tests run as they are written."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def example(page: str, language: str, folder: Path) -> str:
    """Return the first example of a language on a page, with its directories below another one."""
    found = re.search(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1].replace("/lake", f"{folder}/lake").replace("/shared", f"{folder}/shared")
