"""What ``floodmark convert`` does, apart from its command line: reads, converts, writes, and reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from floodmark.cli.convert.converter import FAILED, Conversion, Target, convert
from floodmark.cli.convert.given import read_given, read_worker
from floodmark.cli.output import FILE_WIDTH, output_console, printable
from floodmark.errors import ConfigError
from floodmark.json_data import Json

STANDARD_OUTPUT = "-"
_STYLES = {"kept": "green", "mapped": "cyan", "no effect": "dim", "not supported": "bold red", "missing": "bold red"}
_WIDTH = 100
"""Of the comments in the file."""


@dataclass(frozen=True)
class Wanted:
    """What to convert, as the command line says it.

    Attributes:
        given: the file of the connector, or of Debezium Server.
        output: the pipeline file to write; ``-``: standard output; None: beside the given one.
        worker: the file of Kafka Connect's worker.
        directory: where the query keeps its state and its checkpoint; None: below the working directory.
        profile: of Quarkus.
        force: whether an existing file is replaced.
        as_json: whether the report is JSON, for programs.
    """

    given: Path
    output: str | None = None
    worker: Path | None = None
    directory: str | None = None
    profile: str = "prod"
    force: bool = False
    as_json: bool = False


def convert_file(wanted: Wanted) -> int:
    """Convert a configuration, write the pipeline file, and print what has become of each property.

    Returns:
        The exit code: 1 if the pipeline doesn't do all that the configuration says.

    Raises:
        ConfigError: nothing was written: a file can't be read, configures something else, or can't be written.
    """
    output = wanted.output or str(wanted.given.with_suffix(".yaml"))
    if output == STANDARD_OUTPUT and wanted.as_json:
        raise ConfigError("Options --json and --output - exclude each other: both go to standard output.")
    _refuse_to_replace(output, wanted)
    given = read_given(wanted.given)
    worker = None if wanted.worker is None else read_worker(wanted.worker)
    if worker is not None and given.kind == "server":
        raise ConfigError("Option --worker is for connectors of Kafka Connect; Debezium Server has no worker.")
    pipeline = "pipeline.yaml" if output == STANDARD_OUTPUT else output
    done = convert(given, Target(pipeline, wanted.directory, wanted.profile), worker, wanted.worker)
    _write(output, file_text(done, wanted.given))
    if wanted.as_json:
        typer.echo(json.dumps(_as_json(done, output), indent=2))
    else:
        _report(done, output)
    return 0 if done.complete else 1


def file_text(done: Conversion, given: Path) -> str:
    """Return the text of a pipeline file: what it lacks, as comments, and its keys.

    Args:
        done: the conversion.
        given: the configuration that it comes from.
    """
    lacks = [f"{one.name}: {one.remark}" for one in done.outcomes if one.result in FAILED]
    needs = [f"{one.name}: {one.meaning}" for one in done.variables]
    lines = [f"Made of {given.name} by floodmark convert."]
    for title, items in (("What it lacks:", lacks), ("Environment variables that it needs:", needs)):
        lines += [title, *(f"  {item}" for item in items)] if items else []
    comments = "".join(f"# {printable(line)}\n" for line in lines)
    return comments + yaml.safe_dump(dict(done.content), sort_keys=False, allow_unicode=True, width=_WIDTH)


def _refuse_to_replace(output: str, wanted: Wanted) -> None:
    if output == STANDARD_OUTPUT:
        return
    path = Path(output)
    if path.exists() and any(
        one is not None and one.exists() and path.samefile(one) for one in (wanted.given, wanted.worker)
    ):
        raise ConfigError(
            f"The pipeline file would replace {output}, which it is made of.", "Name another with --output."
        )
    if path.exists() and not wanted.force:
        raise ConfigError(f"The file {output} exists.", "Name another one with --output, or replace it with --force.")


def _write(output: str, text: str) -> None:
    if output == STANDARD_OUTPUT:
        typer.echo(text, nl=False)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as exc:
        raise ConfigError(f"Cannot write {output}: {exc.strerror or exc}.") from None


def _as_json(done: Conversion, output: str) -> dict[str, Json]:
    return {
        "ok": done.complete,
        "pipeline": output,
        "connector": done.connector,
        "properties": [asdict(one) for one in done.outcomes],
        "variables": [{"name": one.name, "meaning": one.meaning} for one in done.variables],
        "notes": list(done.notes),
        "import": done.command,
    }


def _report(done: Conversion, output: str) -> None:
    # The pipeline file itself may go to standard output.
    console = _errors_console() if output == STANDARD_OUTPUT else output_console()
    console.print(_table(done))
    counts = {result: sum(one.result == result for one in done.outcomes) for result in _STYLES}
    console.print(Text(", ".join(f"{count} {result}" for result, count in counts.items() if count)))
    _list(console, "Set these environment variables:", [f"{one.name}: {one.meaning}" for one in done.variables])
    _list(console, "Note:", done.notes)
    if output != STANDARD_OUTPUT:
        _list(console, "Written. Next:", [f"floodmark check {output}", f"floodmark run {output}"])
    if done.command is not None:
        _list(
            console,
            "To go on from the connector's offset, stop the connector, and before the first run:",
            [done.command],
        )


def _errors_console() -> Console:
    console = Console(stderr=True)
    if not console.is_terminal:
        console.width = FILE_WIDTH
    return console


def _table(done: Conversion) -> Table:
    table = Table(header_style="bold")
    for name in ("property", "result", "remark"):
        table.add_column(name, overflow="fold", no_wrap=name == "result")
    for one in done.outcomes:
        remark = Text(printable(one.remark))
        table.add_row(Text(printable(one.name)), Text(one.result, style=_STYLES[one.result]), remark)
    return table


def _list(console: Console, title: str, items: Sequence[str]) -> None:
    if items:
        console.print(Text(f"\n{title}"))
    for item in items:
        console.print(Text(f"  {printable(item)}"), soft_wrap=True)
