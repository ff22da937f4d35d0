"""Signals, by each channel that the source has: what they ask for is done once, and mistakes stop nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.collecting import each, needs, of_snapshots
from tests.contract.conftest import Start
from tests.contract.internals import record_signals
from tests.contract.query import NOTIFICATIONS, PAD, SIGNALS, SMALL, changes, reads
from tests.contract.under_test import Capabilities, SourceUnderTest

ROWS = 40
ALL = [("t", key, 0) for key in range(1, ROWS + 1)]


def channels(able: Capabilities) -> list[str]:
    return ["file", *["table"] * able.signal_table]


class Scene:
    """A query that streams a table, and a channel to it."""

    def __init__(self, start: Start, source: SourceUnderTest, channel: str) -> None:
        self.source = source
        self._channel = channel
        self._sent = self.ends = 0
        source.create("t")
        with source.writer() as writer:
            writer.insert("t", [(key, 0, PAD) for key in range(1, ROWS + 1)])
            writer.commit()
        options = {**SMALL, "snapshot.mode": "no_data"}
        options |= {"notification.enabled.channels": "sink", "notification.sink.topic.name": NOTIFICATIONS}
        if channel == "table":
            source.create_signal_table(SIGNALS)
            options["signal.data.collection"] = f"{source.schema}.{SIGNALS}"
        self.query = start(**options)
        self.query.step()

    def send(self, kind: str, data: dict[str, Any] | str | None = None) -> None:
        """Send a signal."""
        if self._channel == "file":
            self.query.signal(kind, data)
        else:
            self._sent += 1
            text = data if isinstance(data, str) else "" if data is None else json.dumps(data)
            self.source.signal(SIGNALS, f"s{self._sent}", kind, text)

    def ask(self, kind: str, **more: Any) -> None:
        """Ask for a snapshot of the table."""
        self.send("execute-snapshot", {"type": kind, "data-collections": [self.table], **more})

    @property
    def table(self) -> str:
        return rf"{self.source.schema}\.t"

    @property
    def read(self) -> list[tuple[str, int, int]]:
        return reads(self.query.rows)

    @property
    def _streamed(self) -> int:
        return sum(row["op"] == "c" and row["table"] == "t" for row in changes(self.query.rows))

    def notified(self) -> list[str]:
        """Return the types of the notifications, without progress."""
        types = [json.loads(row["value"])["type"] for row in self.query.rows if row["topic"] == NOTIFICATIONS]
        return [kind for kind in types if kind not in ("IN_PROGRESS", "TABLE_SCAN_COMPLETED")]

    def run(self, reached: Any) -> None:
        self.query.until(reached)

    def finish(self) -> None:
        """Prove that the stream goes on, when everything that was asked for has been done."""
        self.run(lambda: not self.query.snapshots)
        self.ends += 1
        with self.source.writer() as writer:
            writer.insert("t", [(ROWS + self.ends, 0, "the end")])
            writer.commit()
        self.run(lambda: self._streamed == self.ends)
        for _ in range(3):
            self.query.step()
        assert not self.query.snapshots


@pytest.fixture
def scene(start: Start, source: SourceUnderTest, channel: str) -> Scene:
    return Scene(start, source, channel)


@needs("incremental")
@each("channel", channels)
def test_an_incremental_snapshot(scene: Scene) -> None:
    scene.ask("incremental")
    scene.run(lambda: scene.query.offset["incremental"] is not None)
    scene.finish()
    assert scene.read == ALL
    assert scene.notified()[-2:] == ["STARTED", "COMPLETED"]


@each("channel", channels)
def test_a_blocking_snapshot(scene: Scene) -> None:
    scene.ask("blocking")
    scene.run(lambda: scene.query.snapshots)
    scene.finish()
    assert scene.read == ALL
    assert scene.notified()[-2:] == ["STARTED", "COMPLETED"]


@needs("incremental")
@each("channel", channels)
def test_a_condition_chooses_rows(scene: Scene) -> None:
    id_, v = (f"{scene.source.quote}{name}{scene.source.quote}" for name in ("id", "v"))
    condition = [{"data-collection": scene.table, "filter": f"{id_} > {ROWS - 3} AND {v} = 0"}]
    scene.ask("incremental", **{"additional-conditions": condition})
    scene.run(lambda: len(scene.read) >= 3)
    scene.ask("blocking", **{"additional-conditions": condition})
    scene.run(lambda: len(scene.read) >= 6)
    scene.finish()
    assert scene.read == sorted(ALL[-3:] * 2)


@of_snapshots
@needs("incremental")
@each("channel", channels)
def test_unknown_tables_and_malformed_signals_stop_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = record_signals(monkeypatch)
    unknown = [rf"{scene.source.schema}\.no_such_table"]
    for kind in ("incremental", "blocking"):
        scene.send("execute-snapshot", {"type": kind, "data-collections": unknown})
    malformed = ["{", "[]", '{"data-collections": "t"}', '{"data-collections": ["("]}', '{"type": "blocking"}']
    for data in malformed:
        scene.send("execute-snapshot", data)
    scene.send("no-such-signal", {})
    scene.ask("incremental")
    scene.run(lambda: len(scene.read) >= ROWS)
    scene.finish()
    assert scene.read == ALL
    assert len(recorder.of("signal_refused")) == len(malformed) + 1


@of_snapshots
@needs("incremental")
@each("channel", channels)
def test_a_pause_lasts_until_it_is_resumed(scene: Scene) -> None:
    scene.ask("incremental")
    scene.run(lambda: bool(scene.read))
    scene.send("pause-snapshot")
    scene.run(lambda: not scene.query.snapshots or scene.query.offset["incremental"]["paused"])
    assert scene.query.snapshots, "It went on."
    scene.query.step()
    before = scene.read
    assert len(before) < ROWS
    for _ in range(4):
        scene.query.step()
    scene.query.die()
    for _ in range(2):
        scene.query.step()
    assert scene.read == before
    scene.send("resume-snapshot")
    scene.run(lambda: not scene.query.snapshots)
    scene.finish()
    assert scene.read == ALL
    assert scene.notified()[-4:] == ["STARTED", "PAUSED", "RESUMED", "COMPLETED"]


@of_snapshots
@needs("incremental")
@each("channel", channels)
def test_a_snapshot_that_is_stopped(scene: Scene) -> None:
    scene.ask("incremental")
    scene.run(lambda: bool(scene.read))
    scene.send("stop-snapshot", {"type": "incremental", "data-collections": [scene.table]})
    scene.run(lambda: not scene.query.snapshots)
    scene.finish()
    assert 0 < len(scene.read) < ROWS
    assert scene.notified()[-2:] == ["STARTED", "ABORTED"]
    scene.ask("incremental")
    scene.run(lambda: scene.query.snapshots)
    scene.run(lambda: not scene.query.snapshots)
    assert set(ALL) <= set(scene.read)
    assert scene.notified()[-2:] == ["STARTED", "COMPLETED"]
