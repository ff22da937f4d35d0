"""``floodmark rebuild``: lets the running query read tables again, and replaces the target of each at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import typer

from floodmark.cli.output import printable
from floodmark.cli.targets import target_of
from floodmark.errors import ConfigError
from floodmark.rebuilding.rebuilder import rebuild as build
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.pipelines.file import PipelineFile
from floodmark.spark.pipelines.model import Pipeline


def rebuild(file: PipelineFile, tables: Sequence[str], cancel: bool, wait_s: float, sink: str | None = None) -> None:
    """Rebuild tables, one after the other, and print how far that is.

    Args:
        file: the file of a pipeline that has a mirror or the sink ``jdbc``.
        tables: the source's names of the tables.
        cancel: whether to give up what was begun, instead.
        wait_s: how long to wait while the query doesn't go on.
        sink: the name of one of several sinks; the only mirror or sink ``jdbc`` if not given.

    Raises:
        ConfigError: the sink's targets can't be rebuilt, or it isn't clear which one is meant.
        FloodmarkError: a table can't be rebuilt.
    """
    pipeline = target_of(file, sink, "rebuilt", ("mirror", "jdbc"))
    target = _target(pipeline)
    for table in tables:
        done = build(
            pipeline.source,
            target,
            pipeline.checkpoint,
            table,
            cancel=cancel,
            wait_s=wait_s,
            tell=lambda line: typer.echo(printable(line)),
        )
        known = "version " if pipeline.sink.type == "mirror" else ""
        what = f"is rebuilt, as of {known}{done.version}" if done.replaced else "is left as it is"
        typer.echo(f"{printable(table)}: {what}")


def _target(pipeline: Pipeline) -> str | Mapping[str, str]:
    """Return the path of a mirror, or the options of the sink ``jdbc``."""
    if pipeline.sink.type == "jdbc":
        return pipeline.sink.options
    options = MirrorOptions.parse(pipeline.sink.mirror_options)
    if options.format != "delta" or options.engine != "floodmark":
        raise ConfigError(
            f"The mirror has format={options.format} and engine={options.engine}; only Delta tables that Floodmark "
            "itself writes can be rebuilt.",
            "Remove the target, and start the query with the mirror's option missing.tables=read.",
        )
    assert pipeline.sink.path is not None, "a mirror has a path"
    return pipeline.sink.path
