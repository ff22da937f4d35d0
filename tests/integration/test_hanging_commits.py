"""A commit that is in the log and hangs, so that a read point lies before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from floodmark.demo.embedded import EmbeddedPostgres
from tests.conftest import Source, drop, make_source
from tests.integration.test_incremental import SIGNALS, query_of, signal
from tests.support.interleaving import KINDS, Sessions


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Source]:
    # The standby doesn't exist.
    settings = {"synchronous_standby_names": "nobody", "synchronous_commit": "local"}
    with EmbeddedPostgres(16, settings) as server:
        made = make_source(server, tmp_path / "state")
        made.execute(SIGNALS)
        yield made
        drop(made)


@pytest.mark.parametrize("kind", ["blocking", "parallel"])
def test_what_a_read_point_does_not_see_comes_behind_its_rows(shop: Source, kind: str) -> None:
    """A consumer applies micro-batches as they come, each in the order of positions."""
    with psycopg.connect(shop.conninfo) as conn:
        sessions = Sessions(shop.conninfo, "t", KINDS[0], [conn])
        query = query_of(shop, None, table_include_list=r"public\.(signals|none)")
        if kind == "blocking":
            query = query_of(shop, None)
        query.drain()
        sessions.create([1, 2])
        offset = query.offset
        query.stop()
        query = query_of(shop, offset, snapshot_new_tables="parallel" if kind == "parallel" else "off")
        if kind == "blocking":
            signal(shop, "execute-snapshot", type="blocking", data_collections=[r"public\.t"])
        sessions.step((0, "update", 1, 1))
        sessions.step((0, "stall", 0, 0))
        rows: list[list[dict[str, Any]]] = []
        for _ in range(200):
            rows.append(query.step())
            if any(row["op"] == "r" for row in rows[-1]):
                break
        sessions.finish()
        rows.append(query.drain())
        query.stop()
        state: dict[str, Any] = {}
        states: list[Any] = []
        for batch in rows:
            for row in sorted(batch, key=lambda row: str(row["position"])):
                if row["table"] == "t" and row["value"]:
                    state[row["key"]] = json.loads(row["value"])["after"]["v"]
                    states.append((row["key"], state[row["key"]]))
        actual = {v for v, _ in (found for found in sessions.rows().values() if found)}
        assert set(state.values()) == actual
        for key in state:
            seen = [v for name, v in states if name == key]
            assert seen == sorted(seen), f"{key} went back in time: {seen}"
