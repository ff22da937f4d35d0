"""The check of who imports whom fails when a layer is skipped."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

VIOLATIONS = {
    "a connector imports Spark's side": ("connectors/postgres/capture/stream.py", "floodmark.spark.source"),
    "PostgreSQL's server folder imports its snapshots": (
        "connectors/postgres/server/catalog.py",
        "floodmark.connectors.postgres.snapshot.chunks",
    ),
    "one connector imports another": ("connectors/mysql/connector.py", "floodmark.connectors.postgres.options"),
    "the snapshot engine imports a connector": ("snapshots/initial/engine.py", "floodmark.connectors.mysql.options"),
    "Spark's side names a connector": ("spark/stream/planning/planner.py", "floodmark.connectors.postgres.connector"),
    "the binlog's format knows of statements": (
        "connectors/mysql/binlog/queries.py",
        "floodmark.connectors.mysql.ddl.tokens",
    ),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("layers")
    shutil.copytree(ROOT / "src" / "floodmark", root / "floodmark", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def check(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the check on a copy of the package, as ``make check`` does on the package."""
    script = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    command = [sys.executable, "-c", script, "--no-logo", "--no-cache"]
    return subprocess.run(command, cwd=root, env={"PYTHONPATH": str(root)}, capture_output=True, text=True, check=False)


def test_the_layers_are_kept(package: Path) -> None:
    outcome = check(package)
    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize(("module", "imported"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_what_breaks_a_layer_is_found(package: Path, module: str, imported: str) -> None:
    path = package / "floodmark" / module
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}\nimport {imported}\n", encoding="utf-8")
    try:
        outcome = check(package)
    finally:
        path.write_text(text, encoding="utf-8")
    assert outcome.returncode == 1
    assert imported in " ".join(outcome.stdout.split())
    assert ".".join(["floodmark", *Path(module).with_suffix("").parts]) in outcome.stdout


def test_no_folder_has_more_than_fifteen_modules() -> None:
    folders = [path for path in (ROOT / "src").rglob("*") if path.is_dir() and path.name != "__pycache__"]
    sizes = {str(path): len([module for module in path.glob("*.py") if module.stem != "__init__"]) for path in folders}
    assert {path: size for path, size in sizes.items() if size > 15} == {}
