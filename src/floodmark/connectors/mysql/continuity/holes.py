"""Verifies that another MariaDB server's binlog holds all transactions after a position.

MySQL reports the transactions that it has executed but no longer has in its binlog (``gtid_purged``). MariaDB doesn't:
a replica that was made from a copy, or that ran with ``log_slave_updates`` off for a time, sends what it has, as if
nothing were missing in between. The sequence numbers show it: within a domain they are consecutive.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

import numpy as np

from floodmark.connectors.mysql.binlog.event_types import AT_BODY, MARIADB_GTID
from floodmark.connectors.mysql.binlog.inflation import Scratch
from floodmark.connectors.mysql.binlog.packets import le_view
from floodmark.connectors.mysql.binlog.records import Records
from floodmark.connectors.mysql.gtid import MariadbGtids
from floodmark.connectors.mysql.reading.channel import DumpChannel, DumpStart
from floodmark.connectors.mysql.reading.log_part import HEARTBEAT_S, read_records
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.connectors.mysql.server.binlogs import WAYS_OUT
from floodmark.connectors.mysql.server.connection import Connection
from floodmark.errors import LogGoneError
from floodmark.logger import get_logger

log = get_logger(__name__)

_AT_DOMAIN = AT_BODY + 8
_BUFFER_BYTES = 4 << 20


def refuse_holes(conn: Connection, begin: MariadbGtids, logged: MariadbGtids, scratch: Scratch) -> None:
    """Read a log, and refuse it if it lacks transactions.

    Args:
        conn: an ordinary connection; it is closed at the end.
        begin: the transactions after which to start reading.
        logged: the transactions up to which to read.
        scratch: opens unnamed temporary files, for large transactions.

    Raises:
        LogGoneError: transactions are missing.
        ConnectError: the connection was lost.
    """
    last, ends = begin.domains(), logged.domains()
    receiver = Receiver(_BUFFER_BYTES, 0, 0, 0, None, None, scratch)
    # With server id 0 the server ends the stream at the log's end.
    channel = DumpChannel(conn, "mariadb", 0, HEARTBEAT_S)
    with closing(channel), closing(receiver):
        if not _missing(last, ends):
            return
        log.info("transactions_are_counted", begin=str(begin), upto=str(logged))
        channel.start(DumpStart(gtids=str(begin.positions())))
        for records, _ in read_records(channel, receiver, lambda: _missing(last, ends)):
            _follow(records, last, ends)


def _missing(last: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    """Return whether some transactions have not been read yet."""
    return any(last.get(domain, 0) < end for domain, end in ends.items())


def _follow(records: Records, last: dict[int, int], ends: Mapping[int, int]) -> None:
    """Advance the domains' last sequence numbers over some records.

    Raises:
        LogGoneError: transactions are missing between the numbers.
    """
    starts = records.starts[records.types == MARIADB_GTID]
    numbers = le_view(records.buffer, "<u8")[starts + AT_BODY].astype(np.int64)
    domains = le_view(records.buffer, "<u4")[starts + _AT_DOMAIN]
    for domain in np.unique(domains).tolist():
        own = numbers[domains == domain]
        # Servers that write to one domain independently repeat numbers, so compare with the highest number so far.
        before = np.maximum.accumulate(np.concatenate([[last.get(domain, 0)], own]))
        holes = np.flatnonzero((own > before[:-1] + 1) & (before[:-1] < ends.get(domain, 0)))
        if len(holes):
            first, after = int(before[holes[0]]) + 1, int(own[holes[0]])
            missing = f"{domain}-…-{first}" + (f" to {after - 1}" if after - first > 1 else "")
            raise LogGoneError(
                f"This server's binlog lacks transactions that come after the checkpoint's position: {missing}. It was "
                "made from a copy of another one that had them already, or did not log what it replicated "
                "(log_slave_updates was OFF) for a time.",
                "Connect to a server whose binlog has them. " + WAYS_OUT,
            )
        last[domain] = int(before[-1])
