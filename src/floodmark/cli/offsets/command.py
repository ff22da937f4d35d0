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
STORE = "Debezium's offsets: a file, kafka://<brokers>/<topic>, or a JDBC URL."
Store = Annotated[str, typer.Option("--debezium", metavar="STORE", help=STORE)]
Name = Annotated[str | None, typer.Option("--connector-name", metavar="NAME", help="The name of Debezium's connector.")]
History = Annotated[
    str | None,
    typer.Option("--history", metavar="STORE", help="Debezium's schema history: a file or a topic."),
]
StoreSettings = Annotated[
    Path | None,
    typer.Option("--store-settings", metavar="FILE", help="Settings of Kafka or a database: lines of name=value."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Write it, after a copy was made; otherwise only say what would be.")]


@app.command("show")
def show(
    pipeline: PipelinePath,
    debezium: Annotated[str | None, typer.Option("--debezium", metavar="STORE", help=STORE)] = None,
    store_settings: StoreSettings = None,
    sink: Sink = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the position of a pipeline, running or not, and Debezium's offsets."""
    from floodmark.cli.offsets.moving import Stores, show_offsets

    show_offsets(pipeline, sink, Stores(debezium, None, store_settings), as_json)


@app.command("import")
def import_command(
    pipeline: PipelinePath,
    debezium: Store,
    history: History = None,
    connector_name: Name = None,
    store_settings: StoreSettings = None,
    sink: Sink = None,
    yes: Yes = False,
) -> None:
    """Let a stopped pipeline go on where a connector of Debezium has stopped, without a gap or a snapshot."""
    from floodmark.cli.offsets.moving import Stores, import_offsets

    import_offsets(pipeline, sink, Stores(debezium, history, store_settings, connector_name), yes)


@app.command("export")
def export_command(
    pipeline: PipelinePath,
    debezium: Store,
    history: History = None,
    connector_name: Name = None,
    store_settings: StoreSettings = None,
    sink: Sink = None,
    yes: Yes = False,
) -> None:
    """Let a connector of Debezium go on where a stopped pipeline has stopped, without a gap or a snapshot."""
    from floodmark.cli.offsets.moving import Stores, export_offsets

    export_offsets(pipeline, sink, Stores(debezium, history, store_settings, connector_name), yes)


@app.command("set")
def set_command(
    pipeline: PipelinePath,
    position: Annotated[
        str,
        typer.Argument(
            metavar="POSITION",
            help="An LSN (PostgreSQL), a file and offset or a set of GTIDs (MySQL, MariaDB), or an SCN (Oracle).",
        ),
    ],
    sink: Sink = None,
    yes: Yes = False,
) -> None:
    """Let a stopped pipeline go on at a position. Changes that it passes over are lost, and told as a gap."""
    from floodmark.cli.offsets.moving import move

    move(pipeline, sink, position, yes)


@app.command("skip-to-latest")
def skip_to_latest(pipeline: PipelinePath, sink: Sink = None, yes: Yes = False) -> None:
    """Let a stopped pipeline go on at the end of the log. Changes before it are lost, and told as a gap."""
    from floodmark.cli.offsets.moving import move

    move(pipeline, sink, None, yes)


@app.command("reset")
def reset_command(pipeline: PipelinePath, sink: Sink = None, yes: Yes = False) -> None:
    """Let a stopped pipeline begin as a new one."""
    from floodmark.cli.offsets.moving import reset

    reset(pipeline, sink, yes)
