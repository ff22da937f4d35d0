"""Options of the sink jdbc, its URLs and the names of its targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from floodmark.errors import ConfigError
from floodmark.sinks.relational.names import target_name
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.url import parse_url

URL = "jdbc:postgresql://db/shop"


def test_urls() -> None:
    found = parse_url("jdbc:postgresql://one:5433,two/my%20shop?currentSchema=lake&sslmode=require")
    assert found.kind == "postgres"
    assert found.hosts == (("one", 5433), ("two", 5432))
    assert found.database == "my shop"
    assert found.parameters == {"currentSchema": "lake", "sslmode": "require"}
    assert parse_url("jdbc:mariadb://[::1]:3307/shop").hosts == (("::1", 3307),)
    assert str(parse_url("jdbc:mysql://db/shop?sslMode=required")) == "db:3306/shop"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://db/shop", "must be jdbc:postgresql://"),
        ("jdbc:oracle://db/shop", "must be jdbc:postgresql://"),
        ("jdbc:postgresql:shop", "must be jdbc:postgresql://"),
        ("jdbc:postgresql://db/", "names no database"),
        ("jdbc:postgresql://:5432/shop", "host is missing"),
        ("jdbc:postgresql://db:99999/shop", "host is missing"),
        ("jdbc:mysql://a,b/shop", "only URLs of PostgreSQL"),
        ("jdbc:postgresql://me:hidden1@db/shop", "connection.username"),
        ("jdbc:postgresql://db/shop?user=me&password=hidden1", "connection.username"),
        ("jdbc:postgresql://db/shop?sslpassword=hidden1", "connection.username"),
        ("jdbc:postgresql://db/shop?currentschema2=x", "Did you mean 'currentSchema'?"),
        ("jdbc:mysql://db/shop?useSSL=true", "Allowed are sslMode"),
    ],
)
def test_wrong_urls(url: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        JdbcOptions.parse({"connection.url": url})
    assert told in str(caught.value)
    assert "hidden1" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("collection.name.format", "all", "source.table"),
        ("collection.name.format", "${source.tabel}", "Did you mean 'source.table'?"),
        ("collection.name.format", "$a${source.table}", "'$'"),
        ("schema.evolution", "advanced", "basic, none"),
        ("insert.mode", "insert", "upsert"),
        ("delete.enabled", "false", "true"),
        ("table.name.format", "a", "collection.name.format"),
        ("primary.key.fields", "a", "message.key.columns"),
        ("connection.user", "a", "connection.username"),
        ("flush.max.retries", "-1", "0 to 1000"),
    ],
)
def test_wrong_options(name: str, value: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        JdbcOptions.parse({"connection.url": URL, name: value})
    assert told in str(caught.value)


def test_debezium_options_without_effect() -> None:
    given = {"insert.mode": "upsert", "primary.key.mode": "record_key", "delete.enabled": "true", "batch.size": "500"}
    assert JdbcOptions.parse({"connection.url": URL, **given}).retries == 5


def test_names() -> None:
    assert target_name("${source.schema}_${source.table}", "public.orders", "shop", "db") == "public_orders"
    assert target_name("${topic}", "public.a.b", "shop", "db") == "shop_public_a_b"
    assert target_name("${source.db}-${source.table}", "shop.orders", "p", "") == "shop-orders"
    assert target_name("${source.table}", "public.${source.schema}", "p", "") == "${source.schema}"


def test_the_guide_has_all_options() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "jdbc.md").read_text(encoding="utf-8")
    assert [name for name in JdbcOptions.names() if f"`{name}`" not in guide] == []
