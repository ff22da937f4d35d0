"""Signals in files: nothing is lost, nothing is taken twice, nothing half-written is seen."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from structlog.testing import CapturingLogger

import floodmark
from floodmark.capture.store import SegmentStore
from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError, SignalError, StateDirError
from floodmark.signals import files
from floodmark.signals.files import GRACE_S, FileChannel, InboxChannel, SignalChannel, signal_channels
from floodmark.signals.records import Signal
from tests.support.object_store import s3_bucket
from tests.support.options import REQUIRED
from tests.support.patience import within


def line(name: str) -> str:
    return json.dumps({"id": name, "type": "log", "data": {"message": name}}) + "\n"


def ids(channel: SignalChannel) -> list[str]:
    return [signal.id for signal in channel.poll()]


class Clock:
    """Time that passes when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> CapturingLogger:
    logger = CapturingLogger()
    monkeypatch.setattr(files, "log", logger)
    return logger


def events(reports: CapturingLogger) -> list[str]:
    return [call.args[0] for call in reports.calls]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file-signals.txt"


def append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as out:
        out.write(text)


def test_lines_wait_until_they_are_acknowledged(file: Path, clock: Clock) -> None:
    channel = FileChannel(file, 0, clock)
    assert ids(channel) == []
    append(file, line("a") + "\n" + line("b"))
    assert ids(channel) == ["a", "b"]
    assert not file.exists()
    assert ids(channel) == ["a", "b"]
    channel.acknowledge(["a"])
    assert ids(channel) == ["b"]
    channel.acknowledge(["b", "unknown"])
    assert ids(channel) == []
    clock.now += GRACE_S
    assert ids(channel) == []
    assert list(file.parent.iterdir()) == []


def test_unacknowledged_lines_survive_the_process(file: Path, clock: Clock) -> None:
    append(file, line("a") + line("b") + line("c"))
    first = FileChannel(file, 0)
    assert ids(first) == ["a", "b", "c"]
    first.acknowledge(["a", "b"])
    append(file, line("d"))
    second = FileChannel(file, 0, clock)
    assert ids(second) == ["c"]
    second.acknowledge(["c"])
    assert ids(second) == []
    clock.now += GRACE_S
    assert ids(second) == ["d"]


def test_another_process_ends_what_the_offset_took(file: Path) -> None:
    append(file, line("a") + line("b"))
    assert ids(FileChannel(file, 0)) == ["a", "b"]
    second = FileChannel(file, 0)
    assert second.acknowledge(["a", "unknown"]) == []
    assert ids(second) == ["b"]


def test_a_new_file_is_not_what_the_offset_took(file: Path) -> None:
    append(file, line("a"))
    channel = FileChannel(file, 0)
    channel.acknowledge(["a"])
    assert ids(channel) == ["a"]


def test_what_cannot_be_looked_for_must_be_remembered(tmp_path: Path, reports: CapturingLogger) -> None:
    (tmp_path / "signals.txt.taken.0").mkdir()
    channel = FileChannel(tmp_path / "signals.txt", 0)
    assert channel.acknowledge(["a", "b"]) == ["a", "b"]
    (tmp_path / "signals.txt.taken.0").rmdir()
    assert channel.acknowledge(["a", "b"]) == []


def test_lines_appended_after_the_file_was_taken_are_read(file: Path) -> None:
    append(file, line("a"))
    with file.open("a", encoding="utf-8") as writer:
        channel = FileChannel(file, 0)
        assert ids(channel) == ["a"]
        channel.acknowledge(["a"])
        writer.write(line("b"))
        writer.flush()
        assert ids(channel) == ["b"]


def test_a_line_that_is_being_written_is_waited_for(file: Path) -> None:
    text = line("b")
    append(file, line("a") + text[:10])
    channel = FileChannel(file, 0)
    assert ids(channel) == ["a"]
    (taken,) = file.parent.iterdir()
    append(taken, text[10:].rstrip("\n"))
    assert ids(channel) == ["a", "b"]


def test_malformed_lines_are_reported_and_passed_over(file: Path, clock: Clock, reports: CapturingLogger) -> None:
    file.write_bytes(b"{not json}\n" + line("a").encode() + b"\xff\xfe\n[]\n" + b'{"id":"b"')
    channel = FileChannel(file, 0, clock)
    assert ids(channel) == ids(channel) == ["a"]
    assert events(reports) == ["signal_is_malformed"] * 3
    clock.now += GRACE_S
    assert ids(channel) == ids(channel) == ["a"]
    assert events(reports) == ["signal_is_malformed"] * 4
    channel.acknowledge(["a"])
    assert ids(channel) == []
    assert list(file.parent.iterdir()) == []


