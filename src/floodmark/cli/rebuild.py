"""``floodmark rebuild``: lets the running query read tables again, and replaces the target of each at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import typer
from rich.console import Console

from floodmark.cli.output import printable
from floodmark.cli.targets import target_of
from floodmark.rebuilding.rebuilder import rebuild as build
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.pipelines.file import PipelineFile
from floodmark.spark.pipelines.model import Pipeline
from floodmark.spark.pipelines.query import spark_properties
from floodmark.spark.session import spark_session


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
    is_mirror = pipeline.sink.type == "mirror"
    target = pipeline.sink.path if is_mirror else pipeline.sink.options
    assert target is not None, "a mirror has a path"
    log = Console(stderr=True, soft_wrap=True, highlight=False)
    with spark_session(spark_properties(pipeline), log.print) if _needs_spark(pipeline) else nullcontext():
        for table in tables:
            done = build(
                pipeline.source,
                target,
                pipeline.checkpoint,
                table,
                cancel=cancel,
                wait_s=wait_s,
                tell=lambda line: typer.echo(printable(line)),
                mirror=pipeline.sink.mirror_options if is_mirror else None,
            )
            known = "version " if is_mirror else ""
            what = f"is rebuilt, as of {known}{done.version}" if done.replaced else "is left as it is"
            typer.echo(f"{printable(table)}: {what}")


def _needs_spark(pipeline: Pipeline) -> bool:
    """Return whether only Spark knows the catalogue of a mirror's tables."""
    if pipeline.sink.type != "mirror":
        return False
    options = MirrorOptions.parse(pipeline.sink.mirror_options)
    return options.format == "iceberg" and options.engine == "floodmark" and not options.catalogue
