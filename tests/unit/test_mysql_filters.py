"""What filters of MySQL and MariaDB leave out."""

from __future__ import annotations

import pytest

from floodmark.connectors.mysql.checks.filters import _leaves_out

TABLE = ("shop", "orders_1")


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        ({}, False),
        ({"binlog_do_db": ""}, False),
        ({"binlog_do_db": "a,shop"}, False),
        ({"binlog_do_db": "a, b"}, True),
        ({"binlog_ignore_db": "shop"}, True),
        ({"binlog_ignore_db": "SHOPS"}, False),
        ({"replicate_do_table": "shop.orders_1"}, False),
        ({"replicate_do_table": "shop.orders"}, True),
        ({"replicate_do_table": "shop.orders", "replicate_wild_do_table": "shop.%"}, False),
        ({"replicate_wild_ignore_table": "shop.orders\\_%"}, True),
        ({"replicate_wild_ignore_table": "shop.orders\\_%x"}, False),
        ({"replicate_wild_ignore_table": "sho_.%"}, True),
        ({"replicate_ignore_table": "shop.orders_1,shop.b"}, True),
        ({"replicate_wild_do_table": "shop.%", "replicate_ignore_db": "other"}, False),
    ],
)
def test_filters(settings: dict[str, str], left_out: bool) -> None:
    assert _leaves_out(settings, TABLE) == left_out
