"""The quick start in the guide to Iceberg mirrors works as it is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.support import quick_start
from tests.support.cli import CLI
from tests.support.iceberg_readers import read_by_pyiceberg
from tests.support.iceberg_rest import running_rest_catalogue
from tests.support.iceberg_spark import catalogue_in, iceberg_environment, iceberg_jars
from tests.support.patience import within

GUIDE = (Path(__file__).parents[2] / "docs" / "iceberg.md").read_text(encoding="utf-8")
SCHEMA = "shop"


def asked(uri: str, path: str, content: Any = None) -> Any:
    """Return the answer of a catalogue; None: it has no such thing."""
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(f"{uri}/v1/{path}", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=within(30)) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def rows_of(uri: str, table: str) -> list[Any] | None:
    found = asked(uri, f"namespaces/{SCHEMA}/tables/{table}")
    if found is None:
        return None
    rows: list[Any] = read_by_pyiceberg(found["metadata-location"]).select(["id", "v"]).sort_by("id").to_pylist()
    return rows


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_example(tmp_path: Path) -> None:
    with EmbeddedPostgres(18) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as conn:
            conn.execute("CREATE ROLE cdc SUPERUSER LOGIN PASSWORD 'secret'")
            conn.execute("CREATE DATABASE shop")
        backend = {**catalogue_in(server, tmp_path / "tables"), "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog"}
        with (
            running_rest_catalogue(backend) as uri,
            psycopg.connect(server.conninfo("shop"), autocommit=True) as conn,
        ):
            asked(uri, "namespaces", {"namespace": [SCHEMA]})
            for table in ("orders", "customers", "others"):
                conn.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v text)")
                conn.execute(f"INSERT INTO {table} VALUES (1, '{table}'), (2, 'b')")
            found = re.search(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
            assert found is not None
            place = f"database.hostname: 127.0.0.1\n  database.port: {server.port}"
            text = found[1].replace("/shared", f"{tmp_path}/shared").replace("database.hostname: db", place)
            # The jar is there already, and isn't downloaded once more.
            text = text.replace("http://catalogue:8181", f"{uri}\n  spark.jars: {','.join(map(str, iceberg_jars()))}")
            file = tmp_path / "mirror.yaml"
            file.write_text(text + "trigger: {availableNow: true}\n")
            # The archive of classes of the tests' own Spark is another version's.
            own = {**iceberg_environment(), "PASSWORD": "secret", quick_start.OPTIONS: quick_start.FLAGS}

            def run() -> None:
                command = [*CLI, "run", str(file)]
                ended = subprocess.run(
                    command, capture_output=True, text=True, env={**os.environ, **own}, timeout=within(180)
                )
                assert ended.returncode == 0, ended.stderr[-4000:]

            run()
            for table in ("orders", "customers"):
                assert rows_of(uri, f"public_{table}") == [{"id": 1, "v": table}, {"id": 2, "v": "b"}]
            assert rows_of(uri, "public_others") is None
            conn.execute("UPDATE orders SET v = 'new' WHERE id = 1")
            conn.execute("DELETE FROM orders WHERE id = 2")
            run()
            assert rows_of(uri, "public_orders") == [{"id": 1, "v": "new"}]