def test_an_id_that_is_used_again_is_another_signal(file: Path) -> None:
    append(file, line("a") + line("a"))
    channel = FileChannel(file, 0)
    assert ids(channel) == ["a"]
    channel.acknowledge(["a"])
    assert ids(channel) == ["a"]
    channel.acknowledge(["a"])
    assert ids(channel) == []


def test_many_writers_lose_nothing(file: Path) -> None:
    def write(writer: int) -> None:
        for number in range(100):
            append(file, line(f"{writer}-{number}"))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    channel = FileChannel(file, 0)
    taken: list[str] = []
    deadline = time.monotonic() + within(30)
    while len(taken) < 400 and time.monotonic() < deadline:
        new = ids(channel)
        taken += new
        channel.acknowledge(new)
        time.sleep(0.01)
    assert sorted(taken) == sorted(f"{writer}-{number}" for writer in range(4) for number in range(100))


def test_the_place_is_looked_at_once_an_interval(file: Path, clock: Clock) -> None:
    channel = FileChannel(file, 5, clock)
    assert ids(channel) == []
    append(file, line("a"))
    clock.now = 4.9
    assert ids(channel) == []
    clock.now = 5.0
    assert ids(channel) == ["a"]


def test_unreadable_places_stop_nothing(tmp_path: Path, reports: CapturingLogger) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "signals.txt.taken.0").mkdir()
    places = [tmp_path / "file" / "signals.txt", tmp_path / "no directory" / "x", tmp_path / "signals.txt"]
    for place in places:
        assert FileChannel(place, 0).poll() == []
    assert InboxChannel(str(tmp_path / "file"), "o", 0).poll() == []
    assert events(reports) == ["signals_cannot_be_read"]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with s3_bucket(monkeypatch, "signals") as uri:
        yield uri


