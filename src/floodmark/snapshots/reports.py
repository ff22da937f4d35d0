"""Reports of a micro-batch's tasks to the planner: which chunks they have read, and which tables failed.

Tasks run in executors, which share only ``state.dir`` with the planner. A chunk without a report counts as not read,
so a lost or damaged report costs reading it once more, never a row. Only the report of a table whose part of the log
could not be decoded is indispensable: it is written twice, and synced, and the query ends if both copies are damaged.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pyarrow import fs

from floodmark.capture.files import open_filesystem, state_dir_error, write_atomically, write_durably
from floodmark.capture.seals import opened, sealed
from floodmark.capture.store import REPORTS
from floodmark.errors import DamagedFileError
from floodmark.logger import get_logger

log = get_logger(__name__)

Part = Literal["consistent", "lane", "incremental", "log", "time"]
_OF_LOG = re.compile(r"log-([0-9a-f]+)-[01]\.json")
"""File names of both copies of a log report."""
Outcome = Literal["complete", "unchanged", "nothing", "locked", "slow", "failed"]
"""``complete``: all rows at the read point. ``unchanged``: the read point was gone, so only the rows that
had not changed since. ``nothing``: the table is gone, or has another structure. ``locked``: it waited for a lock for
too long. ``slow``: the source took too long. ``failed``: another error."""

_WORST: Sequence[Outcome] = ("complete", "unchanged", "nothing", "locked", "slow", "failed")


@dataclass(frozen=True)
class Report:
    """The outcome of a chunk, a table whose part of the log could not be decoded, or how long a task took.

    Attributes:
        part: which snapshot the chunk belongs to; ``log``: none; ``time``: it is about a task of an incremental
            snapshot, not a chunk.
        chunk: the chunk, as its engine numbered it; empty for the log.
        rows: how many rows were delivered.
        table: its name, if it failed.
        oid: the table, if it failed.
        error: why it failed.
        began: when the task began, in seconds since the epoch.
        ended: when all of its rows had been taken.
    """

    part: Part
    chunk: tuple[int, ...]
    outcome: Outcome
    rows: int = 0
    table: str = ""
    oid: int = 0
    error: str = ""
    began: float = 0.0
    ended: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the chunk was not read because of an error."""
        return self.outcome in ("locked", "slow", "failed")

    def worse(self, other: Report) -> bool:
        """Return whether the outcome is worse than that of another report of the same chunk or table."""
        return _WORST.index(self.outcome) > _WORST.index(other.outcome)


class TaskReports:
    """The reports of one micro-batch's tasks.

    A task may have run more than once. The worst report counts: the sink may hold the rows of an attempt that failed,
    or that was repeated without its read point.
    """

    def __init__(self, reports: Iterable[Report] = ()) -> None:
        self._chunks: dict[tuple[Part, tuple[int, ...]], Report] = {}
        self.log_failures: list[Report] = []
        self._times: list[Report] = []
        for report in reports:
            if report.part == "log":
                self.log_failures.append(report)
                continue
            if report.part == "time":
                self._times.append(report)
                continue
            key = (report.part, report.chunk)
            known = self._chunks.get(key)
            if known is None or report.worse(known):
                self._chunks[key] = report

    def __bool__(self) -> bool:
        """Return whether there are any reports."""
        return bool(self._chunks or self.log_failures or self._times)

    @property
    def seconds(self) -> float | None:
        """How long the tasks of incremental snapshots took, running in parallel; None if no task reported it."""
        if not self._times:
            return None
        spent = [max(report.ended - report.began, 0.0) for report in self._times]
        span = max(report.ended for report in self._times) - min(report.began for report in self._times)
        # The clocks of executors may differ, so the span must not exceed what the tasks took one by one.
        return min(max(span, *spent), sum(spent))

    def of(self, part: Part, *chunk: int) -> Report:
        """Return the report of a chunk; without one, its outcome is ``nothing``."""
        return self._chunks.get((part, chunk)) or Report(part, chunk, "nothing")

    def blank(self, part: Part) -> set[int]:
        """Return the numbers of the chunks whose tasks reported that the table is gone or has another structure."""
        return {chunk[0] for (of, chunk), report in self._chunks.items() if of == part and report.outcome == "nothing"}

    def locked(self, part: Part) -> Report | None:
        """Return the report of a chunk that waited for a lock for too long, if there is one."""
        found = (report for (of, _), report in self._chunks.items() if of == part and report.outcome == "locked")
        return next(found, None)

    def with_complete(self, part: Part, chunks: Mapping[tuple[int, ...], int]) -> TaskReports:
        """Return the reports with more chunks as complete, unless they failed.

        Args:
            part: the part that the chunks belong to.
            chunks: the number of rows of each chunk.
        """
        complete = (Report(part, chunk, "complete", rows) for chunk, rows in chunks.items())
        return TaskReports([*self._chunks.values(), *complete, *self.log_failures, *self._times])


