"""Which of a pipeline file's sinks a command about mirrors means."""

from __future__ import annotations

from floodmark.errors import ConfigError
from floodmark.spark.pipelines.file import PipelineFile
from floodmark.spark.pipelines.model import Pipeline


def mirror_of(file: PipelineFile, sink: str | None, done: str) -> Pipeline:
    """Return the query whose targets are meant.

    Args:
        file: the pipeline file.
        sink: the name of one of several sinks; the only mirror if not given.
        done: what is done with the targets, for errors: ``verified``.

    Raises:
        ConfigError: the sink is no mirror, or it isn't clear which one is meant.
    """
    asked = file.named(sink)
    mirrors = [one for one in asked if one.sink.type == "mirror"]
    if not mirrors:
        kinds = ", ".join(sorted({one.sink.type for one in asked}))
        raise ConfigError(
            f"The sink is '{kinds}'; only the targets of the sink 'mirror' can be {done}.",
            "Give the file of a pipeline whose sink is a mirror.",
        )
    if len(mirrors) > 1:
        names = ", ".join(one.label for one in mirrors)
        raise ConfigError(f"The pipeline file has several mirrors: {names}.", "Name one of them with --sink.")
    return mirrors[0]
