"""Every signal, by every channel, in every state that a query can be in."""

from __future__ import annotations

import contextlib
import json
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest

import floodmark
from floodmark.connectors.load import load_options
from floodmark.errors import SignalError
from floodmark.signals import kafka
from floodmark.signals import records as signals_module
from floodmark.signals.records import Signal
from tests.conftest import SHORT, Source, drop, drop_slots, make_source
from tests.integration.test_incremental import SIGNALS
from tests.support.applying import apply, event
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.kafka import Broker
from tests.support.patience import within
from tests.support.recording import Recorder

TABLES = ("a", "b", "c")
ROWS = 6
MARKER = 1000
LIMIT_S = within(30)
SERVERS = ["pg16", "pg18"]
PROGRESS = ("IN_PROGRESS", "TABLE_SCAN_COMPLETED")
CONTROL = "floodmark.snapshots.control"
OPTIONS = {
    "table.include.list": ",".join(rf"public\.{name}" for name in TABLES),
    "signal.data.collection": "public.signals",
    "signal.poll.interval.ms": "1",
    "notification.enabled.channels": "sink",
    "notification.sink.topic.name": "told",
    # So little a micro-batch that every snapshot takes several.
    "incremental.snapshot.chunk.size": "1",
    "max.batch.rows": "2",
    "snapshot.chunk.bytes": "8192",
    "max.batch.bytes": "8192",
    "snapshot.batch.target.ms": "1",
}


class Channel(ABC):
    """A way for signals; another one is another subclass in ``CHANNELS``."""

    name: ClassVar[str]

    def __init__(self, source: Source, directory: Path) -> None:
        self.source = source
        self.directory = directory

    @property
    def options(self) -> dict[str, str]:
        """What the query needs to hear of it."""
        return {"state.dir": str(self.directory), "signal.enabled.channels": f"source,{self.name}"}

    @abstractmethod
    def send(self, signal: Signal) -> None:
        """Send a signal, however malformed it is."""


class SourceChannel(Channel):
    name = "source"

    def send(self, signal: Signal) -> None:
        with psycopg.connect(self.source.conninfo, autocommit=True) as conn:
            conn.execute("INSERT INTO signals VALUES (%s, %s, %s)", [signal.id, signal.type, signal.data])


class FileChannel(Channel):
    name = "file"

    @property
    def options(self) -> dict[str, str]:
        return {**super().options, "signal.file": str(self._file)}

    @property
    def _file(self) -> Path:
        return self.directory / "signals.txt"

    def send(self, signal: Signal) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps(signal.to_json()) + "\n")


class InProcessChannel(Channel):
    name = "in-process"

    def send(self, signal: Signal) -> None:
        options = {**self.source.options, **OPTIONS, "state.dir": str(self.directory)}
        try:
            floodmark.signal(options, signal.type, signal.data, signal.id)
        except SignalError:
            # Refused at once. What an older sender may have put there must not stop the query either.
            inbox = Path(options["state.dir"]) / load_options(options).owner / "signals"
            inbox.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError), (inbox / f"{time.time_ns():020d}-x.json").open("x") as file:
                file.write(json.dumps(signal.to_json()))


class KafkaChannel(Channel):
    name = "kafka"
    broker: Broker
    records = 0

    def listen(self, patch: pytest.MonkeyPatch) -> None:
        """Let each look wait until all that was sent has come: the snapshots are too short to wait for it."""
        self.broker.create(self._topic)
        poll = kafka.KafkaChannel.poll

        def patient(channel: kafka.KafkaChannel) -> list[Signal]:
            deadline = time.monotonic() + LIMIT_S
            found = poll(channel)
            while (channel._read_up_to or 0) < self.records:
                assert time.monotonic() < deadline
                found = poll(channel)
            return found

        patch.setattr(kafka.KafkaChannel, "poll", patient)

    @property
    def options(self) -> dict[str, str]:
        place = {"signal.kafka.bootstrap.servers": self.broker.servers, "signal.kafka.topic": self._topic}
        return {**super().options, **place}

    @property
    def _topic(self) -> str:
        # The broker is shared, so each test has a topic of its own.
        return f"{self.source.dbname}-{self.directory.name}"

    def send(self, signal: Signal) -> None:
        self.broker.send(self._topic, self.source.options["topic.prefix"], json.dumps(signal.to_json()))
        self.records += 1


