"""Calls classes of Debezium's Oracle connector, in a JVM."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.conformance.debezium.debezium import compiled, libraries

_SOURCE = Path(__file__).with_name("DebeziumClasses.java").resolve()


def called(calls: Iterable[list[Any]]) -> list[Any]:
    """Return the results of calls; ``DebeziumClasses.java`` says which there are."""
    path = f"{compiled(_SOURCE)}{os.pathsep}{libraries()}{os.sep}*"
    given = "\n".join(map(json.dumps, calls))
    done = subprocess.run(["java", "-cp", path, _SOURCE.stem], input=given.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Debezium's classes failed:\n{done.stderr.decode()[-2000:]}")
    # Not splitlines: a text may have other line ends.
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]
