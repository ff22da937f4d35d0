"""A converted configuration of Debezium passes ``floodmark check`` at a real server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psycopg

from floodmark.demo.embedded import EmbeddedPostgres
from tests.support.cli import CLI
from tests.support.patience import within

DATABASE = "converted"


def test_debezium_servers_configuration_passes_the_check(pg18: EmbeddedPostgres, tmp_path: Path) -> None:
    given = tmp_path / "application.properties"
    options = {name: value for name, value in pg18.options(DATABASE).items() if name != "connector"}
    source = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage.file.filename": "data/offsets.dat",
        "plugin.name": "pgoutput",
        "slot.name": DATABASE,
        "topic.prefix": "shop",
        "table.whitelist": r"public\\.orders",
        **options,
        "database.password": "${PASSWORD:none}",
    }
    lines = ["debezium.sink.type=redis", "debezium.sink.redis.address=redis:6379"]
    given.write_text("\n".join([*lines, *(f"debezium.source.{name}={value}" for name, value in source.items())]))
    with psycopg.connect(pg18.conninfo(), autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {DATABASE}")
        try:
            with psycopg.connect(pg18.conninfo(DATABASE), autocommit=True) as own:
                own.execute("CREATE TABLE orders (id int PRIMARY KEY)")
            done = run("convert", str(given), "--directory", str(tmp_path / "query"))
            assert done.returncode == 1, done.stderr
            assert "debezium.sink.type" in done.stdout, "only the sink is missing"
            assert done.stdout.count("not supported") == 3, done.stdout
            checked = run("check", str(tmp_path / "application.yaml"), PASSWORD="none")
            assert checked.returncode == 0, checked.stdout + checked.stderr
            assert "error" not in checked.stdout.splitlines()[-1]
        finally:
            conn.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CLI, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=within(120),
        env={**os.environ, **environment},
    )