@pytest.fixture(params=["path", "uri", "object store"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "object store":
        found: str = request.getfixturevalue("bucket")
        return found
    return str(tmp_path) if request.param == "path" else tmp_path.as_uri()


def test_sent_signals_wait_in_the_inbox(state: str) -> None:
    options = {**REQUIRED, "state.dir": state, "signal.poll.interval.ms": "1"}
    source = load_options(options)
    sent = [floodmark.signal(options, "log", {"message": str(number)}) for number in range(3)]
    assert floodmark.signal(options, "pause-snapshot", id="mine") == "mine"
    store = SegmentStore(state, source.owner, "run")
    store.create()
    store.take_over()
    store.remove_all()

    channel = InboxChannel(state, source.owner, 0)
    found = channel.poll()
    assert [signal.id for signal in found] == [*sent, "mine"]
    assert json.loads(found[1].data) == {"message": "1"}
    assert channel.poll() == found
    channel.acknowledge([found[0].receipt, found[3].receipt, "mine", "unknown"])
    assert ids(channel) == sent[1:]
    assert ids(InboxChannel(state, source.owner, 0)) == sent[1:]


def test_files_that_are_no_signals_are_reported_or_left(tmp_path: Path, reports: CapturingLogger) -> None:
    inbox = tmp_path / "o" / "signals"
    inbox.mkdir(parents=True)
    for name in ("a.json", ".b.json", "c.txt"):
        (inbox / name).write_text("{")
    channel = InboxChannel(str(tmp_path), "o", 0)
    assert channel.poll() == channel.poll() == []
    assert events(reports) == ["signal_is_malformed"]
    assert sorted(path.name for path in inbox.iterdir()) == [".b.json", "c.txt"]


def test_a_sent_signal_is_seen_whole(tmp_path: Path) -> None:
    options = {**REQUIRED, "state.dir": str(tmp_path)}
    channel = InboxChannel(str(tmp_path), load_options(options).owner, 0)
    message = "x" * 1_000_000
    sender = threading.Thread(
        target=lambda: [floodmark.signal(options, "log", {"message": message}) for _ in range(20)]
    )
    sender.start()
    while sender.is_alive():
        channel.poll()
    assert [len(json.loads(signal.data)["message"]) for signal in inbox_of(options).poll()] == [len(message)] * 20
    assert len(channel.poll()) == 20


def inbox_of(options: dict[str, str]) -> InboxChannel:
    return InboxChannel(options["state.dir"], load_options(options).owner, 0)


def test_a_wrong_signal_is_refused_where_it_is_sent(tmp_path: Path) -> None:
    options = {**REQUIRED, "state.dir": str(tmp_path / "state")}
    with pytest.raises(SignalError, match="execute-snapshot"):
        floodmark.signal(options, "execute-snapshots", {})
    with pytest.raises(SignalError, match="data-collections"):
        floodmark.signal(options, "execute-snapshot")
    with pytest.raises(SignalError, match="is not JSON"):
        floodmark.signal(options, "execute-snapshot", {"data-collections": object()})
    with pytest.raises(ConfigError):
        floodmark.signal({**options, "x": "y"}, "pause-snapshot")
    assert not (tmp_path / "state").exists()
    (tmp_path / "state").write_text("")
    with pytest.raises(StateDirError, match=r"state\.dir"):
        floodmark.signal(options, "pause-snapshot")


def test_the_options_choose_the_channels(tmp_path: Path) -> None:
    options = {**REQUIRED, "state.dir": str(tmp_path)}
    assert [type(channel) for channel in signal_channels(load_options(options), "o")] == [InboxChannel]
    both = load_options({**options, "signal.enabled.channels": "source,file,jmx"})
    assert [type(channel) for channel in signal_channels(both, "o")] == [InboxChannel, FileChannel]


def command(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    content = {
        "source": {**REQUIRED, "state.dir": str(directory / "state")},
        "sink": {"type": "noop"},
        "checkpoint": str(directory / "checkpoint"),
    }
    file = directory / "pipeline.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    call = "from floodmark.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", call, "signal", str(file), *arguments], capture_output=True, text=True, check=False
    )


def test_command_sends_a_signal(tmp_path: Path) -> None:
    done = command(
        tmp_path,
        "execute-snapshot",
        *("--table", "public\\.a", "--table", "shop\\..*", "--condition", "public\\.a=id = 5"),
        *("--surrogate-key", "code", "--blocking", "--id", "s1"),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "s1\n", "")
    stop = command(tmp_path, "stop-snapshot", "--data", '{"data-collections": ["shop.b"]}')
    options = {**REQUIRED, "state.dir": str(tmp_path / "state")}
    first, second = inbox_of(options).poll()
    assert json.loads(first.data) == {
        "data-collections": ["public\\.a", "shop\\..*"],
        "additional-conditions": [{"data-collection": "public\\.a", "filter": "id = 5"}],
        "surrogate-key": "code",
        "type": "blocking",
    }
    assert (second.id, second.type) == (stop.stdout.strip(), "stop-snapshot")
    assert json.loads(second.data) == {"data-collections": ["shop.b"]}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("execute-snapshot",), "error: A signal of the type execute-snapshot needs the tables to read"),
        (("execute-snapshot", "--data", "{}", "--blocking"), "error: Option --data excludes"),
        (("execute-snapshot", "--table", "a.b", "--condition", "a.b"), "it must be REGEX=SQL"),
        (("stop-snapshot", "--blocking"), "error: Option --blocking is for signals of the type execute-snapshot"),
        (("stop-snapshots",), "Did you mean 'stop-snapshot'?"),
    ],
)
def test_command_tells_what_is_wrong(tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    done = command(tmp_path, *arguments)
    assert done.returncode == 1
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("character", ["é", "\U0001f30a"])
def test_a_long_signal_is_taken_as_it_was_sent(tmp_path: Path, character: str) -> None:
    options = load_options({**REQUIRED, "state.dir": str(tmp_path)})
    data = json.dumps({"message": 1_000_000 * character}, ensure_ascii=False)
    files.send(options, options.owner, Signal("long", "log", data))
    (taken,) = InboxChannel(str(tmp_path), options.owner, 0.0).poll()
    assert (taken.id, taken.data == data) == ("long", True)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (json.dumps({"message": 170_000 * "\x01"}), "more than 1048576 characters"),
        ('{"message": "\ud800"}', "half of a surrogate pair"),
    ],
    ids=["too long with its escapes", "no text"],
)
def test_a_signal_that_could_not_be_read_is_not_sent(tmp_path: Path, data: str, error: str) -> None:
    options = load_options({**REQUIRED, "state.dir": str(tmp_path)})
    with pytest.raises(SignalError, match=error):
        files.send(options, options.owner, Signal("long", "log", data))
    assert InboxChannel(str(tmp_path), options.owner, 0.0).poll() == []
