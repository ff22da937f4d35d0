"""Installing an example package as a user would."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def install(example: Path, base: Path) -> Path:
    """Install a package from its source and return the directory that holds it.

    Args:
        example: the source.
        base: a directory to work in.
    """
    shutil.copytree(example, base / "source")
    target = base / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--target", str(target), str(base / "source")], check=True)
    return target
