"""The committed option reference."""

from __future__ import annotations

from pathlib import Path

from floodmark.cli.pages.options import render
from floodmark.connectors.registry import CONNECTORS

PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def test_committed_page_is_up_to_date() -> None:
    command = "python -m floodmark.cli.pages.options docs/options.md"
    assert PAGE.read_text(encoding="utf-8") == render(), f"run: {command}"


def test_every_option_is_on_the_page() -> None:
    page = render()
    for model in (spec.option_model for spec in CONNECTORS.values()):
        for name in model.names():
            assert f"| `{name}` |" in page
