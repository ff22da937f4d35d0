"""What the tasks of a micro-batch tell the planner: which chunks they have read, and which tables failed.

Tasks run in executors, where nothing but ``state.dir`` is shared with the planner. A chunk that no report
tells of counts as not read, so a lost report costs reading it once more, never a row.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pyarrow import fs

from floodmark.capture.store import REPORTS, open_filesystem
from floodmark.errors import StateDirError

Part = Literal["consistent", "lane", "incremental", "log"]
Outcome = Literal["complete", "unchanged", "nothing", "failed"]
"""``complete``: all rows at the read point. ``unchanged``: the read point was gone, so only the rows that
had not changed since. ``nothing``: the table is not what it was."""

_WORST: Sequence[Outcome] = ("complete", "unchanged", "nothing", "failed")


@dataclass(frozen=True)
class Report:
    """What became of a chunk, or a table whose part of the log could not be decoded.

    Attributes:
        part: which snapshot the chunk belongs to; ``log``: none.
        chunk: the chunk, as its engine numbered it; empty for the log.
        rows: how many rows were delivered.
        table: its name, if it failed.
        oid: the table, if it failed.
        error: why it failed.
    """

    part: Part
    chunk: tuple[int, ...]
    outcome: Outcome
    rows: int = 0
    table: str = ""
    oid: int = 0
    error: str = ""


class TaskReports:
    """The reports of one micro-batch's tasks.

    A task may have run more than once. What counts is the worst: rows of an attempt that failed, or of one
    that was repeated without its read point, may be what the sink has.
    """

    def __init__(self, reports: Iterable[Report] = ()) -> None:
        self._chunks: dict[tuple[Part, tuple[int, ...]], Report] = {}
        self.log_failures: list[Report] = []
        for report in reports:
            if report.part == "log":
                self.log_failures.append(report)
                continue
            key = (report.part, report.chunk)
            known = self._chunks.get(key)
            if known is None or _WORST.index(report.outcome) > _WORST.index(known.outcome):
                self._chunks[key] = report

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return bool(self._chunks or self.log_failures)

    def of(self, part: Part, *chunk: int) -> Report:
        """Return what is known of a chunk; of one without a report, that nothing was read."""
        return self._chunks.get((part, chunk)) or Report(part, chunk, "nothing")

    def with_complete(self, part: Part, chunks: Mapping[tuple[int, ...], int]) -> TaskReports:
        """Return the same with chunks taken as read that didn't fail; of each, how many rows it has."""
        complete = (Report(part, chunk, "complete", rows) for chunk, rows in chunks.items())
        return TaskReports([*self._chunks.values(), *complete, *self.log_failures])


class ReportBox:
    """Where the tasks of one source leave their reports: ``<state.dir>/<owner>/reports``.

    Args:
        uri: the option ``state.dir``.
        owner: the name of the source's directory below it.
    """

    def __init__(self, uri: str, owner: str) -> None:
        self._uri = uri
        self._fs, root = open_filesystem(uri)
        self._path = f"{root.rstrip('/')}/{owner}/{REPORTS}"

    def write(self, batch: str, reports: Sequence[Report]) -> None:
        """Leave reports.

        Args:
            batch: the micro-batch's name.
            reports: of one task.

        Raises:
            StateDirError: the state directory cannot be written.
        """
        directory = f"{self._path}/{batch}"
        name = f"{uuid.uuid4().hex}.json"
        try:
            self._fs.create_dir(directory, recursive=True)
            with self._fs.open_output_stream(f"{directory}/.{name}") as out:
                out.write(json.dumps([asdict(report) for report in reports]).encode())
            self._fs.move(f"{directory}/.{name}", f"{directory}/{name}")
        except OSError as exc:
            raise StateDirError(
                f"Option 'state.dir' is '{self._uri}', where a task cannot write: {exc}.",
                "It must be a directory that the driver and all executors share and may write, with some space left.",
            ) from None

    def read(self, batch: str) -> TaskReports:
        """Return the reports of a micro-batch's tasks."""
        found: list[Report] = []
        for info in self._list(f"{self._path}/{batch}"):
            if info.base_name.endswith(".json") and not info.base_name.startswith("."):
                with self._fs.open_input_stream(info.path) as file:
                    found += [_report(item) for item in json.loads(file.read())]
        return TaskReports(found)

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
    """What the tasks of the last micro-batch have done; while nothing comes, it stays the last one."""

    def __init__(self, box: ReportBox) -> None:
        self._box = box
        self._batch = ""
        self.reports = TaskReports()

    def look(self, batch: str) -> TaskReports:
        """Return the reports of a micro-batch's tasks, and remove those of earlier ones."""
        if batch != self._batch:
            if not self._batch or self.reports:
                self._box.keep_only(batch)
            self._batch, self.reports = batch, self._box.read(batch)
        return self.reports


def _report(data: dict[str, Any]) -> Report:
    return Report(**{**data, "chunk": tuple(data["chunk"])})
