"""What the server may be told that it can forget.

A confirmation names a number and an index, and the server forgets its messages from the oldest on, as long as theirs
are no higher. These don't ascend with the messages: those of a long transaction have the low number where it began. So
what was delivered last must not be named, as later messages may have lower numbers. But the server can't get past a
message with a higher number than the one named. So the number is named below the highest of all messages that were
delivered: the one that has it stops the server, and all messages before that were delivered, too.

A server that is started again reads on behind the piece of the log that has the highest number confirmed, or one of the
pieces before it, and sends what is committed with a higher number. The checkpoint behind a piece has that number, and
commits in it have higher ones. So only what is below the newest checkpoint that was delivered is confirmed: that
piece is sent again then, by which the query recognizes that nothing is missing.
"""

from __future__ import annotations

import threading
from collections import deque

from floodmark.connectors.oracle.replicator.transactions import Key

_LAST_INDEX = (1 << 63) - 1


class Confirmations:
    """The highest keys of the messages up to positions; used by capture's thread and by the planner's.

    Args:
        known: the highest key of all messages that were delivered before the stream was opened; None: not known.
    """

    def __init__(self, known: Key | None) -> None:
        self._lock = threading.Lock()
        self._reached: deque[tuple[str, Key, int]] = deque()
        self._highest = known
        self._seen: Key | None = None
        self._confirmed: Key | None = None
        self._checkpoint = 0

    def reached(self, position: str, key: Key | None, checkpoint: int = 0) -> None:
        """Record that all messages up to one with a key belong to what is delivered with a position.

        Args:
            position: no lower than those before.
            key: the highest of the messages since the last call; None: none may be confirmed.
            checkpoint: the number of the checkpoint that the message is; 0: it is none.
        """
        if key is None or (self._seen is not None and key <= self._seen and not checkpoint):
            return
        with self._lock:
            self._seen = key if self._seen is None else max(self._seen, key)
            self._highest = key if self._highest is None else max(self._highest, key)
            self._reached.append((position, self._seen, checkpoint))

    @property
    def highest(self) -> Key | None:
        """The highest key of all messages that were ever taken over; None: there is none."""
        return self._highest

    def upto(self, position: str, told: Key | None) -> Key | None:
        """Return the key to be confirmed once a position is delivered; None: nothing more than before.

        Args:
            position: all before it is delivered.
            told: the highest key that the offset of that position has: more must not be confirmed, or whoever goes on
                there takes it for what another client has confirmed.
        """
        with self._lock:
            found: Key | None = None
            while told is not None and self._reached and self._reached[0][0] <= position:
                if self._reached[0][1] > told:
                    break
                _, found, checkpoint = self._reached.popleft()
                self._checkpoint = max(self._checkpoint, checkpoint)
            if found is None or not self._checkpoint:
                return None
            below = min(_below(found), (self._checkpoint - 1, _LAST_INDEX))
            if self._confirmed is not None and below <= self._confirmed:
                return None
            self._confirmed = below
            return below


def _below(key: Key) -> Key:
    """Return a key that is lower than a message's, whether the server counts from 0 or from 1.

    Release 1.9.0 shows each message an index that is 1 higher than the one that it compares.
    """
    scn, index = key
    return (scn, index - 2) if index >= 2 else (scn - 1, _LAST_INDEX)


def holds_all(confirmed: Key, known: Key | None) -> bool:
    """Return whether a server still has all messages that weren't delivered.

    Args:
        confirmed: the highest key that was confirmed, as the server says.
        known: the highest key of all messages that were delivered; None: none was, so nobody was to confirm any.
    """
    if known is None:
        return False
    scn, index = known
    return confirmed < (scn, index - 1)
