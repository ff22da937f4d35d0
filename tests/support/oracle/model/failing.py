"""What the server is to answer with errors."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.oracle.errors import OracleError

CONNECTING, LOGGING_IN = "(connecting)", "(logging in)"
"""What isn't a statement, but can fail, too."""


@dataclass
class Failing:
    """An error.

    Attributes:
        code: its number.
        at: a part of the statements that fail; ``CONNECTING`` or ``LOGGING_IN``.
        times: how often; -1: for ever.
        met: how often it was met.
    """

    code: int
    at: str
    times: int = -1
    met: int = 0

    def meet(self, what: str) -> None:
        """Fail if a statement is to.

        Args:
            what: the statement.

        Raises:
            OracleError: it fails.
        """
        if self.at in what and self.met != self.times:
            self.met += 1
            raise OracleError(self.code, text="the stand-in was told to fail")
