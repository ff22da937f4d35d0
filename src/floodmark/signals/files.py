"""Polled signal channels, and those that read files: ``signal.file``, and the inbox in the state directory.

A channel returns waiting signals until they are acknowledged, so nothing is lost if planning fails or the process
dies: the offset remembers the receipts of the signals that it took, and those are acknowledged without being
taken again.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pyarrow import fs

from floodmark.capture.files import open_filesystem, state_dir_error, write_durably
from floodmark.capture.seals import is_sealed, opened, sealed
from floodmark.capture.store import SIGNALS
from floodmark.config.common import CommonOptions
from floodmark.config.kafka_clients import client_is_missing
from floodmark.errors import DamagedFileError, SignalError
from floodmark.logger import get_logger
from floodmark.signals.records import MOST_CHARACTERS, TYPES, Signal, parse_signal, read_signal

log = get_logger(__name__)

TAKEN = ".taken."
MOST_FILE_BYTES = 64 << 20
GRACE_S = 1.0

_SENT = re.compile(r"\d{20}-[0-9a-f]{32}\.json")
"""Names of the files that ``send`` writes."""

K = TypeVar("K", int, str)


class SignalChannel(Protocol):
    """A channel that has to be polled for signals."""

    def poll(self) -> list[Signal]:
        """Return the waiting signals, oldest first; of several signals with one receipt only the first.

        The source of the signals is read once per ``signal.poll.interval.ms``. Signals are returned again until they
        are acknowledged.
        """

    def read_at_once(self) -> None:
        """Let the next ``poll`` read the source of the signals, whenever that was done last."""

    def acknowledge(self, receipts: Iterable[str]) -> list[str]:
        """Remove signals, when an offset that holds what follows from them is committed.

        A process that resumes from an offset calls this first, with the receipts in that offset, since the process
        before it may have died before it could.

        Args:
            receipts: receipts of signals of any channel, in the order in which they were taken.

        Returns:
            The receipts that the next offset must remember too, since their signals may be returned again.
        """

    def close(self) -> None:
        """Release everything; waiting signals stay where they are."""


def signal_channels(options: CommonOptions, owner: str) -> list[SignalChannel]:
    """Return the channels to poll; the signal table isn't one, since its changes are in the log.

    Args:
        options: the source's options.
        owner: the name of the source's directory below ``state.dir``.

    Raises:
        ConfigError: a channel can't be created with these options.
    """
    interval_s = options.signal_poll_interval_ms / 1000
    channels: list[SignalChannel] = [InboxChannel(options.state_dir, owner, interval_s)]
    if "file" in options.signal_enabled_channels:
        channels.append(FileChannel(Path(options.signal_file), interval_s))
    if "kafka" in options.signal_enabled_channels:
        channels.append(_kafka_channel(options))
    if "jmx" in options.signal_enabled_channels:
        log.info("signal_channel_without_effect", channel="jmx", reason="it needs a Java process; use in-process")
    return channels


def _kafka_channel(options: CommonOptions) -> SignalChannel:
    try:
        from floodmark.signals.kafka import kafka_channel
    except ModuleNotFoundError as exc:
        raise client_is_missing("signal.enabled.channels", "has 'kafka'", exc) from None
    return kafka_channel(options)


class _PolledChannel(ABC, Generic[K]):
    """Base of both file channels: reads at intervals, and returns signals until they are acknowledged."""

    def __init__(self, interval_s: float, clock: Callable[[], float]) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._next = clock()
        self._pending: dict[K, Signal] = {}
        self._recovered = False

    def poll(self) -> list[Signal]:
        """Return the waiting signals, oldest first; of several signals with one receipt only the first."""
        now = self._clock()
        if now >= self._next:
            self._next = now + self._interval_s
            self._try(self._refresh)
        first: dict[str, Signal] = {}
        for _, signal in sorted(self._pending.items()):
            first.setdefault(signal.receipt, signal)
        return list(first.values())

    def read_at_once(self) -> None:
        """Let the next ``poll`` read new signals."""
        self._next = self._clock()

    def acknowledge(self, receipts: Iterable[str]) -> list[str]:
        """Remove signals; of several with one receipt only the first."""
        named = list(receipts)
        if named and not self._recovered:
            self._recovered = self._try(self._recover)
        for receipt in named:
            found = [key for key, signal in self._pending.items() if signal.receipt == receipt]
            if found:
                self._end(min(found))
        return named if not self._recovered else []

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _try(self, refresh: Callable[[], None]) -> bool:
        try:
            refresh()
        except OSError as exc:
            self._report_unreadable(exc)
            return False
        return True

    def _end(self, key: K) -> None:
        self._pending.pop(key, None)
        try:
            self._finish(key)
        except OSError as exc:
            log.warning("signal_cannot_be_removed", place=self._place(), error=str(exc))

    def _report_unreadable(self, error: OSError) -> None:
        log.warning("signals_cannot_be_read", place=self._place(), error=str(error))

    def _report_malformed(self, error: SignalError) -> None:
        log.warning("signal_is_malformed", place=self._place(), error=str(error))

    @abstractmethod
    def _place(self) -> str:
        """Return where the signals come from, for the log."""

    @abstractmethod
    def _refresh(self) -> None:
        """Read new signals."""

    @abstractmethod
    def _recover(self) -> None:
        """Read the signals that an earlier process may have taken."""

    @abstractmethod
    def _finish(self, key: K) -> None:
        """Make sure that a signal isn't returned again."""


