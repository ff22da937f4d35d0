"""Clean up after this process, however it ends."""

from __future__ import annotations

import os
import subprocess


class Guard:
    """Runs a shell command once this process has ended, even if it was killed, or once it is released.

    A shell waits for the end of a pipe whose other end only this process holds.

    Args:
        command: what to run; it must do no harm when there is nothing to clean up.
    """

    def __init__(self, command: str) -> None:
        waiting, held = os.pipe()
        self._held: int | None = held
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", f"read -r line; {command}"],
            stdin=waiting,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(waiting)

    def release(self) -> None:
        """Run the command now."""
        if self._held is not None:
            # A line, as the end of the pipe comes only when processes that were forked meanwhile have ended too.
            os.write(self._held, b"\n")
            os.close(self._held)
            self._held = None
            self._shell.wait()
