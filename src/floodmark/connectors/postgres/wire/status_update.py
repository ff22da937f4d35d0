"""Makes status updates.

Source: PostgreSQL documentation, "Streaming Replication Protocol", Standby status update.
"""

from __future__ import annotations

import struct

from floodmark.connectors.postgres.wire.messages import PG_EPOCH_US

_STATUS = struct.Struct(">cQQQqB")


def status_update(received: int, flushed: int, now_us: int, reply: bool) -> bytes:
    """Return a status update, the content of a CopyData message.

    Args:
        received: the log was received up to this LSN.
        flushed: the server may discard the log up to this LSN; 0 if this reports no such LSN.
        now_us: the time, microseconds since the Unix epoch.
        reply: whether the server is to reply at once.
    """
    return _STATUS.pack(b"r", received, flushed, flushed, now_us - PG_EPOCH_US, int(reply))
