"""``floodmark verify`` of Iceberg tables."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import drop, make_source
from tests.support import quick_start
from tests.support.cli import CLI
from tests.support.iceberg_spark import LAKE, catalogue_in, iceberg_environment, properties, running_iceberg_spark
from tests.support.patience import within

SCHEMA = f"{LAKE}.shop"
TABLE = f"{SCHEMA}.public_a"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("options", [{}, {"deletes": "soft"}, {"deletion.vectors": "off"}], ids=["v3", "soft", "v2"])
def test_differences_are_found_and_repaired(tmp_path: Path, pg18: EmbeddedPostgres, options: dict[str, str]) -> None:
    source = make_source(pg18, tmp_path / "state")
    source.execute(
        "CREATE TABLE a (id int PRIMARY KEY, v text, n numeric(10,2), s smallint, t timestamp, z timestamptz, b bytea, "
        "d date, f real, l int[], j jsonb)",
        "INSERT INTO a SELECT g, 'v' || g, g / 4.0, -g, '2026-01-01 00:00:00.000001', '2026-01-01Z', '\\x00ff', "
        "'0044-03-15 BC', 0.1, '{1,NULL}', '{\"a\": 1}' FROM generate_series(1, 3000) g",
        "CREATE TABLE e (id int PRIMARY KEY)",
    )
    catalogues = {LAKE: {"type": "jdbc", **catalogue_in(pg18, tmp_path / "lake")}}
    content = {
        "source": source.options,
        "sink": {
            "type": "mirror",
            "format": "iceberg",
            "path": str(tmp_path / "out"),
            "options": {"engine": "spark", "catalog.schema": SCHEMA, **options},
        },
        "checkpoint": str(tmp_path / "checkpoint"),
        "trigger": {"availableNow": "true"},
        "spark": {**properties(catalogues), "spark.master": "local[2]"},
    }
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    own = {**os.environ, **iceberg_environment(), quick_start.OPTIONS: quick_start.FLAGS}

    def call(*arguments: str, code: int = 0) -> str:
        command = [*CLI, arguments[0], str(file), *arguments[1:]]
        done = subprocess.run(command, capture_output=True, text=True, env=own, check=False, timeout=within(240))
        assert done.returncode == code, (done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout

    def verify(*arguments: str, code: int = 0) -> dict[str, Any]:
        found = json.loads(call("verify", "--at-rest", "--json", *arguments, code=code))
        return {table["table"]: table for table in found["tables"]}

    with running_iceberg_spark(catalogues) as spark:
        spark.run(f"CREATE SCHEMA {SCHEMA}")
        call("run")
        source.execute("DELETE FROM a WHERE id > 2990", "UPDATE a SET v = 'new' WHERE id < 5")
        call("run")
        equal = verify()
        assert {name: table["status"] for name, table in equal.items()} == {"public.a": "equal", "public.e": "equal"}
        assert (equal["public.a"]["source_rows"], equal["public.a"]["target_rows"]) == (2990, 2990)
        assert equal["public.a"]["columns_left_out"] == []
        spark.run(f"DELETE FROM {TABLE} WHERE id = 7")
        spark.run(f"UPDATE {TABLE} SET n = 0, s = 1 WHERE id = 8")
        columns = ", ".join(name for name in spark.rows(f"SELECT * FROM {TABLE} LIMIT 1").column_names if name != "id")
        spark.run(f"INSERT INTO {TABLE} (id, {columns}) SELECT 9, {columns} FROM {TABLE} WHERE id = 9")
        spark.run(f"INSERT INTO {TABLE} (id, {columns}) SELECT 5000, {columns} FROM {TABLE} WHERE id = 10")
        spark.run(f"INSERT INTO {TABLE} (id, v) VALUES (5001, 'mine')")
        found = verify(code=1)["public.a"]
        kinds = {one["key"]["id"]: (one["kind"], one["columns"]) for one in found["differences"]}
        assert kinds == {
            7: ("missing", []),
            8: ("differs", ["n", "s"]),
            9: ("doubled", []),
            5000: ("surplus", []),
            5001: ("surplus", []),
        }
        file.write_text(yaml.safe_dump({**content, "trigger": {"processingTime": "1 second"}}), encoding="utf-8")
        running = subprocess.Popen([*CLI, "run", str(file)], env=own, stderr=subprocess.DEVNULL)
        try:
            call("verify", "--repair", "--wait", str(int(within(60))))
        finally:
            running.terminate()
            running.wait(within(60))
        assert verify()["public.a"]["status"] == "equal"
    drop(source)
