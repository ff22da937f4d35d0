"""The command ``floodmark``."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from floodmark.cli.logs import configure_logs
from floodmark.cli.offsets.command import app as offsets_app
from floodmark.cli.running.stopping import StoppedAtOnce
from floodmark.errors import ConfigError, FloodmarkError
from floodmark.spark.pipelines.file import load_file

# Each command imports what it needs when it runs: Spark alone takes a second, which `--help` shouldn't.

app = typer.Typer(
    name="floodmark",
    help="Change data capture for Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(offsets_app, name="offsets")

PipelinePath = Annotated[Path, typer.Argument(metavar="PIPELINE", help="The pipeline's YAML file.")]
SinkName = Annotated[
    str | None, typer.Option("--sink", metavar="NAME", help="One of the file's sinks, if it has several.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show Spark's log and stack traces.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"floodmark {version('floodmark')}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Change data capture for Apache Spark."""


@app.command("run")
def run_command(pipeline: PipelinePath, verbose: Verbose = False) -> None:
    """Run a pipeline until it is finished, or stopped by SIGINT or SIGTERM.

    The first signal stops it after the current micro-batch, the second at once. Of several sinks each has a query of
    its own; the key `errors` says whether the others go on when one fails.
    """
    content = load_file(pipeline)
    from floodmark.cli.running.run import run

    run(content, verbose)


@app.command("check")
def check_command(
    pipeline: PipelinePath,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look for everything that would make a pipeline fail; exit code 1 if there is an error."""
    content = load_file(pipeline)
    from floodmark.cli.check import check

    raise typer.Exit(check(content, as_json))


@app.command("status")
def status_command(
    pipeline: PipelinePath,
    as_json: Annotated[bool, typer.Option("--json", help="Print the status as JSON.")] = False,
) -> None:
    """Show where a pipeline is, running or not: its phase, position, lag and snapshots."""
    content = load_file(pipeline)
    from floodmark.cli.status.command import status

    raise typer.Exit(status(content, str(pipeline), as_json))


@app.command("verify")
def verify_command(
    pipeline: PipelinePath,
    table: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Tables, as schema.table; may be repeated.")
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Let the running query read again what differs.")] = False,
    values: Annotated[bool, typer.Option("--values", help="Print the rows' values, not only the keys.")] = False,
    limit: Annotated[int, typer.Option(min=0, help="How many differences of a table are printed.")] = 100,
    at_rest: Annotated[
        bool, typer.Option("--at-rest", help="Nothing is written to the source, so the query needs not run.")
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long the query may take to follow the source.")
    ] = 60.0,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Columns that aren't compared, as schema.table.column; may be repeated."),
    ] = None,
    sink: SinkName = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    verbose: Verbose = False,
) -> None:
    """Compare a mirror's tables, or those of the sink jdbc, with the source's, row by row, while the pipeline runs.

    Exit code 0: all are equal, 1: one is different, 2: one could not be compared.
    """
    content = load_file(pipeline)
    from floodmark.cli.verify import Wanted, verify

    wanted = Wanted(table or (), repair, values, limit, at_rest, wait, leave_out or ())
    try:
        code = verify(content, wanted, as_json, verbose, sink)
    except FloodmarkError as exc:
        # Nothing is known of the tables, which 1 would deny.
        _show(exc)
        code = 2
    raise typer.Exit(code)


@app.command("rebuild")
def rebuild_command(
    pipeline: PipelinePath,
    table: Annotated[list[str], typer.Option(metavar="TABLE", help="A table, as schema.table; may be repeated.")],
    cancel: Annotated[bool, typer.Option("--cancel", help="Give up a rebuilding that was interrupted.")] = False,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait while the pipeline doesn't go on.")
    ] = 600.0,
    sink: SinkName = None,
) -> None:
    """Read a table again while the pipeline runs, and replace its target at once when that is done.

    If it is interrupted, the same command goes on.
    """
    content = load_file(pipeline)
    from floodmark.cli.rebuild import rebuild

    rebuild(content, table, cancel, wait, sink)


@app.command("demo")
def demo_command(
    seconds: Annotated[int, typer.Option(min=1, help="How long the shop is written to.")] = 15,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the pipeline file and the events here.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Capture a small shop while it is written to, and compare the result with its tables.

    Needs nothing but Java: a PostgreSQL server is started for it and removed afterwards.
    """
    from floodmark.cli.demo import demo

    raise typer.Exit(demo(seconds, keep, verbose))


@app.command("signal")
def signal_command(
    pipeline: PipelinePath,
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="Such as execute-snapshot, stop-snapshot or log.")],
    data: Annotated[str | None, typer.Option(metavar="JSON", help="The signal's data, all of it.")] = None,
    table: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Tables, as schema.table; may be repeated.")
    ] = None,
    condition: Annotated[
        list[str] | None, typer.Option(metavar="REGEX=SQL", help="Read only these rows of tables; may be repeated.")
    ] = None,
    surrogate_key: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Cut the tables by this column, not by their key.")
    ] = None,
    blocking: Annotated[bool, typer.Option("--blocking", help="Let streaming wait for the snapshot.")] = False,
    name: Annotated[str | None, typer.Option("--id", help="The signal's id; a new one if not given.")] = None,
    sink: SinkName = None,
) -> None:
    """Send a signal to a pipeline, running or not, and print its id. Of several sinks all get it."""
    content = load_file(pipeline)
    from floodmark import signal
    from floodmark.cli.signal_data import signal_data

    fields = data if data is not None else signal_data(kind, table, condition, surrogate_key, blocking)
    if data is not None and (table or condition or surrogate_key or blocking):
        raise ConfigError("Option --data excludes --table, --condition, --surrogate-key and --blocking.")
    for one in content.named(sink):
        name = signal(one.source, kind, fields, name)
    typer.echo(name)


