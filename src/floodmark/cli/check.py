"""``floodmark check``: looks for what would make a pipeline fail later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import typer
from rich.table import Table
from rich.text import Text

from floodmark.cli.environment import check_environment, last_offset
from floodmark.cli.output import output_console
from floodmark.config.pipeline import Pipeline
from floodmark.connectors.find import connector_module
from floodmark.findings import Finding

STYLES = {"ok": "green", "warning": "yellow", "error": "bold red"}


def check(pipeline: Pipeline, as_json: bool) -> int:
    """Check a pipeline and print what was found.

    Returns:
        The exit code: 1 if something is an error.
    """
    findings = check_environment(pipeline) + check_connector(pipeline)
    failed = any(finding.status == "error" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"ok": not failed, "findings": [asdict(item) for item in findings]}, indent=2))
    else:
        output_console().print(_table(findings), _summary(findings))
    return 1 if failed else 0


def check_connector(pipeline: Pipeline) -> list[Finding]:
    """Run the checks of the source's connector: ``check_source`` in its module ``preflight``.

    Raises:
        ConfigError: the connector's driver is not installed.
    """
    preflight = connector_module(pipeline.options.connector, "server.preflight")
    found: list[Finding] = preflight.check_source(pipeline.options, last_offset(pipeline.checkpoint))
    return found


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