KINDS: tuple[type[Channel], ...] = (SourceChannel, FileChannel, InProcessChannel, KafkaChannel)
CHANNELS = {kind.name: kind for kind in KINDS}


@dataclass
class Model:
    """What must come of signals: the queue of incremental snapshots, and what is told and read.

    Attributes:
        queue: tables that are still to be read by incremental snapshots.
        paused: whether they wait.
        reads: how often each row of a table is read.
        stopped: tables of which reading ended in the middle.
        told: of incremental snapshots: id and type, without the progress and ends of tables.
        scans: how reading of tables ended.
        whole: types that are told of initial and blocking snapshots, without these.
        logged: lines of the log: event and signal.
    """

    queue: list[str] = field(default_factory=list)
    newest: str = ""
    paused: bool = False
    reads: Counter[str] = field(default_factory=Counter)
    stopped: set[str] = field(default_factory=set)
    told: list[tuple[str, str]] = field(default_factory=list)
    scans: Counter[tuple[str, str]] = field(default_factory=Counter)
    whole: list[str] = field(default_factory=list)
    logged: list[tuple[str, str]] = field(default_factory=list)

    def heed(self, signal: Signal) -> None:
        """Take note of a signal."""
        data = None
        with contextlib.suppress(ValueError):
            data = json.loads(signal.data or "{}")
        names = _names(data)
        if signal.type == "execute-snapshot" and names:
            self._execute(signal.id, names, isinstance(data, dict) and data.get("type") == "blocking")
        elif signal.type == "stop-snapshot" and isinstance(data, dict):
            self.logged += [("signal_matches_no_table", signal.id) for name in names if name not in self.queue]
            self._stop(names or list(TABLES))
        elif signal.type in ("pause-snapshot", "resume-snapshot"):
            wanted = signal.type == "pause-snapshot"
            if self.queue and self.paused != wanted:
                self.told.append((self.newest, "PAUSED" if wanted else "RESUMED"))
                self.paused = wanted
        elif signal.type == "log" and isinstance(data, dict) and isinstance(data.get("message"), str):
            self.logged.append(("signal_message", signal.id))
        else:
            self.logged.append(("signal_refused", signal.id))

    def _execute(self, name: str, tables: list[str], blocking: bool) -> None:
        if "none" in tables:
            self.logged.append(("signal_matches_no_table", name))
        if blocking:
            self.whole += ["STARTED", "COMPLETED"]
            self.read_whole(*(table for table in tables if table in TABLES))
            return
        if not self.queue:
            self.told.append((name, "STARTED"))
        self.newest = name
        self.queue += tables

    def read_whole(self, *tables: str) -> None:
        """Take note that an initial or blocking snapshot reads tables."""
        self.reads.update(table for table in tables if table in TABLES)
        self.scans.update((table, "SUCCEEDED") for table in tables)

    def _stop(self, tables: list[str]) -> None:
        dropped = [name for name in self.queue if name in tables]
        self.queue = [name for name in self.queue if name not in tables]
        if dropped:
            self.told.append((self.newest, "ABORTED"))
            self.stopped |= set(dropped)
        self.paused = self.paused and bool(self.queue)

    def end(self) -> None:
        """Take note that the snapshots end."""
        if self.queue:
            self.told.append((self.newest, "COMPLETED"))
        for name in self.queue:
            self.scans[name, "SUCCEEDED" if name in TABLES else "UNKNOWN_SCHEMA"] += 1
            self.reads[name] += name in TABLES


