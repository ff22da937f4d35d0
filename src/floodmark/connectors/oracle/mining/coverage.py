"""Whether the logs at hand have all redo of a range of change numbers.

LogMiner doesn't say what it lacks if the logs that it is given have a gap, so that is verified before it is started.
Debezium's ``LogFileCollector`` verifies the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from floodmark.connectors.oracle.mining.logs import CURRENT, LogFile
from floodmark.connectors.oracle.server.database import RedoThread


@dataclass(frozen=True)
class Lack:
    """Redo that no log has.

    Attributes:
        thread: the redo thread.
        begin: the first change number of which redo is missing.
        what: what is missing, as the end of a sentence.
    """

    thread: int
    begin: int
    what: str


def find_lack(logs: Sequence[LogFile], threads: Iterable[RedoThread], begin: int, archived_only: bool) -> Lack | None:
    """Return what is missing of the redo behind a number; None: nothing is.

    Args:
        logs: all there are, each once.
        threads: the database's redo threads.
        begin: the changes behind this number are wanted.
        archived_only: whether logs that are being written are left out on purpose.
    """
    by_thread = _by_thread(logs)
    for thread in threads:
        lack = _of_thread(thread, by_thread.get(thread.number, []), begin, archived_only)
        if lack is not None:
            return lack
    return None


def _of_thread(thread: RedoThread, logs: Sequence[LogFile], begin: int, archived_only: bool) -> Lack | None:
    first = max(begin, thread.enabled_scn - 1)
    last = _last_needed(thread, archived_only)
    if last <= first:
        return None  # nothing was written by it since
    if not logs:
        return None if archived_only else Lack(thread.number, first, "no log of it is there")
    if logs[0].first > first + 1:
        return Lack(thread.number, first, f"its oldest log, {logs[0].sequence}, begins at {logs[0].first}")
    for one, after in pairwise(logs):
        if after.sequence != one.sequence + 1:
            missing = f"{one.sequence + 1}" if after.sequence == one.sequence + 2 else f"{one.sequence + 1} and later"
            return Lack(thread.number, one.next, f"the log {missing} is missing before {after.sequence}")
    if not archived_only and thread.is_open and logs[-1].next != CURRENT:
        # Nothing is known of how far that log goes, but that it isn't the one that is written.
        return Lack(thread.number, logs[-1].next, f"the log after {logs[-1].sequence} is missing")
    if not thread.is_open and logs[-1].next <= last:
        return Lack(thread.number, logs[-1].next, f"the log after {logs[-1].sequence} is missing")
    return None


def _last_needed(thread: RedoThread, archived_only: bool) -> int:
    """Return the last change number whose redo a thread must have."""
    if thread.is_open:
        return thread.checkpoint_scn if archived_only else CURRENT
    # A closed thread's log ends with its last checkpoint.
    return thread.disabled_scn if thread.enabled == "DISABLED" else thread.checkpoint_scn


def end_of_archived(logs: Sequence[LogFile], threads: Iterable[RedoThread]) -> int:
    """Return the last change number up to which the archived logs of all open threads have everything."""
    by_thread = _by_thread(logs)
    ends = [by_thread[one.number][-1].next - 1 for one in threads if one.is_open and by_thread.get(one.number)]
    return min(ends, default=0)


def _by_thread(logs: Sequence[LogFile]) -> Mapping[int, list[LogFile]]:
    found: dict[int, list[LogFile]] = {}
    for one in sorted(logs, key=lambda log: log.place):
        found.setdefault(one.thread, []).append(one)
    return found


def first_logs(
    logs: Sequence[LogFile], threads: Iterable[RedoThread], count: int, log_bytes: int, upto: int
) -> tuple[list[LogFile], int]:
    """Return the logs that are mined at once, and the last change number that they have.

    Of each thread these are the first ones, until they are as large as so many logs: archived ones may be much smaller
    than the online logs. Debezium's ``CappedLogFileSessionSelector`` chooses the same.

    Args:
        logs: all that are needed, without gaps.
        threads: the database's redo threads.
        count: how many logs; 0: all.
        log_bytes: the size of the largest online log.
        upto: the last change number that is wanted.
    """
    if not count:
        return list(logs), upto
    chosen: list[LogFile] = []
    end, whole = upto, True
    open_threads = {one.number for one in threads if one.is_open}
    for number, all_of_it in _by_thread(logs).items():
        taken = _until(all_of_it, count * log_bytes)
        chosen += taken
        if len(taken) < len(all_of_it) or (number in open_threads and taken[-1].next != CURRENT):
            whole = False
            end = min(end, taken[-1].next - 1)
    return (list(logs), upto) if whole else (chosen, end)


def _until(logs: Sequence[LogFile], size: int) -> list[LogFile]:
    taken: list[LogFile] = []
    total = 0
    for one in logs:
        taken.append(one)
        total += one.size
        if total >= size:
            break
    return taken
