"""The quick start in the README works as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg

import floodmark
from floodmark.demo.embedded import EmbeddedPostgres

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
OPTION = re.compile(r'\.option\("([^"]+)", "([^"]*)"\)')


def test_the_preparation_is_enough(tmp_path: Path) -> None:
    prepare = re.search(r"```sql\n(.*?)```", README, re.DOTALL)
    program = re.search(r"```python\n(.*?)\.load\(\)", README, re.DOTALL)
    assert prepare is not None
    assert program is not None
    options = dict(OPTION.findall(program[1]))
    assert options["table.include.list"] == "public.orders"
    with EmbeddedPostgres(18) as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as conn:
            conn.execute(f"CREATE DATABASE {options['database.dbname']}")
        with psycopg.connect(server.conninfo(options["database.dbname"]), autocommit=True) as conn:
            conn.execute("CREATE TABLE orders (id int PRIMARY KEY)")
            conn.execute("CREATE TABLE others (id int PRIMARY KEY)")
            for statement in re.sub("--.*", "", prepare[1]).split(";")[:-1]:
                conn.execute(statement.encode())
        place = {
            key: value for key, value in server.options("").items() if key in ("database.hostname", "database.port")
        }
        found = floodmark.check({**options, **place, "state.dir": str(tmp_path / "state")})
    assert [item for item in found if item.status == "error"] == []
    assert {"publication", "slot", "tables", "select privilege"} <= {item.check for item in found}
