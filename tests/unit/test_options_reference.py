"""The committed option reference."""

from __future__ import annotations

from pathlib import Path

from floodmark.config.load import MODELS, option_model
from floodmark.config.reference import render

PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def test_committed_page_is_up_to_date() -> None:
    command = "python -m floodmark.config.reference docs/options.md"
    assert PAGE.read_text(encoding="utf-8") == render(), f"run: {command}"


def test_every_option_is_on_the_page() -> None:
    page = render()
    for model in map(option_model, MODELS):
        for name in model.names():
            assert f"| `{name}` |" in page
