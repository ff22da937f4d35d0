"""Runs a command while the machine has several times the work that it can do.

``python -m tests.support.overload FACTOR COMMAND …`` keeps ``FACTOR - 1`` processes a core busy beside the command, so
that what runs beside them gets its share of a machine that is ``FACTOR`` times overloaded. Limits on time in tests are
multiplied by twice that (:mod:`.patience`). It ends with the command's exit code.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

from tests.support.patience import VARIABLE


def burn(parent: int) -> None:
    """Compute until the process that asked for it has ended."""
    number = 1
    while os.getppid() == parent:
        for _ in range(100_000):
            number = number * 1103515245 % 2147483647


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    if len(arguments) < 2 or not arguments[0].isdigit() or int(arguments[0]) < 1:
        print("usage: python -m tests.support.overload FACTOR COMMAND [ARGUMENT …]", file=sys.stderr)
        return 2
    count = (int(arguments[0]) - 1) * (os.cpu_count() or 1)
    burning = [multiprocessing.Process(target=burn, args=(os.getpid(),), daemon=True) for _ in range(count)]
    for process in burning:
        process.start()
    try:
        patient = {**os.environ, VARIABLE: str(2 * int(arguments[0]))}
        return subprocess.run(arguments[1:], check=False, env=patient).returncode
    finally:
        for process in burning:
            process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