def _names(data: Any) -> list[str]:
    names = data.get("data-collections") if isinstance(data, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return []
    return [name.replace(r"public\.", "").replace("public.", "") for name in names]


class Scene:
    """A query with three tables, and what has come of it."""

    def __init__(self, source: Source, channel: Channel, recorder: Recorder) -> None:
        self.source = source
        self.channel = channel
        self.recorder = recorder
        self.rows: list[dict[str, Any]] = []
        self.model = Model()
        self.sent = 0
        drop_slots(source)
        for name in TABLES:
            source.execute(
                f"DROP TABLE IF EXISTS {name}",
                f"CREATE TABLE {name} (id integer PRIMARY KEY, v integer NOT NULL, filler text) WITH (fillfactor = 60)",
                f"INSERT INTO {name} SELECT g, 0, repeat('x', 1900) FROM generate_series(1, {ROWS}) g",
            )

    def open(self, mode: str) -> None:
        """Start the query with a new checkpoint."""
        options = {**self.source.options, **OPTIONS, **self.channel.options, "snapshot.mode": mode}
        self.query = InProcess(options)
        self.step()

    def step(self) -> None:
        """Run a micro-batch."""
        rows = self.query.step()
        for row in rows:
            row["batch"] = self.query.batches
        self.rows += rows

    def until(self, reached: Callable[[], bool]) -> None:
        """Run micro-batches until something is so."""
        deadline = time.monotonic() + LIMIT_S
        while not reached():
            assert time.monotonic() < deadline, (self.query.offset, self.recorder.lines)
            self.step()

    def send(self, kind: str, data: dict[str, Any] | str | None = None, channel: Channel | None = None) -> None:
        """Send a signal and have the model heed it."""
        text = data if isinstance(data, str) else "" if data is None else json.dumps(data)
        signal = Signal(f"s{self.sent}", kind, text)
        self.sent += 1
        (channel or self.channel).send(signal)
        self.model.heed(signal)

    def heeded(self) -> bool:
        """Return whether the query has taken all signals that were sent."""
        taken = {line["signal"] for name in ("signal_received", "signal_refused") for line in self.recorder.of(name)}
        return len(taken) == self.sent

    def over(self) -> bool:
        """Return whether no snapshot runs or waits."""
        offset = self.query.offset
        return offset["incremental"] is None and offset["snapshot"] is None and not offset["blocking"]

    def came(self, number: int) -> bool:
        """Return whether the new row of each table was streamed."""
        rows = [row for row in self.rows if row["op"] == "c" and row["key"] == f'{{"id":{number}}}']
        return {row["table"] for row in rows} == set(TABLES)

    def reads(self, table: str) -> Counter[int]:
        """Return how often each row of a table was read."""
        return Counter(
            json.loads(row["value"])["after"]["id"] for row in self.rows if row["op"] == "r" and row["table"] == table
        )

    def change(self, number: int) -> None:
        """Change rows of all tables, and add one to each."""
        changes = [f"UPDATE {name} SET v = {number} WHERE id IN (2, {ROWS})" for name in TABLES]
        self.source.execute(*changes, *(f"INSERT INTO {name} VALUES ({number}, 0)" for name in TABLES))


def idle(scene: Scene) -> None:
    scene.open("no_data")


def initial(scene: Scene) -> None:
    scene.open("initial")
    scene.model.whole += ["COMPLETED"]
    scene.model.read_whole(*TABLES)
    assert scene.query.offset["snapshot"]["tables"][2][5], "nothing is left to be read"


def incremental(scene: Scene) -> None:
    scene.open("no_data")
    source = SourceChannel(scene.source, scene.channel.directory)
    scene.send("execute-snapshot", {"data-collections": [r"public\.a", r"public\.b"]}, source)
    scene.until(lambda: bool(scene.query.offset["incremental"] and scene.query.offset["incremental"]["batch"]))


def paused(scene: Scene) -> None:
    incremental(scene)
    scene.send("pause-snapshot", None, SourceChannel(scene.source, scene.channel.directory))
    scene.until(lambda: bool(scene.query.offset["incremental"]["paused"]))


def blocking(scene: Scene) -> None:
    scene.open("no_data")
    source = SourceChannel(scene.source, scene.channel.directory)
    scene.send("execute-snapshot", {"data-collections": [r"public\.a", r"public\.b"], "type": "blocking"}, source)
    scene.until(lambda: scene.query.offset["snapshot"] is not None and bool(scene.query.offset["snapshot"]["batch"]))
    assert scene.query.offset["snapshot"]["tables"][1][5], "nothing is left to be read"


STATES = {state.__name__: state for state in (idle, initial, incremental, paused, blocking)}
ASKED: dict[str, list[tuple[str, dict[str, Any] | str | None]]] = {
    "execute incremental": [("execute-snapshot", {"data-collections": [r"public\.c"]})],
    "execute again": [("execute-snapshot", {"data-collections": [r"public\.a"], "type": "incremental"})],
    "execute blocking": [("execute-snapshot", {"data-collections": [r"public\.c"], "type": "blocking"})],
    "stop all": [("stop-snapshot", {"type": "incremental"})],
    "stop some": [("stop-snapshot", {"data-collections": [r"public\.b"], "type": "incremental"})],
    "stop the one that is read": [("stop-snapshot", {"data-collections": ["public.a"]})],
    "pause": [("pause-snapshot", {"type": "incremental"})],
    "resume": [("resume-snapshot", None)],
    "malformed": [
        ("log", {"message": "now at {}"}),
        ("excute-snapshot", {"data-collections": [r"public\.c"]}),
        ("execute-snapshot", "{not JSON"),
        ("execute-snapshot", '["public.c"]'),
        ("execute-snapshot", {"data-collections": "public.c"}),
        ("execute-snapshot", {"data-collections": [7]}),
        ("execute-snapshot", {"data-collections": []}),
        ("execute-snapshot", None),
        ("log", {"message": 7}),
    ],
    "unknown tables": [
        ("execute-snapshot", {"data-collections": ["public.none"]}),
        ("execute-snapshot", {"data-collections": ["public.none", r"public\.c"], "type": "blocking"}),
    ],
}


@pytest.fixture(scope="module", params=SERVERS)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    made = make_source(request.getfixturevalue(request.param), tmp_path_factory.mktemp("matrix") / "state")
    made.execute(SIGNALS)
    yield made
    drop(made)


@pytest.fixture(params=CHANNELS)
def scene(
    shared: Source, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    shared.execute("TRUNCATE signals")
    recorder = Recorder()
    recorder.listen(monkeypatch, CONTROL, signals_module.__name__)
    hurry(monkeypatch)
    channel = CHANNELS[request.param](shared, tmp_path)
    if isinstance(channel, KafkaChannel):
        channel.broker = request.getfixturevalue("broker")
        channel.listen(monkeypatch)
    made = Scene(shared, channel, recorder)
    yield made
    made.query.stop()


def combinations() -> list[tuple[str, str, str, str]]:
    """Return all combinations; those of polled channels, which no server is part of, on one server each.

    Short: by one of these channels each.
    """
    found = []
    polled = [channel for channel in CHANNELS if channel != SourceChannel.name]
    for number, (channel, state, asked) in enumerate(product(CHANNELS, STATES, ASKED)):
        place = number % (len(STATES) * len(ASKED))
        if SHORT and channel in polled and channel != polled[place % len(polled)]:
            continue
        servers = SERVERS if channel == SourceChannel.name else [SERVERS[(number // len(ASKED) + number) % 2]]
        found += [(server, channel, state, asked) for server in servers]
    return sorted(found)


@pytest.mark.parametrize(("shared", "scene", "state", "asked"), combinations(), indirect=["shared", "scene"])
def test_signals(scene: Scene, state: str, asked: str) -> None:
    STATES[state](scene)
    scene.change(MARKER)
    for kind, data in ASKED[asked]:
        scene.send(kind, data)
    scene.change(MARKER + 1)
    scene.until(lambda: scene.heeded() and scene.came(MARKER + 1) and (scene.model.paused or scene.over()))
    if scene.model.paused:
        assert 0 < len(scene.reads("a")) < ROWS
        scene.send("resume-snapshot")
        scene.until(lambda: scene.heeded() and scene.over())
    scene.model.end()
    # What was done is not done again.
    scene.step()
    assert scene.over()
    check(scene)


def test_a_table_that_is_gone_ends_a_pause(scene: Scene) -> None:
    paused(scene)
    # The last chunks hold a lock until they are delivered.
    scene.step()
    scene.source.execute("DROP TABLE a, b")
    scene.until(scene.over)
    scene.send("execute-snapshot", {"data-collections": [r"public\.c"]})
    scene.until(lambda: scene.heeded() and scene.over())
    assert scene.reads("c") == dict.fromkeys(range(1, ROWS + 1), 1)


def test_a_pause_that_comes_with_the_last_chunks(scene: Scene) -> None:
    scene.source.execute("DELETE FROM c WHERE id > 1")
    idle(scene)
    source = SourceChannel(scene.source, scene.channel.directory)
    scene.send("execute-snapshot", {"data-collections": [r"public\.c"]}, source)
    scene.until(scene.heeded)
    scene.send("pause-snapshot")
    scene.until(lambda: scene.heeded() and scene.over())
    assert scene.reads("c") == {1: 1}


def test_signals_of_a_micro_batch_that_died_are_taken_once(scene: Scene) -> None:
    idle(scene)
    scene.send("execute-snapshot", {"data-collections": [r"public\.c"], "type": "blocking"})
    reader = scene.query.reader
    deadline = time.monotonic() + LIMIT_S
    end = scene.query.offset
    while not end["blocking"]:
        assert time.monotonic() < deadline
        end = reader.latestOffset(scene.query.offset, reader.getDefaultReadLimit())
    scene.query.restart()
    scene.rows += scene.query.run(end)
    scene.query.offset = end
    scene.until(scene.over)
    scene.step()
    assert scene.over()
    assert scene.reads("c") == dict.fromkeys(range(1, ROWS + 1), 1)


def check(scene: Scene) -> None:
    model = scene.model
    told = [json.loads(row["value"]) for row in scene.rows if row["topic"] == "told"]
    whole = [one["type"] for one in told if one["aggregate_type"] == "Initial Snapshot"]
    assert [kind for kind in whole[1:] if kind not in PROGRESS] == model.whole
    course = [(one["id"], one["type"]) for one in told if one["aggregate_type"] == "Incremental Snapshot"]
    assert [one for one in course if one[1] not in PROGRESS] == model.told
    details = [one["additional_data"] for one in told if one["type"] == "TABLE_SCAN_COMPLETED"]
    scans = Counter((one["scanned_collection"].removeprefix("public."), one["status"]) for one in details)
    assert scans == model.scans

    for name in TABLES:
        base = {number: count for number, count in scene.reads(name).items() if number <= ROWS}
        if name not in model.stopped:
            assert base == {number: model.reads[name] for number in range(1, ROWS + 1) if model.reads[name]}, name
    if "a" in model.stopped:
        assert len(scene.reads("a")) < ROWS
    if "b" in model.stopped:
        assert not scene.reads("b")

    events = [event(row["batch"], row) for row in scene.rows if row["topic"] != "told"]
    applied = apply(events)
    for name in TABLES:
        with psycopg.connect(scene.source.conninfo) as conn:
            actual: dict[int, int] = dict(conn.execute(f"SELECT id, v FROM {name}").fetchall())
        found = {row["id"]: row["v"] for row in applied[f"public.{name}"].values()}
        missing = set(actual) - set(found)
        assert not missing or not model.reads[name], name
        assert found == {number: v for number, v in actual.items() if number not in missing}, name

    logged = [(name, fields["signal"]) for _, name, fields in scene.recorder.lines if name != "signal_received"]
    assert sorted(logged) == sorted(model.logged)
    received = [
        fields["signal"] for name in ("signal_received", "signal_refused") for fields in scene.recorder.of(name)
    ]
    assert sorted(received) == sorted(set(received)), "a signal was taken twice"
    for fields in scene.recorder.of("signal_message"):
        assert fields["message"].startswith("now at 0")