class ReportBox:
    """Stores the reports of one source's tasks in ``<state.dir>/<owner>/reports``.

    Args:
        uri: the option ``state.dir``.
        owner: the name of the source's directory below it.
    """

    def __init__(self, uri: str, owner: str) -> None:
        self._uri = uri
        self._fs, root = open_filesystem(uri)
        self._path = f"{root.rstrip('/')}/{owner}/{REPORTS}"

    def write(self, batch: str, reports: Sequence[Report]) -> None:
        """Write the reports of one task.

        Args:
            batch: the micro-batch's name.
            reports: the reports.

        Raises:
            StateDirError: the state directory cannot be written.
        """
        directory = f"{self._path}/{batch}"
        text = json.dumps([asdict(report) for report in reports]).encode() + b"\n"
        name = uuid.uuid4().hex
        of_log = any(report.part == "log" for report in reports)
        names = [f"log-{name}-{copy}.json" for copy in range(2)] if of_log else [f"{name}.json"]
        write = write_durably if of_log else write_atomically
        try:
            for one in names:
                write(self._fs, f"{directory}/{one}", [sealed(f"{batch}/{one}", text)])
        except OSError as exc:
            raise state_dir_error(
                self._uri,
                "where a task cannot write",
                exc,
                "It must be a directory that the driver and all executors share and may write, with some space left.",
            ) from None

    def read(self, batch: str) -> TaskReports:
        """Return the reports of a micro-batch's tasks.

        Raises:
            DamagedFileError: both copies of a log report are damaged, or cannot be read.
        """
        found: dict[str, list[Report]] = {}
        damaged: dict[str, str] = {}
        for info in self._list(f"{self._path}/{batch}"):
            if not info.base_name.endswith(".json") or info.base_name.startswith("."):
                continue
            copied = _OF_LOG.fullmatch(info.base_name)
            key = info.base_name if copied is None else copied[1]
            try:
                with self._fs.open_input_stream(info.path) as file:
                    content = file.read()
                found[key] = _reports(f"{batch}/{info.base_name}", content)
            except (OSError, DamagedFileError) as exc:
                log.warning("report_is_damaged", file=info.path, error=str(exc))
                if copied is not None:
                    damaged[key] = info.path
        lost = [path for key, path in damaged.items() if key not in found]
        if lost:
            raise DamagedFileError(
                f"The report {lost[0]} is damaged. It names a table whose changes could not be decoded: they were left "
                "out.",
                f"See the log of the executors for the table, remove the directory {self._path}/{batch}, restart the "
                "query, and read the table again with an execute-snapshot signal.",
            )
        return TaskReports([report for reports in found.values() for report in reports])

    def keep_only(self, batch: str) -> None:
        """Remove the reports of all other micro-batches."""
        for info in self._list(self._path):
            if info.base_name != batch and info.type == fs.FileType.Directory:
                try:
                    self._fs.delete_dir(info.path)
                except OSError:
                    continue  # the next run removes it

    def _list(self, path: str) -> list[Any]:
        return list(self._fs.get_file_info(fs.FileSelector(path, allow_not_found=True)))


class LastReports:
    """Keeps the reports of the last micro-batch until the next one's are read."""

    def __init__(self, box: ReportBox) -> None:
        self._box = box
        self._batch = ""
        self.reports = TaskReports()

    def read(self, batch: str) -> TaskReports:
        """Return the reports of a micro-batch's tasks, and remove those of earlier ones."""
        if batch != self._batch:
            if not self._batch or self.reports:
                self._box.keep_only(batch)
            self._batch, self.reports = batch, self._box.read(batch)
        return self.reports


def _reports(name: str, content: bytes) -> list[Report]:
    """Return the reports in a file.

    Raises:
        DamagedFileError: the file is not what was written.
    """
    try:
        # A file without a checksum was written by an earlier version.
        data = json.loads(content if content.endswith(b"]") else opened(name, content))
        return [Report(**{**item, "chunk": tuple(item["chunk"])}) for item in data]
    except (ValueError, TypeError, LookupError) as exc:
        raise DamagedFileError(f"'{name}' is damaged: {exc}.") from None
