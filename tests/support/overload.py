"""Runs tests while the machine has several times the work that it can do.

``python -m tests.support.overload FACTOR COMMAND …`` runs a command of pytest in which ``--numprocesses auto`` stands
for ``FACTOR`` test processes a core: each with its servers and its Spark, so that they compete for memory, disks and
locks as well as for processors. Limits on time in tests are multiplied by twice that (:mod:`.patience`). At the end it
says how much work the machine had (Linux's load average: processes that run, or would) and exits with the command's
exit code.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.patience import VARIABLE

SAMPLE_S = 15


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    if len(arguments) < 2 or not arguments[0].isdigit() or int(arguments[0]) < 1:
        print("usage: python -m tests.support.overload FACTOR COMMAND [ARGUMENT …]", file=sys.stderr)
        return 2
    factor, cores = int(arguments[0]), os.cpu_count() or 1
    environment = {VARIABLE: str(2 * factor), "PYTEST_XDIST_AUTO_NUM_WORKERS": str(factor * cores)}
    loads = []
    with subprocess.Popen(arguments[1:], env={**os.environ, **environment}) as process:
        while True:
            try:
                code = process.wait(SAMPLE_S)
                break
            except subprocess.TimeoutExpired:
                loads.append(os.getloadavg()[0] / cores)
    if loads:
        loads.sort()
        print(
            f"work for each of {cores} cores: {sum(loads) / len(loads):.1f} times what it can do on average, "
            f"{loads[len(loads) // 10]:.1f} or more for nine tenths of the time"
        )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
