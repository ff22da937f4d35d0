"""Holds a snapshot for a batch read, in a process of its own.

Spark plans a batch read in a Python process that it may end at any time, reads in others, and doesn't report when it
is done. So planning starts this process. It keeps the transaction open whose exported snapshot the tasks import,
and ends by itself when no task has read for a while, or when the parent of the planning process is gone: Spark's Python
daemon, which ends with the application.

A task that reads holds a shared advisory lock, which this process polls for, wherever the task runs. Polling alone
would miss short tasks. So this process also holds a lock, with the next number, for half of the idle time after it saw
a reader; a task that doesn't find that lock waits until this process has seen the task.
"""

from __future__ import annotations

import os
import pickle
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Self

import psutil
import psycopg
from psycopg.rows import TupleRow

from floodmark.connectors.postgres.options import PostgresBatchOptions
from floodmark.connectors.postgres.server.connection import run
from floodmark.connectors.postgres.snapshot.read_point import PostgresReadPoint
from floodmark.errors import FloodmarkError, SourceStateError
from floodmark.json_data import Json

POLL_S = 1.0
END_TIMEOUT_S = 10.0
SEEN_TIMEOUT_S = 10.0
SEEN_POLL_S = 0.1

# A server-wide limit (PostgreSQL 17 and later) would end the transaction under its readers.
_NO_LIMIT = "SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'"
_HELD = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
    "AND (classid::int8 << 32) + objid::int8 = {lock}"
)


@dataclass(frozen=True)
class _Order:
    """The process's input: the source, the readers' lock, and the parent with which it ends.

    ``born``, when the parent started, distinguishes it from a later process with the same number.
    """

    options: PostgresBatchOptions
    lock: int
    parent: int
    born: float


class HeldSnapshot:
    """A snapshot that outlives the process that requested it.

    Attributes:
        token: what a chunk needs to read from it: the read point's token, and ``lock``, the readers' lock.
    """

    def __init__(self, process: subprocess.Popen[bytes], token: dict[str, Json]) -> None:
        self._process = process
        self.token = token

    @classmethod
    def known(cls, load: str) -> Self | None:
        """Return the snapshot that this process opened for a loaded DataFrame, if it is still held."""
        for gone in [name for name, held in _opened.items() if held._process.poll() is not None]:
            del _opened[gone]
        found = _opened.get(load)
        return found if isinstance(found, cls) else None

    @classmethod
    def open(cls, options: PostgresBatchOptions, load: str) -> Self:
        """Start the process and wait until it holds the snapshot.

        Args:
            options: the source's options.
            load: identifies the DataFrame, for ``known``.

        Raises:
            ConnectError: the source can't be reached.
            SourceStateError: the source refuses, or the process did not start.
        """
        parent = os.getppid()
        lock = secrets.randbits(62)
        order = _Order(options, lock, parent, psutil.Process(parent).create_time())
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Spark may have extended the path of this process alone.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdin, process.stdout, process.stderr:
            # On standard input and not as arguments: the options hold a password.
            process.stdin.write(pickle.dumps(order))
            process.stdin.close()
            answer = process.stdout.read()
            if not answer:
                said = " ".join(process.stderr.read().decode("utf-8", "replace").split())[-500:]
                raise SourceStateError(f"The process that holds the snapshot of a batch read did not start: {said}")
        found = pickle.loads(answer)
        if isinstance(found, FloodmarkError):
            raise found
        held = cls(process, {**found, "lock": lock})
        _opened[load] = held
        return held

    def release(self) -> None:
        """End the process, and with it the snapshot."""
        self._process.terminate()
        self._process.wait(END_TIMEOUT_S)


_opened: dict[str, HeldSnapshot] = {}
"""By loaded DataFrame. With filter push-down Spark plans each filtered query of one again, mostly in one process."""


def announce_reader(conn: psycopg.Connection[TupleRow], lock: int) -> None:
    """Keep a held snapshot from ending for as long as this transaction lasts, and a while longer.

    Args:
        conn: the reader's connection.
        lock: the readers' lock, from the snapshot's token.
    """
    run(conn, f"SELECT pg_advisory_xact_lock_shared({lock})", "announcing a reader")
    deadline = time.monotonic() + SEEN_TIMEOUT_S
    while not run(conn, _HELD.format(lock=lock + 1), "looking for the snapshot's holder")[0][0]:
        if time.monotonic() > deadline:
            # This task has its snapshot; if the holder is gone, the next task fails.
            return
        time.sleep(SEEN_POLL_S)


def _hold(order: _Order, point: PostgresReadPoint) -> None:
    """Hold the snapshot until it is no longer needed, or lost."""
    idle_s = order.options.batch_snapshot_idle_ms / 1000
    last_read = time.monotonic()
    noted = False
    while _lives(order.parent, order.born):
        try:
            if point.query(_HELD.format(lock=order.lock), "looking for readers")[0][0]:
                last_read = time.monotonic()
            unread_s = time.monotonic() - last_read
            if noted != (unread_s < idle_s / 2):
                noted = not noted
                change = "pg_advisory_lock" if noted else "pg_advisory_unlock"
                point.query(f"SELECT {change}({order.lock + 1})", "noting readers")
        except FloodmarkError:
            return
        if unread_s > idle_s:
            return
        time.sleep(POLL_S)


def _lives(pid: int, born: float) -> bool:
    try:
        process = psutil.Process(pid)
        return process.create_time() == born and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def main() -> None:
    """Hold one snapshot: read the order from standard input, write the token or the error to standard output."""
    order: _Order = pickle.load(sys.stdin.buffer)
    answer: dict[str, Json] | FloodmarkError
    point: PostgresReadPoint | None = None
    try:
        point = PostgresReadPoint(order.options, None)
        point.query(_NO_LIMIT, "lifting the limit of transactions")
        answer = point.token
    except FloodmarkError as exc:
        answer = exc
    sys.stdout.buffer.write(pickle.dumps(answer))
    sys.stdout.buffer.flush()
    # The other side reads to the end of the output, and then closes its ends of the pipes.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.dup2(nowhere, sys.stderr.fileno())
    if point is not None and not isinstance(answer, FloodmarkError):
        _hold(order, point)


if __name__ == "__main__":
    # Under this module's own name, so that the order's class is the one that was pickled.
    from floodmark.connectors.postgres.batch import snapshot_holder

    snapshot_holder.main()
