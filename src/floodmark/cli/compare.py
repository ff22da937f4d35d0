"""``floodmark compare``: what Debezium and Floodmark have written of the same changes to topics of their own."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from floodmark.cli.output import output_console, printable
from floodmark.cli.settings_file import client_settings_in
from floodmark.comparison.differences import Differences
from floodmark.comparison.events import Shown
from floodmark.config.kafka_clients import client_is_missing
from floodmark.json_data import Json

_SAID = {
    "missing": "only Debezium has it",
    "additional": "only Floodmark has it",
    "different": "the events differ",
    "order": "the changes of this key come in another order",
}
_FORM = "written differently, or a tombstone follows only one of them"
_MOST_SHOWN = 200
"""Characters of a value that are shown."""


def compare(theirs: str, ours: str, settings: Path | None, limit: int, as_json: bool) -> int:
    """Compare topics, and print what differs.

    Args:
        theirs: Debezium's, as ``compare_topics`` takes them.
        ours: Floodmark's.
        settings: a file with settings of Kafka's client.
        limit: how many differences of a topic are printed.
        as_json: whether to print JSON, for programs.

    Returns:
        The exit code: 0 if all that was compared is equal, 1 if something differs, 2 if nothing could be compared.

    Raises:
        FloodmarkError: topics can't be read or compared.
    """
    given = client_settings_in(settings)
    try:
        from floodmark.comparison.topics import compare_topics
    except ModuleNotFoundError as exc:
        raise client_is_missing("compare", "reads Kafka topics", exc) from None
    with Console(stderr=True).status("Reading the topics …"):
        found = compare_topics(theirs, ours, given, limit)
    if as_json:
        topics: dict[str, Json] = {name: _data(one, found.examples.get(name, [])) for name, one in found.topics.items()}
        typer.echo(json.dumps({"equal": found.equal, "topics": topics, "only": dict(found.only)}, indent=2))
    else:
        shown = [_topic(name, one, found.examples.get(name, [])) for name, one in found.topics.items()]
        console = output_console()
        console.print(Group(*shown))
        for side, names in found.only.items():
            for name in names:
                console.print(Text(f"Only {_owner(side)} has the topic of {printable(name)}.", "yellow"))
        console.print(_summary(found.equal, found.compared))
    if not found.compared:
        return 2
    return 0 if found.equal else 1


def _owner(side: str) -> str:
    return "Debezium" if side == "theirs" else "Floodmark"


def _summary(equal: bool, compared: int) -> Text:
    if not compared:
        return Text(
            "Nothing could be compared: no transaction lies between the later beginning and the earlier end of both.",
            "yellow",
        )
    return Text(f"{compared:,} changes were compared; {'all are equal.' if equal else 'some differ.'}")


def _topic(name: str, found: Differences, examples: list[Shown]) -> RenderableType:
    table = Table("", "Debezium", "Floodmark", box=SIMPLE_HEAD, title=printable(name) or None, title_justify="left")
    for label, counts in (
        ("changes outside what both cover", found.outside),
        ("rows read by snapshots, not compared", found.read),
        ("other records, not compared", found.others),
        ("events that came again", found.duplicates),
    ):
        table.add_row(label, *(f"{counts[side]:,}" for side in ("theirs", "ours")))
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.counts.items() if count) or "equal"
    lines: list[RenderableType] = [table, Text(f"{found.compared:,} changes compared: {kinds}")]
    lines += [_example(one) for one in examples]
    return Group(*lines, "")


def _example(one: Shown) -> Text:
    said = _FORM if one.form else _SAID[one.kind]
    text = Text(f"  key {printable(one.key or 'none')}, op {one.op}, {printable(one.position)}: {said}", "red")
    for difference in one.fields:
        text.append(
            f"\n    {printable(difference.path)}: {_value(difference.theirs)} / {_value(difference.ours)}", "default"
        )
    return text


def _value(text: str | None) -> str:
    if text is None:
        return "not there"
    shown = printable(text)
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"


def _data(found: Differences, examples: list[Shown]) -> dict[str, Json]:
    counts: dict[str, Json] = dict(found.counts.items())
    sides: dict[str, Json] = {name: dict(getattr(found, name)) for name in ("outside", "read", "others", "duplicates")}
    return {"compared": found.compared, "counts": counts, **sides, "differences": [asdict(one) for one in examples]}
