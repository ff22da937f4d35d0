"""The quick sessions of the tests never change what a program prints."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import quick_start


def test_an_archive_is_for_the_jars_it_was_made_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark that is installed again has files of the same names and sizes, yet a JVM refuses the archive of the old."""
    jar = tmp_path / "jars" / "spark.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"jar")
    monkeypatch.setattr(quick_start, "INSTALLED", tmp_path)
    before = quick_start._archive(tmp_path)
    assert quick_start._archive(tmp_path) == before
    os.utime(jar, ns=(jar.stat().st_atime_ns, jar.stat().st_mtime_ns + 1))
    assert quick_start._archive(tmp_path) != before


def test_warnings_of_a_jvm_are_not_what_the_program_prints(tmp_path: Path) -> None:
    """A JVM with another class path refuses the archive, and says so."""
    quick_start.prepare()
    options = os.environ[quick_start.OPTIONS].split()
    ended = subprocess.run(["java", *options, "-cp", str(tmp_path), "--version"], capture_output=True, text=True)
    assert ended.returncode == 0
    assert "shared archive" in ended.stderr
    assert "shared archive" not in ended.stdout
