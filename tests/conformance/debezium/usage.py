"""What a tree of processes costs: CPU seconds and memory, sampled with psutil."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import psutil

INTERVAL_S = 0.5
MEMORY_INTERVAL_S = 2.0
GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


@dataclass
class ProcessUsage:
    """One process as it was seen last."""

    pid: int
    label: str
    cpu_s: float
    peak_rss: int


@dataclass(frozen=True)
class Usage:
    """The cost of a tree of processes between two moments."""

    wall_s: float
    cpu_s: float
    peak_memory: int
    processes: list[ProcessUsage] = field(default_factory=list)


class TreeSampler:
    """Samples a process and its descendants in a thread; use it as a context manager.

    The thread is needed for peaks, and where descendants come and go: `now` and `usage` sample, too. It takes CPU
    time from what is measured, most of it for the memory.

    The CPU time of descendants that have ended is what it was when they were seen last: their parents' accounts don't
    have it if they ignore their children's end, as Spark's daemon does. Peak memory is the largest sum of proportional
    set sizes at one moment, in which pages shared by forked processes count once; for a single process it is its own
    largest resident size.

    Args:
        root: the pid of the process at the top.
        exclude: pids that are left out, together with their descendants.
    """

    def __init__(self, root: int, exclude: Iterable[int] = ()) -> None:
        self._root = root
        self._exclude = frozenset(exclude)
        self._processes: dict[int, ProcessUsage] = {}
        self._cpu_s = 0.0
        self._peak_memory = 0
        self._memory_at = 0.0
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="usage", daemon=True)
        self._sample()
        self._start = (time.monotonic(), self._cpu_s)

    def __enter__(self) -> TreeSampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def now(self) -> tuple[float, float]:
        """Return the monotonic time and the CPU seconds used up to it."""
        self._sample()
        with self._lock:
            return time.monotonic(), self._cpu_s

    def usage(self, since: tuple[float, float] | None = None, until: tuple[float, float] | None = None) -> Usage:
        """Return the cost between two results of `now`; from the start and up to this moment by default."""
        begin, end = since or self._start, until or self.now()
        with self._lock:
            peaks = sorted(self._processes.values(), key=lambda process: -process.peak_rss)
            return Usage(end[0] - begin[0], end[1] - begin[1], self._peak_memory, peaks)

    def _loop(self) -> None:
        while not self._stopping.wait(INTERVAL_S):
            self._sample()

    def _sample(self) -> None:
        with self._lock:
            now = time.monotonic()
            weigh = now - self._memory_at >= MEMORY_INTERVAL_S
            total_memory = 0
            for process in self._tree():
                try:
                    with process.oneshot():
                        times, rss = process.cpu_times(), process.memory_info().rss
                        own = times.user + times.system
                        self._remember(process, own, rss)
                    if weigh:
                        total_memory += getattr(process.memory_full_info(), "pss", rss)
                except GONE:
                    continue
            self._cpu_s = sum(one.cpu_s for one in self._processes.values())
            self._peak_memory = max(self._peak_memory, total_memory)
            if weigh:
                self._memory_at = now

    def _tree(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self._root)
            family = [root, *root.children(recursive=True)]
        except GONE:
            return []
        excluded, found = set(self._exclude), []
        for process in family:
            try:
                if process.pid in excluded or process.ppid() in excluded:
                    excluded.add(process.pid)
                else:
                    found.append(process)
            except GONE:
                continue
        return found

    def _remember(self, process: psutil.Process, cpu_s: float, rss: int) -> None:
        known = self._processes.get(process.pid)
        if known is None:
            known = ProcessUsage(process.pid, label(process.cmdline()), cpu_s, rss)
            self._processes[process.pid] = known
        elif known.label == "?" or cpu_s < 1:
            known.label = label(process.cmdline())
        known.cpu_s = cpu_s
        known.peak_rss = max(known.peak_rss, rss, _high_water_mark(process.pid))


def label(command: list[str]) -> str:
    """Return a short name for a command line: the module of a Python process, the main class of a JVM."""
    if not command:
        return "?"
    program = Path(command[0]).name
    if "-m" in command[:-1]:
        return f"{program} {command[command.index('-m') + 1]}"
    if program == "java":
        return next((f"java {arg}" for arg in command if "SparkSubmit" in arg or "DebeziumRunner" in arg), "java")
    return program


def _high_water_mark(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
