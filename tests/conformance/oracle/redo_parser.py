"""Parses statements of SQL_REDO with Debezium's own parser, in a JVM."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.debezium.debezium import compiled, libraries

_SOURCE = Path(__file__).with_name("RedoParser.java")
Values = list[str | None]


def debezium_values(columns: Sequence[str], statements: Sequence[str]) -> list[tuple[Values, Values] | None]:
    """Return each statement's values before and after, in the order of the columns; None if it isn't parsed.

    Args:
        columns: the names of the table's columns.
        statements: those of SQL_REDO.
    """
    lines = _run(1, columns, statements)
    return [None if found is None else (found[0], found[1]) for found in map(json.loads, lines)]


def debezium_seconds(columns: Sequence[str], statements: Sequence[str], times: int) -> list[float]:
    """Return the CPU seconds of parsing all statements, for each of so many times one after the other."""
    return list(map(float, _run(times, columns, statements)))


def _run(times: int, columns: Sequence[str], statements: Sequence[str]) -> list[str]:
    path = f"{compiled(_SOURCE)}{os.pathsep}{libraries()}{os.sep}*"
    command = ["java", "-cp", path, "RedoParser", str(times), *columns]
    given = "\n".join(map(json.dumps, statements))
    done = subprocess.run(command, input=given.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Debezium's parser failed:\n{done.stderr.decode()[-2000:]}")
    # Not splitlines: a value may have other line ends.
    return [line for line in done.stdout.decode().split("\n") if line]
