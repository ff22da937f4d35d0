"""``floodmark demo``: captures a shop while it is written to, and verifies that nothing differs."""

from __future__ import annotations

import json
import random
import shutil
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import psycopg
import yaml
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.table import Table
from rich.text import Text

from floodmark.cli.logs import readable
from floodmark.cli.running.stopping import BatchEnd
from floodmark.demo import comparison
from floodmark.demo.comparison import Comparison, Event
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.demo.event_tail import EventTail
from floodmark.demo.shop import TABLES, create_shop
from floodmark.demo.writer import ShopWriter
from floodmark.errors import ConfigError, FloodmarkError
from floodmark.spark.failures import explain
from floodmark.spark.pipelines.file import load_file
from floodmark.spark.pipelines.query import spark_properties, start_query
from floodmark.spark.session import spark_session

SEED = 20
DATABASE = "shop"
MARKER = "the-end@shop.example"
PIPELINE, MIRROR = "pipeline.yaml", "mirror.yaml"
EVENTS, LAKE = "events", "lake"
CATCH_UP_S = 60.0
SAMPLE_EVERY_S = 1.0
SAMPLES = 3
EVENT_COLUMNS = "topic string, key string, value string, position string, op string"


def demo(seconds: int, keep: Path | None, verbose: bool) -> int:
    """Run the demo.

    Args:
        seconds: how long the shop is written to.
        keep: where to leave the pipeline file and the events; nowhere if None.
        verbose: whether Spark's log is shown.

    Returns:
        The exit code: 0 if what was captured equals the source.
    """
    console = Console(highlight=False)
    with _working_directory(keep) as directory, _terminable():
        console.print("Starting a PostgreSQL 18 server and filling a shop …")
        with _server() as server:
            with psycopg.connect(server.conninfo(), autocommit=True) as conn:
                conn.execute(f"CREATE DATABASE {DATABASE}")
            with psycopg.connect(server.conninfo(DATABASE)) as conn:
                create_shop(conn, random.Random(SEED))
            _write_pipelines(directory, server.options(DATABASE))
            results = _Demo(console, server.conninfo(DATABASE), directory).capture(seconds, verbose)
        for title, compared in results.items():
            console.print(_result_table(f"{title}, against the source", compared))
        equal = all(result.equal for compared in results.values() for result in compared)
        verdict = "Equal: " if equal else "NOT equal: "
        text = f"{verdict}captured events, mirrored Delta tables and source tables."
        console.print(Text(text, style="bold green" if equal else "bold red"))
        if keep is not None:
            console.print(Text(f"{directory} has the pipeline files, the {EVENTS} and, in {LAKE}, the Delta tables."))
    return 0 if equal else 1


