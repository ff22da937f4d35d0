"""What ``import floodmark`` offers is what the documentation lists, and importing it stays cheap."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import floodmark
from floodmark import errors

PAGE = Path(__file__).parents[2] / "docs" / "python-api.md"


def test_the_page_lists_everything_that_is_public() -> None:
    text = PAGE.read_text(encoding="utf-8")
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    listed = {name for cell in cells for name in re.findall(r"`(\w+)", cell)}
    assert listed | {"FloodmarkError", "__version__"} == set(floodmark.__all__)


@pytest.mark.parametrize("name", floodmark.__all__)
def test_each_public_name_can_be_imported_and_is_documented(name: str) -> None:
    found = getattr(floodmark, name)
    if name != "__version__":
        assert not name.startswith("_")
        assert inspect.getdoc(found)


def test_all_errors_are_public() -> None:
    made = {name for name, found in vars(errors).items() if isinstance(found, type)}
    assert made <= set(floodmark.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'floodmark' has no attribute 'Convertor'"):
        _ = floodmark.Convertor


def test_importing_it_imports_neither_arrow_nor_spark() -> None:
    script = (
        "import sys, floodmark; print([m for m in ('numpy', 'pyarrow', 'pyspark', 'pydantic') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