@app.command("compare")
def compare_command(
    debezium: Annotated[
        str, typer.Argument(metavar="DEBEZIUM", help="Debezium's topic: kafka://<brokers>/<topic>; a * may end it.")
    ],
    floodmark: Annotated[str, typer.Argument(metavar="FLOODMARK", help="Floodmark's topic, in the same form.")],
    settings: Annotated[
        Path | None,
        typer.Option("--client-settings", metavar="FILE", help="Settings of Kafka's client: lines of name=value."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many differences of a topic are printed.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Compare what Debezium and Floodmark have written to Kafka of the changes that both cover.

    Events of the same change are found by key and position in the source's log; rows that snapshots have read are only
    counted. Exit code 0: equal, 1: something differs, 2: nothing could be compared.
    """
    from floodmark.cli.compare import compare

    try:
        code = compare(debezium, floodmark, settings, limit, as_json)
    except FloodmarkError as exc:
        # 1 would say that something differs.
        _show(exc)
        code = 2
    raise typer.Exit(code)


@app.command("convert")
def convert_command(
    configuration: Annotated[
        Path,
        typer.Argument(metavar="CONFIGURATION", help="A connector's JSON or properties, or application.properties."),
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="PATH", help="The pipeline file to write; - prints it.")
    ] = None,
    worker: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The properties of Kafka Connect's worker.")
    ] = None,
    directory: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where the query keeps its state and its checkpoint.")
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="The profile of Quarkus in which Debezium Server runs.")
    ] = "prod",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Make a pipeline file of a configuration of Debezium, and say what has become of each property.

    Exit code 0: the pipeline does what the configuration says, 1: something isn't supported or is missing, and the file
    was written all the same, 2: nothing was written.
    """
    from floodmark.cli.convert.command import Wanted, convert_file

    try:
        code = convert_file(Wanted(configuration, output, worker, directory, profile, force, as_json))
    except FloodmarkError as exc:
        # A file was not written, which 1 would say.
        _show(exc)
        code = 2
    raise typer.Exit(code)


@app.command("schema")
def schema_command() -> None:
    """Print the JSON schema of pipeline files, by which editors complete and check them."""
    from floodmark.cli.pages.schema import render
    from floodmark.connectors.registry import all_specs

    typer.echo(render(all_specs()), nl=False)


def _show(error: FloodmarkError) -> None:
    message = " ".join(str(error).split())
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"[red]error:[/red] {escape(message)}")


def main() -> None:
    """Run the command line; Floodmark's errors are printed as one line, with exit code 1."""
    configure_logs()
    try:
        app()
    except FloodmarkError as exc:
        _show(exc)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except StoppedAtOnce as exc:
        # Leave Spark to notice that this process is gone.
        os._exit(exc.exit_code)