class FileChannel(_PolledChannel[int]):
    """``signal.file``: one JSON object per line; the file is renamed when it is read, and then removed.

    The file is renamed to ``<name>.taken.<lines done>``, which keeps lines that are appended through a handle
    opened before. It is removed when all its lines are done and nothing was added for a while.

    Args:
        path: the file; it need not exist.
        interval_s: seconds between reads.
        clock: returns the time in seconds.
    """

    def __init__(self, path: Path, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(interval_s, clock)
        self._path = path
        self._taken: Path | None = None
        self._done: set[int] = set()
        self._size = -1
        self._moved_ns = 0
        self._grown_at = 0.0

    def _place(self) -> str:
        return str(self._path)

    def _refresh(self) -> None:
        self._taken = self._find()
        if self._taken is not None and self._read(self._taken):
            self._taken.unlink()
            self._taken = None
        if self._taken is None:
            self._done, self._size = set(), -1
            self._pending.clear()
            if self._path.is_file() and self._path.stat().st_size:
                # A file that was written earlier may have been moved here just now.
                self._moved_ns = self._path.stat().st_ctime_ns
                self._taken = self._path.rename(self._named(0))
                self._read(self._taken)

    def _recover(self) -> None:
        # Only in the file that was taken: the same id in a new file is another signal.
        self._taken = self._find()
        if self._taken is not None:
            self._read(self._taken)

    def _find(self) -> Path | None:
        """Return the file that was taken, by this process or an earlier one."""
        prefix = self._path.name + TAKEN
        if not self._path.parent.is_dir():
            return None
        names = (path.name for path in self._path.parent.iterdir() if path.name.startswith(prefix))
        done = [int(name.removeprefix(prefix)) for name in names if name.removeprefix(prefix).isdecimal()]
        return self._named(min(done)) if done else None

    def _named(self, done: int) -> Path:
        return self._path.with_name(f"{self._path.name}{TAKEN}{done}")

    def _read(self, taken: Path) -> bool:
        """Read the new lines; return whether the file is done."""
        if taken.stat().st_size > MOST_FILE_BYTES:
            log.warning("signal_file_is_too_large", place=str(taken), most_bytes=MOST_FILE_BYTES, next="removed")
            self._pending.clear()
            return True
        # Read the time first: a line that is added in between then only looks older than it is.
        millis = max(taken.stat().st_mtime_ns, self._moved_ns) // 1_000_000
        content = taken.read_bytes()
        if len(content) != self._size:
            self._size, self._grown_at = len(content), self._clock()
        settled = self._clock() - self._grown_at >= GRACE_S
        self._done.update(range(int(taken.suffix[1:])))
        *lines, rest = content.split(b"\n")
        for number, line in enumerate([*lines, rest]):
            if number in self._done or number in self._pending:
                continue
            unfinished = number == len(lines)
            if not line.strip():
                if not unfinished:
                    self._done.add(number)
                continue
            try:
                self._pending[number] = replace(_read_line(line), millis=millis)
            except SignalError as exc:
                # The last line may lack its end because it is still being written.
                if settled or not unfinished:
                    self._report_malformed(exc)
                    self._done.add(number)
        return settled and not self._pending

    def _finish(self, key: int) -> None:
        self._done.add(key)
        first = next(number for number in count() if number not in self._done)
        if self._taken is not None and self._taken != self._named(first):
            self._taken = self._taken.rename(self._named(first))


class InboxChannel(_PolledChannel[str]):
    """``<state.dir>/<owner>/signals``: one file per signal, as ``send`` writes them.

    A damaged file ends the query, since a requested snapshot that is never taken would not be noticed.

    Args:
        uri: the option ``state.dir``.
        owner: the name of the source's directory below it.
        interval_s: seconds between reads.
        clock: returns the time in seconds.
    """

    def __init__(self, uri: str, owner: str, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(interval_s, clock)
        self._fs, root = open_filesystem(uri)
        self._path = f"{root.rstrip('/')}/{owner}/{SIGNALS}"
        self._done: set[str] = set()

    def _place(self) -> str:
        return self._path

    def _refresh(self) -> None:
        found = self._fs.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        for info in found:
            path = str(info.path)
            if info.type != fs.FileType.File or not _is_complete(info.base_name) or path in self._pending:
                continue
            if path in self._done:
                self._end(path)
                continue
            try:
                with self._fs.open_input_stream(path) as file:
                    # At most four bytes per character, and the seal; longer content has too many characters.
                    signal = self._signal(info.base_name, file.read(4 * MOST_CHARACTERS + 64))
                self._pending[path] = replace(signal, place=info.base_name, millis=_sent_ms(info))
            except OSError as exc:
                # A file that can't be read, or is gone by now, doesn't hold up the others.
                self._report_unreadable(exc)
            except SignalError as exc:
                self._report_malformed(exc)
                self._end(path)

    def _signal(self, name: str, content: bytes) -> Signal:
        sent = _SENT.fullmatch(name) is not None
        try:
            if is_sealed(content):
                return _read_line(opened(name, content))
            return _read_line(content)  # an earlier version's, or a file made by hand
        except (DamagedFileError, SignalError) as exc:
            if not sent:
                raise SignalError(exc.what) from None
            raise DamagedFileError(
                f"The signal in {self._path}/{name} is damaged, so what it asks for is not known.",
                "Remove the file, send the signal again, and restart the query.",
            ) from None

    def _recover(self) -> None:
        self._refresh()

    def _finish(self, key: str) -> None:
        # Remembered until the file is gone, so that a failed deletion doesn't bring the signal back.
        self._done.add(key)
        self._fs.delete_file(key)
        self._done.discard(key)


def send(options: CommonOptions, owner: str, signal: Signal) -> None:
    """Write a signal to a source's inbox, where the query reads it, now or when it next runs.

    Raises:
        SignalError: the signal is malformed.
        StateDirError: the state directory cannot be written.
    """
    parse_signal(signal)
    text = json.dumps(signal.to_json(), ensure_ascii=False)
    # The query must be able to read what is sent, and escapes make the text longer than the signal's parts.
    read_signal(text)
    content = text.encode() + b"\n"
    filesystem, root = open_filesystem(options.state_dir)
    directory = f"{root.rstrip('/')}/{owner}/{SIGNALS}"
    # Names sort as the signals were sent.
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex}.json"
    try:
        # The sender relies on the signal from here on, so it has to survive a power cut.
        write_durably(filesystem, f"{directory}/{name}", [sealed(name, content)])
    except OSError as exc:
        raise state_dir_error(
            options.state_dir,
            "where the signal cannot be written",
            exc,
            "Make it writable for whoever sends signals, free some space, or send the signal by another channel.",
        ) from None


def new_signal(kind: str, data: Mapping[str, object] | str | None = None, name: str | None = None) -> Signal:
    """Return a signal from the arguments of a program or a command line.

    Raises:
        SignalError: the type or the name is not text, or the data is not JSON.
    """
    if not isinstance(kind, str) or not isinstance(name, str | None):
        raise SignalError("A signal's type and id must be text.", f"Types: {', '.join(TYPES)}.")
    if not isinstance(data, str):
        try:
            data = json.dumps(data or {})
        except (TypeError, ValueError, RecursionError) as exc:
            raise SignalError(f"The data of the signal ({kind}) is not JSON: {exc}.") from None
    return Signal(name or str(uuid.uuid4()), kind, data)


def _sent_ms(info: fs.FileInfo) -> int:
    """Return when a file of the inbox was sent, from its name or else its modification time, in milliseconds."""
    nanos = info.base_name.partition("-")[0]
    return int(nanos) // 1_000_000 if nanos.isdecimal() else int((info.mtime_ns or 0) // 1_000_000)


def _is_complete(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _read_line(line: bytes) -> Signal:
    try:
        return read_signal(line.decode())
    except UnicodeDecodeError as exc:
        raise SignalError(f"The signal {line[:80]!r} is not UTF-8: {exc}.") from None
