"""``floodmark verify``: compares targets with the source's tables, and repairs them if asked to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from floodmark.cli.output import output_console, printable
from floodmark.cli.targets import target_of
from floodmark.json_data import Json
from floodmark.spark.pipelines.file import PipelineFile
from floodmark.spark.pipelines.query import spark_properties
from floodmark.spark.session import spark_session
from floodmark.verification.results import KeyDifference, TableResult, Verification
from floodmark.verification.verifier import verify as compare

_STYLES = {"equal": "green", "different": "bold red", "unconfirmed": "yellow", "not compared": "yellow"}


@dataclass(frozen=True)
class Wanted:
    """What a user asks for; see ``floodmark.verify``."""

    tables: Sequence[str]
    repair: bool
    values: bool
    limit: int
    at_rest: bool
    wait_s: float
    leave_out: Sequence[str]


def verify(file: PipelineFile, wanted: Wanted, as_json: bool, verbose: bool = False, sink: str | None = None) -> int:
    """Compare the tables of a pipeline, and print what differs.

    Args:
        file: one that has a mirror or the sink ``jdbc``.
        wanted: what to do.
        as_json: whether to print JSON, for programs.
        verbose: whether to show Spark's log and stack traces.
        sink: the name of one of several sinks; the only one that can be verified if not given.

    Returns:
        The exit code: 0 if all tables are equal, 1 if one is different, 2 if one couldn't be compared.

    Raises:
        ConfigError: the sink can't be verified, or it isn't clear which one is meant.
    """
    pipeline = target_of(file, sink, "verified", ("mirror", "jdbc"))
    target = pipeline.sink.options if pipeline.sink.type == "jdbc" else pipeline.sink.path
    assert target is not None, "a mirror has a path"
    log = Console(stderr=True, soft_wrap=True, highlight=False)
    with spark_session(spark_properties(pipeline), log.print, verbose):
        found = compare(
            pipeline.source,
            target,
            pipeline.checkpoint,
            tables=wanted.tables,
            repair=wanted.repair,
            values=wanted.values,
            limit=wanted.limit,
            at_rest=wanted.at_rest,
            wait_s=wanted.wait_s,
            leave_out=wanted.leave_out,
            mirror=pipeline.sink.mirror_options if pipeline.sink.type == "mirror" else None,
        )
    if as_json:
        typer.echo(json.dumps(as_json_data(found), indent=2))
    else:
        output_console().print(render(found))
    return found.exit_code


def as_json_data(found: Verification) -> dict[str, Json]:
    """Return everything as one JSON object."""
    return {"equal": found.equal, "tables": [_table_data(table) for table in found.tables]}


def _table_data(table: TableResult) -> dict[str, Json]:
    return {
        "table": table.table,
        "status": table.status,
        "reason": table.reason or None,
        "source_rows": table.source_rows,
        "target_rows": table.target_rows,
        "position": table.position or None,
        "target_version": table.version or None,
        "differences": [_difference_data(one) for one in table.differences],
        "different": table.count,
        "kinds": {str(kind): count for kind, count in table.counted().items()},
        "unconfirmed": table.unconfirmed,
        "more": table.more,
        "columns_left_out": list(table.left_out),
        "repaired": table.repaired,
    }


def _difference_data(one: KeyDifference) -> dict[str, Json]:
    return {
        "kind": one.kind,
        "key": _plain(one.key),
        "columns": list(one.columns),
        "source": _plain(one.source),
        "target": _plain(one.target),
        "position": one.position or None,
    }


def _plain(row: Mapping[str, Any] | None) -> Json:
    return None if row is None else {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Json:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_plain_value(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain_value(item) for name, item in value.items()}
    return str(value)


def render(found: Verification) -> Group:
    """Return what is printed for people."""
    grid = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("table", "status", "source rows", "target rows", "different", "unconfirmed", "repaired"):
        is_text = name in ("table", "status")
        grid.add_column(name, justify="left" if is_text else "right", overflow="fold", no_wrap=not is_text)
    for table in found.tables:
        counts = (table.source_rows, table.target_rows, table.count, table.unconfirmed or None, table.repaired)
        shown = ["" if count is None else f"{count:,}" for count in counts]
        if table.more:
            shown[2] = f"≥ {shown[2]}"
        grid.add_row(Text(printable(table.table)), Text(table.status, style=_STYLES[table.status]), *shown)
    parts: list[RenderableType] = [grid]
    for table in found.tables:
        parts += _details(table)
    return Group(*parts)


def _details(table: TableResult) -> list[RenderableType]:
    lines: list[RenderableType] = []
    name = printable(table.table)
    if table.reason:
        lines.append(Text(f"{name}: {printable(table.reason)}"))
    if table.left_out:
        lines.append(Text(f"{name}: columns that are not compared: {printable(', '.join(table.left_out))}"))
    lines += [Text(f"{name}: {_shown(one)}", style="red") for one in table.differences]
    if table.count > len(table.differences):
        lines.append(Text(f"{name}: … and {table.count - len(table.differences):,} more (--limit)"))
    if table.more:
        lines.append(Text(f"{name}: more keys may differ than were looked at"))
    return lines


def _shown(one: KeyDifference) -> str:
    key = ", ".join(f"{name}={value!r}" for name, value in one.key.items())
    columns = f" in {', '.join(one.columns)}" if one.columns else ""
    values = "".join(
        f"; {side}: {', '.join(f'{name}={value!r}' for name, value in row.items())}"
        for side, row in (("source", one.source), ("target", one.target))
        if row is not None
    )
    return printable(f"{one.kind} {key}{columns}{values}")
