"""Statements with which a snapshot reads tables."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from floodmark.connectors.load import load_options
from floodmark.errors import ConfigError
from floodmark.extensions.snapshotter import SnapshotQuery
from floodmark.snapshots.select_statements import SelectStatements

BASE = {
    "connector": "mysql",
    "topic.prefix": "p",
    "state.dir": "/state",
    "database.hostname": "db",
    "database.user": "u",
    "database.server.id": "1",
    "snapshot.select.statement.overrides": "shop.a",
    "snapshot.select.statement.overrides.shop.a": "SELECT 1",
}


class _Query(SnapshotQuery):
    name = "test"

    def __init__(self) -> None:
        self.asked: list[tuple[str, Sequence[str]]] = []

    def snapshot_query(self, table: str, columns: Sequence[str]) -> str | None:
        self.asked.append((table, columns))
        return f"SELECT {', '.join(columns)} FROM {table}"


def statements(query: _Query | None = None, **more: str) -> SelectStatements:
    return SelectStatements(
        load_options({**BASE, **{name.replace("_", "."): text for name, text in more.items()}}), query
    )


def test_the_options_come_before_the_query_which_is_asked_once() -> None:
    query = _Query()
    found = statements(query)
    assert found
    assert found.of("shop.a", "`shop`.`a`", lambda: ["`v`"]) == (True, "SELECT 1")
    for _ in range(2):
        assert found.of("shop.b", "`shop`.`b`", lambda: ["`v`"]) == (True, "SELECT `v` FROM `shop`.`b`")
    assert query.asked == [("`shop`.`b`", ("`v`",))]


def test_without_a_statement_nobody_asks_for_columns() -> None:
    assert statements().of("shop.b", "`shop`.`b`", lambda: pytest.fail("asked")) == (False, None)


@pytest.mark.parametrize("chosen", ["", r"shop\..*"])
def test_a_table_that_is_not_read_is_an_error(chosen: str) -> None:
    found = statements(snapshot_include_collection_list=chosen)
    with pytest.raises(ConfigError, match=r"names the table 'shop\.a', which the snapshot does not read"):
        found.check(["shop.b"])
    found.check(["shop.a", "shop.b"])
    found.check([])


def test_a_table_that_the_snapshot_leaves_out_is_none() -> None:
    statements(snapshot_include_collection_list=r"shop\.b").check(["shop.b"])
