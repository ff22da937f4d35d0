"""Relational databases as targets: what they hold, pipelines into them, and micro-batches without Spark."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pyarrow as pa
from pyspark.sql import SparkSession

from floodmark.changes.typed_rows import rows_schema
from floodmark.config.common import CommonOptions
from floodmark.connectors.load import load_options
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.sinks.relational.connect import dialect_of
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.parts import make_parts
from floodmark.sinks.relational.staging import stage_part
from floodmark.sinks.relational.targets import RelationalTargets
from floodmark.spark.pipelines.model import Pipeline, parse_pipeline
from floodmark.spark.pipelines.query import start_query
from tests.conftest import Source
from tests.support.mysql import ADMIN, ADMIN_PASSWORD, MysqlServer
from tests.support.patience import within

QUICK = {"flush.retry.delay.ms": "100"}
Event = dict[str, Any]


class Target(Protocol):
    """A database for the tables that follow."""

    @property
    def options(self) -> dict[str, str]:
        """The sink's options for it."""

    def execute(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""

    def rows(self, statement: str) -> list[Any]:
        """Return the rows of a query."""

    def tables(self) -> list[str]:
        """Return the names of all tables."""


@dataclass
class PostgresTarget:
    """A database of its own on a PostgreSQL server."""

    server: EmbeddedPostgres
    dbname: str

    @property
    def options(self) -> dict[str, str]:
        url = f"jdbc:postgresql://127.0.0.1:{self.server.port}/{self.dbname}"
        return {"connection.url": url, "connection.username": self.server.user, **QUICK}

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.server.conninfo(self.dbname), autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement)

    def rows(self, statement: str) -> list[Any]:
        with psycopg.connect(self.server.conninfo(self.dbname), autocommit=True) as conn:
            return conn.execute(statement).fetchall()

    def tables(self) -> list[str]:
        return [name for (name,) in self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]


@dataclass
class MysqlTarget:
    """A database of its own on a MySQL or MariaDB server."""

    server: MysqlServer
    dbname: str

    @property
    def options(self) -> dict[str, str]:
        url = f"jdbc:{self.server.flavor}://127.0.0.1:{self.server.port}/{self.dbname}"
        return {"connection.url": url, "connection.username": ADMIN, "connection.password": ADMIN_PASSWORD, **QUICK}

    def execute(self, *statements: str) -> None:
        self.server.execute(*statements, database=self.dbname)

    def rows(self, statement: str) -> list[Any]:
        with self.server.connect(self.dbname) as session, session.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def tables(self) -> list[str]:
        return [name for (name,) in self.rows("SHOW TABLES")]


@contextmanager
def target_on(server: EmbeddedPostgres | MysqlServer) -> Iterator[Target]:
    """Make a database for targets, and drop it in the end."""
    name = f"target_{uuid.uuid4().hex[:12]}"
    if isinstance(server, MysqlServer):
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield MysqlTarget(server, name)
        finally:
            server.execute(f"DROP DATABASE {name}")
        return
    with psycopg.connect(server.conninfo(), autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
        try:
            yield PostgresTarget(server, name)
        finally:
            conn.execute(f"DROP DATABASE {name} WITH (FORCE)")


def pipeline_of(source: Source, target: Target, folder: Path, **options: str) -> Pipeline:
    """Return a pipeline that ends when it has caught up.

    Args:
        source: where the tables are.
        target: where they are to be.
        folder: for the checkpoint.
        options: of the sink, with underscores for dots.
    """
    given = {name.replace("_", "."): value for name, value in options.items()}
    return parse_pipeline(
        {
            "source": source.options,
            "sink": {"type": "jdbc", "options": {**target.options, **given}},
            "checkpoint": str(folder / "checkpoint"),
            "trigger": {"availableNow": "true"},
        }
    )


def run(spark: SparkSession, pipeline: Pipeline) -> None:
    """Run a pipeline to its end."""
    start_query(spark, pipeline).awaitTermination(int(within(120)))


def source_options(state: Path, **options: str) -> CommonOptions:
    """Return options of a source that is never connected to."""
    given = {"connector": "postgres", "database.hostname": "none", "database.dbname": "shop", "database.user": "cdc"}
    # Filters that let no target through, so that it isn't compared with the source.
    given |= {"table.include.list": "nothing"}
    own = {"topic.prefix": "test", "state.dir": str(state), "format": "arrow", "skipped.operations": "none"}
    return load_options({**given, **own, **{name.replace("_", "."): value for name, value in options.items()}})


def block(columns: pa.Schema, key: Sequence[str], events: Sequence[Event]) -> pa.Table:
    """Return events as a block of rows as ``format=rows`` has them.

    Args:
        columns: the table's columns.
        key: those of its key.
        events: each with ``op``, ``position``, and ``before``, ``after`` and ``unavailable`` where it has some.
    """
    rows = [{"unavailable": [], "unrepresentable": [], "key": list(key), **event} for event in events]
    return pa.Table.from_pylist(rows, rows_schema("t", pa.struct(list(columns))))


@dataclass
class Query:
    """A query that writes micro-batches without Spark: what its tasks and its driver do.

    Attributes:
        target: where it writes.
        state: its ``state.dir``.
        options: of the sink, with underscores for dots.
        source: of the source, with underscores for dots.
        query: its id.
        staged: whether tasks load their rows into staging tables.
    """

    target: Target
    state: Path
    options: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    query: str = field(default_factory=lambda: str(uuid.uuid4()))
    staged: bool = False

    def __post_init__(self) -> None:
        given = {name.replace("_", "."): value for name, value in self.options.items()}
        self.chosen = JdbcOptions.parse({**self.target.options, **given})
        self.dialect = dialect_of(self.chosen)
        self.start()

    def start(self) -> None:
        """Begin as a new process of the query would."""
        self.targets = RelationalTargets(
            self.dialect, source_options(self.state, **self.source), self.chosen, self.query
        )

    def write(self, batch: int, tables: Mapping[str, Sequence[pa.Table]]) -> None:
        """Write a micro-batch.

        Args:
            batch: its number.
            tables: the blocks of each table, one for each task.
        """
        aside = self.targets.aside()
        chosen = {table: blocks for table, blocks in tables.items() if table not in aside}
        self.targets.write(batch, {table: self.messages(batch, table, blocks) for table, blocks in chosen.items()})

    def messages(self, batch: int, table: str, blocks: Sequence[pa.Table]) -> list[Mapping[str, Any]]:
        """Return what tasks send."""
        parts = [part for rows in blocks for part in make_parts(table, [rows])]
        if self.staged:
            session = self.dialect.connect()
            parts = [stage_part(self.dialect, session, part, self.query, batch) for part in parts]
            session.close()
        return [part.to_message(table) for part in parts]
