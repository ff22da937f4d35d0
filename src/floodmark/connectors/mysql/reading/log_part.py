"""Reading a part of the log for what it says, apart from capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from floodmark.connectors.mysql.binlog.records import Records
from floodmark.connectors.mysql.reading.channel import DumpChannel
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.errors import ConnectError

HEARTBEAT_S = 10.0
SILENCE_S = 60.0


def read_records(
    channel: DumpChannel, receiver: Receiver, wanted: Callable[[], bool]
) -> Iterator[tuple[Records, bool]]:
    """Yield what a server sends, as long as more is wanted.

    Args:
        channel: has been told where to begin.
        receiver: takes what comes; its buffer is used again after each step.
        wanted: returns whether what has been received is not enough.

    Yields:
        Records, and whether their last transaction is whole; a large one comes in pieces.

    Raises:
        ConnectError: the connection was lost, or the log ends, before there was enough.
    """
    while receiver.holding or wanted():
        ended = None
        try:
            if not receiver.receive(channel.read_into, SILENCE_S):
                raise ConnectError(f"Nothing came from the server for {SILENCE_S:.0f} s.")
        except ConnectError as exc:
            # All that there is may have come.
            ended = exc
        waiting = receiver.waiting
        if waiting.cut_count:
            yield receiver.whole(), True
        if ended is not None:
            if wanted():
                raise ended
            return
        if waiting.cut_count:
            receiver.drop(waiting.cut_count)
        elif receiver.empty:
            if waiting.count:
                yield receiver.all_records(), True
            receiver.drop(waiting.count)
        elif receiver.full and waiting.count > 1:
            # A GTID event alone doesn't say what follows.
            yield receiver.all_records(), False
            receiver.drop(waiting.count)
