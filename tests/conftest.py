"""Servers, databases and sessions for the tests."""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from floodmark.demo.embedded import VERSIONS, EmbeddedPostgres
from floodmark.schema_registry import client
from tests.support import quick_start
from tests.support.contrib import contrib_server
from tests.support.databases import Postgres
from tests.support.delta_spark import DeltaSpark, running_delta_spark
from tests.support.kafka import Broker, running_broker
from tests.support.mysql import MysqlServer
from tests.support.patience import stretch
from tests.support.schema_registry import RunningRegistry, running_registry

SHORT = bool(os.environ.get("FLOODMARK_SHORT"))
"""Whether what differs in the server's version or in a channel only runs once; ``make test`` sets it."""
SETTINGS = {"max_replication_slots": "200", "max_wal_senders": "100"}

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
quick_start.configure()

# How long a case takes says nothing while other tests run beside it.
# Whatever else runs on the machine says nothing of a test.
settings.register_profile("floodmark", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("floodmark")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Create the user that servers run as, before several processes do it at the same time."""
    if not hasattr(session.config, "workerinput"):
        for version in VERSIONS:
            EmbeddedPostgres(version).close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let tests take longer where the machine has other work to do, and leave some out if that is asked for."""
    if SHORT:
        left_out = for_another_server({item.nodeid for item in items})
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]
    for item in items:
        stretch(item)


def for_another_server(names: Set[str]) -> set[str]:
    """Return all but one of the cases that differ only in PostgreSQL's version, or in being for MySQL or MariaDB.

    Each server keeps about as many cases. What its events are beside Debezium's is in all of them.

    Args:
        names: those of all cases.
    """
    alike = defaultdict[str, list[str]](list)
    for name in sorted(names):
        if not name.startswith("tests/conformance/"):
            test, bracket, case = name.partition("[")
            case = re.sub(r"\bpg16\b|(?<=[-\[])16(?=[-\]])", lambda found: found[0].replace("16", "18"), bracket + case)
            alike[test + re.sub(r"(?<![a-z])mariadb(?![a-z])", "mysql", case)].append(name)
    kept = {cases[crc32(test.encode()) % len(cases)] for test, cases in alike.items()}
    return {name for cases in alike.values() for name in cases} - kept


@dataclass
class Source:
    """A database of its own on a test server, and the options to capture it."""

    server: EmbeddedPostgres
    dbname: str
    options: dict[str, str]

    @property
    def conninfo(self) -> str:
        return self.server.conninfo(self.dbname)

    @property
    def database(self) -> Postgres:
        """The database, for workloads."""
        return Postgres(self.conninfo)

    def execute(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""
        with psycopg.connect(self.conninfo, autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement)


def make_source(server: EmbeddedPostgres, state: Path, **options: str) -> Source:
    """Create a database on a server."""
    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.conninfo(), autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
    base = {
        **server.options(name),
        "topic.prefix": "test",
        "slot.name": f"s_{name}",
        "state.dir": str(state),
        "slot.max.retries": "30",
        "slot.retry.delay.ms": "1000",
    }
    return Source(server, name, {**base, **options})


@pytest.fixture(scope="session")
def pg16() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(16, SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def pg18() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(18, SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def contrib16() -> Iterator[EmbeddedPostgres]:
    with contrib_server(16, SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def contrib18() -> Iterator[EmbeddedPostgres]:
    with contrib_server(18, SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return a Kafka broker that all tests share: each uses topics of its own."""
    with running_broker(tmp_path_factory.mktemp("kafka") / "broker") as found:
        yield found


@pytest.fixture(scope="session")
def mysql() -> Iterator[MysqlServer]:
    with MysqlServer("mysql") as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MysqlServer]:
    with MysqlServer("mariadb") as server:
        yield server


@pytest.fixture(scope="session")
def registry() -> Iterator[RunningRegistry]:
    """Return a schema registry that other tests use too: each has topics of its own."""
    with running_registry() as one:
        yield one


@pytest.fixture
def other_process() -> Iterator[None]:
    """Forget what registries have answered, as another process would."""
    client._registries.clear()
    yield
    client._registries.clear()


@pytest.fixture(params=["mysql", "mariadb"])
def binlog_server(request: pytest.FixtureRequest) -> MysqlServer:
    """Return a server that other tests use too: each test has a database of its own."""
    found: MysqlServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["pg16", "pg18"])
def server(request: pytest.FixtureRequest) -> EmbeddedPostgres:
    found: EmbeddedPostgres = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def source(server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Source]:
    made = make_source(server, tmp_path / "state")
    yield made
    drop(made)


def drop_slots(source: Source, name: str = "%") -> None:
    """Drop a source's slots whose names match, so that the server's other tests have slots and no held log."""
    chosen = "FROM pg_replication_slots WHERE database = %s AND slot_name LIKE %s AND NOT temporary"
    values = [source.dbname, name]
    with psycopg.connect(source.server.conninfo(), autocommit=True) as conn:
        conn.execute(f"SELECT pg_terminate_backend(active_pid) {chosen} AND active", values)
        for _ in range(100):
            if not conn.execute(f"SELECT 1 {chosen} AND active", values).fetchone():
                break
            conn.execute("SELECT pg_sleep(0.05)")
        conn.execute(f"SELECT pg_drop_replication_slot(slot_name) {chosen}", values)


def drop(source: Source) -> None:
    """Drop a source's slots and its database: those of all tests would take gigabytes."""
    drop_slots(source)
    with psycopg.connect(source.server.conninfo(), autocommit=True) as conn:
        conn.execute(f"DROP DATABASE {source.dbname} WITH (FORCE)")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    quick_start.prepare()
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def delta_spark() -> Iterator[DeltaSpark]:
    """Return the Spark of Delta's makers, in a process of its own."""
    with running_delta_spark() as session:
        yield session


_BY_SPARK = pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.long])


@pytest.fixture(params=[None, _BY_SPARK], ids=["floodmark", "spark"])
def engine(request: pytest.FixtureRequest) -> DeltaSpark | None:
    """Return what writes a mirror's tables; None: Floodmark itself."""
    found: DeltaSpark | None = None if request.param is None else request.getfixturevalue("delta_spark")
    return found
