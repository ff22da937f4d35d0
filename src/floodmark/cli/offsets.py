"""``floodmark offsets``: shows and moves positions, and takes them from Debezium's stores or writes them there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Show where a pipeline is, and move it: from Debezium's offsets, and back. Nothing is written without --yes.",
    no_args_is_help=True,
)

PipelinePath = Annotated[Path, typer.Argument(metavar="PIPELINE", help="The pipeline's YAML file.")]
Sink = Annotated[str | None, typer.Option("--sink", metavar="NAME", help="One of the file's sinks, if it has several.")]
Store = Annotated[str, typer.Option("--debezium", metavar="STORE", help="Debezium's offsets: a file.")]
Name = Annotated[str | None, typer.Option("--connector-name", metavar="NAME", help="The name of Debezium's connector.")]
Yes = Annotated[bool, typer.Option("--yes", help="Write it, after a copy was made; otherwise only say what would be.")]


@app.command("show")
def show(
    pipeline: PipelinePath,
    debezium: Annotated[
        str | None, typer.Option("--debezium", metavar="STORE", help="Show Debezium's offsets, too: a file.")
    ] = None,
    sink: Sink = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the position of a pipeline, running or not, and Debezium's offsets."""
    from floodmark.cli.moving import show_offsets

    show_offsets(pipeline, sink, debezium, as_json)


@app.command("import")
def import_command(
    pipeline: PipelinePath,
    debezium: Store,
    connector_name: Name = None,
    sink: Sink = None,
    yes: Yes = False,
) -> None:
    """Let a stopped pipeline go on where a connector of Debezium has stopped, without a gap or a snapshot."""
    from floodmark.cli.moving import import_offsets

    import_offsets(pipeline, sink, debezium, connector_name, yes)


@app.command("export")
def export_command(
    pipeline: PipelinePath,
    debezium: Store,
    connector_name: Name = None,
    sink: Sink = None,
    yes: Yes = False,
) -> None:
    """Let a connector of Debezium go on where a stopped pipeline has stopped, without a gap or a snapshot."""
    from floodmark.cli.moving import export_offsets

    export_offsets(pipeline, sink, debezium, connector_name, yes)
