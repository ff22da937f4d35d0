"""``floodmark check``: reports what would make a pipeline fail later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import typer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.table import Table
from rich.text import Text

from floodmark.changes.typed_tables import row_types
from floodmark.cli.checks.environment import check_context, check_machine, check_query, last_offset
from floodmark.cli.checks.kafka_topics import check_topics
from floodmark.cli.output import output_console
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.findings import Finding
from floodmark.connectors.load import load_options
from floodmark.connectors.registry import connector_module
from floodmark.errors import ConfigError, FloodmarkError
from floodmark.spark.failures import explain
from floodmark.spark.pipelines.checkpoints import check_checkpoints
from floodmark.spark.pipelines.file import PipelineFile
from floodmark.spark.pipelines.model import Pipeline
from floodmark.spark.pipelines.query import prove_transform, spark_properties
from floodmark.spark.session import spark_session
from floodmark.spark.stream.readers import output_schema

_SERVER = ("connection", "server version", "system catalogs")
"""If one of these checks fails, all other requests to the server fail for the same reason."""
STYLES = {"ok": "green", "warning": "yellow", "error": "bold red"}


def check(file: PipelineFile, as_json: bool) -> int:
    """Check a pipeline and print what was found.

    Returns:
        The exit code: 1 if there is an error.
    """
    found = check_file(file)
    findings = [item for _, item in found]
    failed = any(finding.status == "error" for finding in findings)
    if as_json:
        data = [{**({"sink": sink or None} if file.several else {}), **asdict(item)} for sink, item in found]
        typer.echo(json.dumps({"ok": not failed, "findings": data}, indent=2))
    else:
        output_console().print(_table(found, file.several), _summary(findings))
    return 1 if failed else 0


def check_file(file: PipelineFile) -> list[tuple[str, Finding]]:
    """Check a pipeline file.

    Returns:
        The findings, each with the name of the sink that it is about; empty if it is about all of them.
    """
    machine = check_machine()
    by_sink = {one.label: _check_query(one) for one in file.pipelines}
    if all(item.status != "error" for item in machine):
        for label, item in check_transforms(file):
            by_sink[label].append(item)
    # What is the same for all sinks is said once, such as that the server can't be reached.
    lists = list(by_sink.values())
    shared = [item for item in lists[0] if all(item in others for others in lists)]
    own = [(label, item) for label, items in by_sink.items() for item in items if item not in shared]
    return [*(("", item) for item in (*machine, *check_checkpoints(file), *shared)), *own]


def _check_query(pipeline: Pipeline) -> list[Finding]:
    """Check everything of a query but what it shares with others, and its transform."""
    found = [*check_query(pipeline), *check_connector(pipeline.options, pipeline.checkpoint)]
    return [*found, *_topics(pipeline, found)]


def check_transforms(file: PipelineFile) -> list[tuple[str, Finding]]:
    """Check the transforms of a file as ``run`` does, which takes a Spark of its own.

    Returns:
        A finding for each, with the name of its sink.
    """
    pipelines = [one for one in file.pipelines if one.sink.transform is not None]
    if not pipelines:
        return []
    given = file.pipelines[0].spark
    # No sink is started, so what would be downloaded for it isn't needed.
    properties = {**spark_properties(*pipelines), "spark.jars.packages": given.get("spark.jars.packages", "")}
    properties = {name: value for name, value in properties.items() if value} | {"spark.master": "local[1]"}
    try:
        with spark_session(properties, lambda _: None) as spark:
            return [(one.label, _transform(spark, one)) for one in pipelines]
    except FloodmarkError as exc:
        return [(one.label, Finding("transform", "error", exc.what, exc.cure)) for one in pipelines]


def _transform(spark: SparkSession, pipeline: Pipeline) -> Finding:
    try:
        prove_transform(spark, pipeline)
    except (PySparkException, FloodmarkError) as exc:
        error = explain(exc)
        return Finding("transform", "error", error.what, error.cure)
    return Finding("transform", "ok", "Spark can apply it to the events")


def check_options(options: Mapping[str, str], checkpoint: str | None, master: str) -> list[Finding]:
    """Check the source of a query that no pipeline file describes.

    Args:
        options: the source's options.
        checkpoint: the query's checkpoint; None if it isn't known.
        master: the Spark master.
    """
    try:
        source = load_options(options)
    except ConfigError as exc:
        return [Finding("options", "error", exc.what, exc.cure)]
    return check_context(source, checkpoint, master) + check_connector(source, checkpoint)


def check_connector(options: CommonOptions, checkpoint: str | None) -> list[Finding]:
    """Run the checks of the source's connector: ``check_source`` in its module ``checks.server``."""
    offset = None if checkpoint is None else last_offset(checkpoint)
    try:
        preflight = connector_module(options.connector, "checks.server")
        found: list[Finding] = preflight.check_source(options, offset)
    except FloodmarkError as exc:
        return [Finding("connector", "error", exc.what, exc.cure)]
    answers = all(item.status != "error" for item in found if item.check in _SERVER)
    return [*found, *_typed_rows(options)] if options.fixed_tables and answers else found


def _topics(pipeline: Pipeline, found: Sequence[Finding]) -> list[Finding]:
    """Check the topics if the source and a broker answer."""
    if pipeline.sink.type != "kafka" or any(one.status == "error" for one in found if one.check in (*_SERVER, "sink")):
        return []
    try:
        return check_topics(pipeline)
    except FloodmarkError as exc:
        return [Finding("topics", "error", exc.what, exc.cure)]


def _typed_rows(options: CommonOptions) -> list[Finding]:
    """Request the columns, as ``load`` does: it refuses filters that match no table, or too many."""
    try:
        columns = output_schema(options)
    except FloodmarkError as exc:
        return [Finding("typed rows", "error", exc.what, exc.cure)]
    tables = row_types(options, columns)
    count = sum(len(row) for row in tables.values())
    return [Finding("typed rows", "ok", f"{count} columns of {len(tables)} table{'s' if len(tables) > 1 else ''}")]


def _table(found: Sequence[tuple[str, Finding]], several: bool) -> Table:
    """Return the table of findings; with several sinks, a column names the sink."""
    table = Table(show_lines=False, header_style="bold")
    for name in (*(["sink"] if several else []), "check", "status", "finding", "fix"):
        table.add_column(name, overflow="fold", no_wrap=name == "status")
    for sink, item in found:
        status = Text(item.status, style=STYLES[item.status])
        named = [Text(sink or "all")] if several else []
        table.add_row(*named, Text(item.check), status, Text(item.finding), Text(item.fix))
    return table


def _summary(findings: Sequence[Finding]) -> Text:
    counts = {status: sum(item.status == status for item in findings) for status in STYLES}
    return Text(", ".join(f"{count} {status}" for status, count in counts.items() if count))
