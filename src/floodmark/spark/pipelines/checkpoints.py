"""Checks the directories of a pipeline file's queries: those of each, and the one with all their checkpoints."""

from __future__ import annotations

from floodmark.connectors.contract.findings import Finding
from floodmark.errors import CheckpointError, ConfigError
from floodmark.redact import shown_uri
from floodmark.spark.checkpoint import Checkpoint
from floodmark.spark.pipelines.file import PipelineFile, below
from floodmark.spark.pipelines.places import refuse_shared_places


def refuse_places(file: PipelineFile) -> None:
    """Raise an error if a query can't have the directories that the file gives it.

    Raises:
        ConfigError: one contains another, or the checkpoint is that of a file with one sink.
    """
    for one in file.pipelines:
        refuse_shared_places(one.options.state_dir, one.checkpoint, one.sink.path)
    for found in check_checkpoints(file):
        if found.status == "error":
            raise ConfigError(found.finding, found.fix)


def check_checkpoints(file: PipelineFile) -> list[Finding]:
    """Look for a checkpoint of one sink where several have theirs, and for those of sinks that the file lacks."""
    shown = shown_uri(file.checkpoint)
    try:
        parent = Checkpoint(file.checkpoint)
        is_used = parent.is_used()
        if is_used and file.several:
            text = (
                f"{shown} is the checkpoint of a pipeline with one sink; those of 'sinks' are in directories below it."
            )
            fix = (
                "Name another directory: each sink takes a snapshot of its own. Or keep the file with 'sink' as it is, "
                "and write the further sinks in another file."
            )
            return [Finding("checkpoint", "error", text, fix)]
        if is_used:
            return []
        labels = {one.label for one in file.pipelines}
        left = [name for name in parent.folders() if name not in labels]
        used = [name for name in left if Checkpoint(below(file.checkpoint, name)).is_used()]
    except CheckpointError:
        # Spark may know filesystems that PyArrow doesn't.
        return []
    return [_left(shown, name) for name in used]


def _left(shown: str, name: str) -> Finding:
    text = f"{shown} has the checkpoint of a sink '{name}', which the file does not have any more."
    fix = (
        "If it is not to come back, remove its directories below checkpoint and state.dir, and drop its replication "
        "slot (PostgreSQL), which makes the server keep all log since. A sink that was renamed counts as a new one."
    )
    return Finding("checkpoint", "warning", text, fix)
