"""Reads a part of the log outside of capture."""

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
    """Yield the records that a server sends, as long as more are wanted.

    Args:
        channel: has been started.
        receiver: receives the records; its buffer is reused after each step.
        wanted: returns whether more records are needed.

    Yields:
        Records, and whether their last transaction is complete; a large one comes in pieces.

    Raises:
        ConnectError: the connection was lost, or the log ended, while more records were needed.
    """
    while receiver.holding or wanted():
        ended = None
        try:
            if not receiver.receive(channel.read_into, SILENCE_S):
                raise ConnectError(f"Nothing came from the server for {SILENCE_S:.0f} s.")
        except ConnectError as exc:
            # Not an error if the records that were received are all that are needed.
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
            # A GTID event alone doesn't show what kind of transaction follows.
            yield receiver.all_records(), False
            receiver.drop(waiting.count)
