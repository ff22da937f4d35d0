"""Which of a pipeline file's sinks a command about targets means."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.errors import ConfigError
from floodmark.spark.pipelines.file import PipelineFile
from floodmark.spark.pipelines.model import Pipeline


def target_of(file: PipelineFile, sink: str | None, done: str, kinds: Sequence[str]) -> Pipeline:
    """Return the query whose targets are meant.

    Args:
        file: the pipeline file.
        sink: the name of one of several sinks; the only one that it can be done with if not given.
        done: what is done with the targets, for errors: ``verified``.
        kinds: the types of sinks that it can be done with.

    Raises:
        ConfigError: it can't be done with the sink, or it isn't clear which one is meant.
    """
    asked = file.named(sink)
    found = [one for one in asked if one.sink.type in kinds]
    named = ("the sinks " if len(kinds) > 1 else "the sink ") + " and ".join(f"'{kind}'" for kind in kinds)
    if not found:
        others = ", ".join(sorted({one.sink.type for one in asked}))
        raise ConfigError(
            f"The sink is '{others}'; only the targets of {named} can be {done}.",
            "Give the file of a pipeline with such a sink.",
        )
    if len(found) > 1:
        names = ", ".join(one.label for one in found)
        raise ConfigError(
            f"The pipeline file has several sinks whose targets can be {done}: {names}.",
            "Name one of them with --sink.",
        )
    return found[0]