class _Demo:
    def __init__(self, console: Console, conninfo: str, directory: Path) -> None:
        self._console = console
        self._conninfo = conninfo
        self._directory = directory
        self._tail = EventTail(directory / EVENTS)
        self._seen: Counter[str] = Counter()

    def capture(self, seconds: int, verbose: bool) -> dict[str, list[Comparison]]:
        """Capture while the shop is written to; return the comparisons of its tables by what was captured."""
        pipeline = load_file(self._directory / PIPELINE).only
        self._console.print("Starting Spark …")
        with spark_session(spark_properties(pipeline), self._pass_on, verbose) as spark:
            try:
                query = start_query(spark, pipeline)
                mirror = start_query(spark, load_file(self._directory / MIRROR).only)
                writer = ShopWriter(self._conninfo, SEED)
                self._console.print(f"Capturing while the shop is in use for {seconds} s. Some of the events:")
                writer.start()
                self._watch(query, writer, seconds)
                self._finish(query)
                mirror.processAllAvailable()
                mirror.stop()
                return self._compare(spark)
            except PySparkException as exc:
                raise explain(exc) from (exc if verbose else None)

    def _watch(self, query: StreamingQuery, writer: ShopWriter, seconds: int) -> None:
        # The snapshot is taken while the shop is in use; the time counts from its first events.
        self._sample_until(time.monotonic() + CATCH_UP_S, query, writer, first=True)
        self._sample_until(time.monotonic() + seconds, query, writer)
        writer.stop()
        if writer.failure is not None:
            raise FloodmarkError(f"The demo's writer failed: {writer.failure}")
        kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in writer.committed.most_common())
        total = sum(writer.committed.values())
        text = f"Written: {total:,} transactions ({kinds}); {writer.rolled_back} rolled back."
        self._console.print(Text(text), soft_wrap=True)

    def _sample_until(self, end: float, query: StreamingQuery, writer: ShopWriter, first: bool = False) -> None:
        while time.monotonic() < end and query.isActive and writer.is_alive() and not (first and self._seen):
            time.sleep(SAMPLE_EVERY_S)
            self._sample()

    def _finish(self, query: StreamingQuery) -> None:
        """Write a last row, wait until it has been captured, and stop after its micro-batch."""
        with psycopg.connect(self._conninfo, autocommit=True) as conn:
            conn.execute("INSERT INTO customers (email, name) VALUES (%s, 'The End')", (MARKER,))
        started = time.monotonic()
        while not self._sample(MARKER):
            self._require_active(query)
            if time.monotonic() - started > CATCH_UP_S:
                raise FloodmarkError(f"The capture did not catch up within {CATCH_UP_S:.0f} s.")
            time.sleep(0.1)
        batch = BatchEnd(query)
        while not batch.reached():
            self._require_active(query)
            time.sleep(0.02)
        query.stop()
        waited = time.monotonic() - started
        counts = ", ".join(f"{count:,} {op}" for op, count in sorted(self._seen.items()))
        text = f"Captured: {counts}; all of it {waited:.1f} s after the last transaction."
        self._console.print(Text(text), soft_wrap=True)

    def _compare(self, spark: SparkSession) -> dict[str, list[Comparison]]:
        rows = spark.read.schema(EVENT_COLUMNS).json(str(self._directory / EVENTS)).collect()
        events = [Event(row.topic.rsplit(".", 1)[1], row.key, row.value, row.position) for row in rows]
        state = comparison.apply_events(events)
        results: dict[str, list[Comparison]] = {"Events applied per key": [], "Delta tables": []}
        with psycopg.connect(self._conninfo) as conn:
            for table in TABLES:
                shape = comparison.table_shape(conn, table)
                source = comparison.source_rows(conn, table, shape)
                captured = comparison.decoded_rows(state.get(table, {}).values(), shape)
                mirrored = comparison.mirrored_rows(self._directory / LAKE / f"public.{table}", shape)
                for compared, target in zip(results.values(), (captured, mirrored), strict=True):
                    compared.append(comparison.compare(table, source, target))
        return results

    def _sample(self, wanted: str = "") -> bool:
        """Count new events and print a few; return whether one of them contains a text."""
        lines = list(self._tail.new())
        found = False
        for line in lines:
            event = json.loads(line)
            self._seen[event["op"] if event.get("value") else "tombstone"] += 1
            found = found or bool(wanted and wanted in line)
        for line in lines[:: max(len(lines) // SAMPLES, 1)][:SAMPLES]:
            self._console.print(_event_line(json.loads(line)), no_wrap=True, overflow="ellipsis", crop=True)
        return found

    def _require_active(self, query: StreamingQuery) -> None:
        if query.isActive:
            return
        raise query.exception() or FloodmarkError("The query ended by itself.")

    def _pass_on(self, text: str) -> None:
        self._console.print(Text(readable(text), style="dim"), soft_wrap=True)


def _event_line(event: dict[str, str]) -> Text:
    after = json.loads(event["value"])["after"] if event.get("value") else None
    shown = f"{event['key']} deleted" if after is None else json.dumps(after, ensure_ascii=False)
    line = Text("  ")
    line.append(f"{event['op']:<2}", style="bold cyan")
    line.append(f"{event['topic'].rsplit('.', 1)[1]:<12}", style="cyan")
    return line.append(shown)


def _result_table(title: str, results: list[Comparison]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in ("table", "source", "captured", "missing", "unexpected", "different", "result"):
        is_text = name in ("table", "result")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=name != "result")
    for item in results:
        result = Text("equal", style="green") if item.equal else Text(item.example or "differs", style="red")
        counts = (item.rows, item.captured, item.missing, item.unexpected, item.different)
        table.add_row(item.table, *(f"{count:,}" for count in counts), result)
    return table


def _write_pipelines(directory: Path, connection: dict[str, str]) -> None:
    """Write the pipeline files as a user would: one for the events, one for Delta tables."""
    sinks = {PIPELINE: {"type": "json", "path": EVENTS}, MIRROR: {"type": "mirror", "path": LAKE}}
    for file, sink in sinks.items():
        name = f"demo_{sink['type']}"
        content = {
            "name": name,
            "source": {
                **connection,
                "topic.prefix": DATABASE,
                "slot.name": name,
                # The mirror's publishes truncates, too.
                "publication.name": name,
                "table.include.list": [f"public\\.{table}" for table in TABLES],
                "state.dir": str(directory / "state"),
            },
            "sink": {**sink, "path": str(directory / sink["path"])},
            "checkpoint": str(directory / f"checkpoint_{sink['type']}"),
            "spark": {"spark.master": "local[2]"},
        }
        (directory / file).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


@contextmanager
def _working_directory(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        directory = Path(tempfile.mkdtemp(prefix="floodmark-demo-"))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return
    keep = keep.absolute()
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise ConfigError(f"The directory {keep} is not empty.", "Give --keep a new or an empty one.")
    yield keep


@contextmanager
def _server() -> Iterator[EmbeddedPostgres]:
    with warnings.catch_warnings():
        # The wheel's own modules warn about a missing XDG_RUNTIME_DIR, but work without it.
        warnings.simplefilter("ignore")
        server = EmbeddedPostgres(18)
    with server:
        yield server


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the demo as Ctrl-C does, so that it removes its server."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - Python's interface
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
