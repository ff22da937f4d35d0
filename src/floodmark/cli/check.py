"""``floodmark check``: reports what would make a pipeline fail later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import typer
from rich.table import Table
from rich.text import Text

from floodmark.changes.typed_tables import row_types
from floodmark.cli.environment import check_context, check_environment, last_offset
from floodmark.cli.kafka_topics import check_topics
from floodmark.cli.output import output_console
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.findings import Finding
from floodmark.connectors.load import load_options
from floodmark.connectors.registry import connector_module
from floodmark.errors import ConfigError, FloodmarkError
from floodmark.spark.pipeline_file import Pipeline
from floodmark.spark.stream.readers import output_schema

_SERVER = ("connection", "server version", "system catalogs")
"""If one of these checks fails, all other requests to the server fail for the same reason."""
STYLES = {"ok": "green", "warning": "yellow", "error": "bold red"}


def check(pipeline: Pipeline, as_json: bool) -> int:
    """Check a pipeline and print what was found.

    Returns:
        The exit code: 1 if there is an error.
    """
    findings = check_environment(pipeline)
    source = check_connector(pipeline.options, pipeline.checkpoint)
    findings += [*source, *_topics(pipeline, [*findings, *source])]
    failed = any(finding.status == "error" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"ok": not failed, "findings": [asdict(item) for item in findings]}, indent=2))
    else:
        output_console().print(_table(findings), _summary(findings))
    return 1 if failed else 0


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


def _table(findings: Sequence[Finding]) -> Table:
    table = Table(show_lines=False, header_style="bold")
    for name in ("check", "status", "finding", "fix"):
        table.add_column(name, overflow="fold", no_wrap=name == "status")
    for item in findings:
        status = Text(item.status, style=STYLES[item.status])
        table.add_row(Text(item.check), status, Text(item.finding), Text(item.fix))
    return table


def _summary(findings: Sequence[Finding]) -> Text:
    counts = {status: sum(item.status == status for item in findings) for status in STYLES}
    return Text(", ".join(f"{count} {status}" for status, count in counts.items() if count))
