"""Which message was the first that a new query was sent.

What was delivered last is never confirmed, so the server sends it again at each connection. A query that was
delivered nothing yet has no such message, so the first one that it was sent is kept in a file instead.
"""

from __future__ import annotations

from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.oracle.replicator.transactions import Key
from floodmark.connectors.schema_history.files import StateDirFiles

_NAME = "first-message"


class FirstMessage:
    """The file, in ``state.dir``.

    Args:
        options: the source's options.
    """

    def __init__(self, options: OracleOptions) -> None:
        self._files = StateDirFiles(options.state_dir, options.owner)

    def begin(self, position: str) -> None:
        """Record that a new query begins at a position."""
        self._files.write(_NAME, [position.encode()])

    def is_first(self, position: str, key: Key) -> bool:
        """Return whether a query that has come to a position began there, and a message is the first that it was sent.

        The first message that is asked for becomes that one.
        """
        try:
            begun, *known = self._files.read(_NAME)
        except (OSError, ValueError):
            return False
        if begun.decode() != position:
            return False
        line = "{}.{}".format(*key).encode()
        if not known:
            self._files.write(_NAME, [begun, line])
        return not known or known == [line]
