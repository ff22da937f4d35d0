"""Remembers why a sink of several has failed, until its query is started again: ``floodmark status`` shows it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from pyarrow import fs

from floodmark.capture.files import open_filesystem, write_atomically
from floodmark.capture.seals import opened, sealed
from floodmark.errors import DamagedFileError, FloodmarkError, StateDirError
from floodmark.json_data import Json, stored_object
from floodmark.logger import get_logger
from floodmark.spark.pipelines.model import Pipeline

log = get_logger(__name__)

FILE = "sink-failure.json"


@dataclass(frozen=True)
class SinkFailure:
    """Why a sink's query ended.

    Attributes:
        error: the message.
        at: when, in seconds since 1970.
    """

    error: str
    at: float


def remember(pipeline: Pipeline, error: FloodmarkError) -> None:
    """Write down that a sink has failed; if that fails too, as on a full disk, it is logged."""
    text = json.dumps(asdict(SinkFailure(str(error), time.time()))).encode() + b"\n"
    with _logged(pipeline, "sink_failure_not_remembered"):
        filesystem, path = _place(pipeline)
        filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        write_atomically(filesystem, path, [sealed(FILE, text)])


def forget(pipeline: Pipeline) -> None:
    """Remove what an earlier run wrote down."""
    with _logged(pipeline, "sink_failure_not_forgotten"):
        filesystem, path = _place(pipeline)
        if filesystem.get_file_info(path).type == fs.FileType.File:
            filesystem.delete_file(path)


def remembered(pipeline: Pipeline) -> SinkFailure | None:
    """Return why a sink has failed; None if it hasn't, or if that can't be read."""
    data: Json = None
    with contextlib.suppress(OSError, StateDirError, DamagedFileError, ValueError):
        filesystem, path = _place(pipeline)
        if filesystem.get_file_info(path).type != fs.FileType.File:
            return None
        with filesystem.open_input_stream(path) as stream:
            data = json.loads(opened(FILE, stream.read()))
    if data is None:
        return None
    found = stored_object(data, "A sink's failure")
    return SinkFailure(found.text("error"), found.number("at"))


def _place(pipeline: Pipeline) -> tuple[fs.FileSystem, str]:
    filesystem, root = open_filesystem(pipeline.options.state_dir)
    return filesystem, f"{root.rstrip('/')}/{FILE}"


@contextlib.contextmanager
def _logged(pipeline: Pipeline, event: str) -> Iterator[None]:
    try:
        yield
    except (OSError, StateDirError) as exc:
        log.warning(event, sink=pipeline.label, error=str(exc))
