"""Pipelines into relational databases, and what their targets hold."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from pyspark.sql import SparkSession

from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.spark.pipeline import start_query
from floodmark.spark.pipeline_file import Pipeline, parse_pipeline
from tests.conftest import Source
from tests.support.patience import within


@dataclass
class PostgresTarget:
    """A database of its own on a server, for the tables that follow."""

    server: EmbeddedPostgres
    dbname: str

    @property
    def options(self) -> dict[str, str]:
        """The sink's options for it."""
        url = f"jdbc:postgresql://127.0.0.1:{self.server.port}/{self.dbname}"
        return {"connection.url": url, "connection.username": self.server.user, "flush.retry.delay.ms": "100"}

    def execute(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""
        with psycopg.connect(self.server.conninfo(self.dbname), autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement)

    def rows(self, statement: str) -> list[Any]:
        """Return the rows of a query."""
        with psycopg.connect(self.server.conninfo(self.dbname), autocommit=True) as conn:
            return conn.execute(statement).fetchall()


@contextmanager
def postgres_target(server: EmbeddedPostgres) -> Iterator[PostgresTarget]:
    """Make a database for targets, and drop it in the end."""
    target = PostgresTarget(server, f"target_{uuid.uuid4().hex[:12]}")
    with psycopg.connect(server.conninfo(), autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {target.dbname}")
        try:
            yield target
        finally:
            conn.execute(f"DROP DATABASE {target.dbname} WITH (FORCE)")


def pipeline_of(source: Source, target: PostgresTarget, folder: Path, **options: str) -> Pipeline:
    """Return a pipeline that ends when it has caught up.

    Args:
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
