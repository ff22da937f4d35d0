"""Options that change events, each by itself, on one small set of tables and changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.conformance.oracle.cases.case import END, SCHEMA, Case, table
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column

_COLUMNS = [
    column("ID", "NUMBER(9,0)", nullable=False),
    column("NAME", "VARCHAR2(50)"),
    column("CITY", "NVARCHAR2(50)"),
    column("KIND", "CHAR(4)", nullable=False, default="'none'"),
    column("AMOUNT", "NUMBER(8,2)", default="1.5"),
    column("WHOLE", "NUMBER(18,0)"),
    column("ANY", "NUMBER"),
    column("AT", "TIMESTAMP(6)"),
    column("RAW", "RAW(8)"),
    column("SPAN", "INTERVAL DAY(3) TO SECOND(6)"),
    column("TEXT", "CLOB"),
]
_TABLES = ("ORDERS", "ITEMS", "NOTES")


def _row(number: int, **values: Any) -> dict[str, Any]:
    return {
        "ID": number,
        "NAME": f"Jürgen O'Neil {number}",
        "CITY": "Żywiec 漢字",
        "KIND": "a",
        "AMOUNT": Decimal("12.5") * number,
        "WHOLE": number * 10**12,
        "ANY": Decimal("0.125") * number,
        "AT": datetime(2026, 1, 2, 3, 4, 5, number),
        "RAW": bytes([number % 256, 255]),
        "SPAN": "+001 02:03:04.500000",
        "TEXT": "inline",
        **values,
    }


def _setup(database: OracleDatabase) -> None:
    orders = database.create_table(SCHEMA, "ORDERS", _COLUMNS, ["ID"], logged=False)
    database.create_table(SCHEMA, "ITEMS", [*_COLUMNS[:2], *_COLUMNS[3:6]], ["KIND", "ID"], logged=False)
    notes = database.create_table(SCHEMA, "NOTES", _COLUMNS[:3], logged=False)
    transaction = database.begin()
    for number in (1, 2):
        transaction.insert(orders, **_row(number))
        transaction.insert(notes, ID=number, NAME=None)
    transaction.commit()


def _changes(database: OracleDatabase) -> None:
    orders, items, notes = (table(database, name) for name in _TABLES)
    transaction = database.begin("ANN", client="web")
    transaction.insert(orders, **_row(10))
    transaction.update(orders, {"ID": 10}, NAME=None, AMOUNT=None)
    transaction.update(orders, {"ID": 1}, NAME="J", CITY=None)
    transaction.insert(items, ID=1, NAME="item", KIND="k", AMOUNT=Decimal("-0.01"), WHOLE=-1)
    transaction.commit()
    transaction = database.begin("BEN")
    transaction.update(items, {"ID": 1}, KIND="l")
    transaction.update(items, {"ID": 1}, NAME="item")
    transaction.delete(items, {"ID": 1})
    transaction.insert(notes, ID=3, NAME="note" * 10)
    transaction.delete(notes, {"ID": 2})
    transaction.commit()
    transaction = database.begin(client="job")
    transaction.update(orders, {"ID": 2}, ID=20)
    transaction.delete(orders, {"ID": 20})
    transaction.update(notes, {"ID": 1}, NAME="first")
    transaction.commit()


def _truncate(database: OracleDatabase) -> None:
    database.truncate(table(database, "NOTES"))


_BASE = Case("", _setup, [_changes, _truncate], tables=_TABLES, compact=True)
_SCHEMAS = {"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"}
_CAPTURED_DDL = {"schema.history.internal.store.only.captured.tables.ddl": "true"}
"""Otherwise Debezium announces tables that aren't captured, too."""


def _case(name: str, options: dict[str, str], schemas: bool = False) -> Case:
    return replace(_BASE, name=f"options/{name}", options={**options, **(_SCHEMAS if schemas else {})})


def _filtered(name: str, options: dict[str, str]) -> Case:
    return _case(name, {**_CAPTURED_DDL, **options})


def _named(*names: str) -> str:
    return ",".join(rf"{SCHEMA}\.{name}" for name in (*names, END))


def _column(option: str, names: str) -> dict[str, str]:
    return {f"column.{option}": rf"{SCHEMA}\.(ORDERS|ITEMS|NOTES)\.({names})"}


_ADJUSTED = ("avro", "avro_unicode")
_MODES = ("none", "in", "regex")
OPTIONS = (
    _case("plain", {}),
    _case("schemas", {}, schemas=True),
    *(
        _case(f"skipped_{one.replace(',', '_')}", {"skipped.operations": one})
        for one in ("none", "c", "t", "u,d", "c,u")
    ),
    _case("skip_without_change", {"skip.messages.without.change": "true"}),
    _case(
        "skip_without_change_of_columns",
        {"skip.messages.without.change": "true", "column.include.list": rf"{SCHEMA}\.\w+\.(ID|KIND|CITY)"},
    ),
    _case("column_exclude", _column("exclude.list", "NAME|AT|RAW"), schemas=True),
    _case("column_include", {"column.include.list": rf"{SCHEMA}\.\w+\.(ID|KIND|NAME)"}, schemas=True),
    _case("mask_0", _column("mask.with.0.chars", "NAME|KIND|CITY")),
    _case("mask_7", _column("mask.with.7.chars", "NAME|CITY"), schemas=True),
    _case("mask_hash", _column("mask.hash.SHA-256.with.salt.12345", "NAME|CITY")),
    _case("mask_hash_v2", _column("mask.hash.v2.SHA-512.with.salt.12345", "NAME|CITY"), schemas=True),
    _case("mask_hash_md5", _column("mask.hash.v2.MD5.with.salt.99", "NAME|TEXT")),
    _case("truncate_3", _column("truncate.to.3.chars", "NAME|CITY|TEXT"), schemas=True),
    _case("truncate_20", _column("truncate.to.20.chars", "NAME|CITY")),
    _case("message_keys", {"message.key.columns": rf"{SCHEMA}\.NOTES:ID;{SCHEMA}\.ORDERS:NAME,ID"}, schemas=True),
    _case("message_keys_regex", {"message.key.columns": rf"{SCHEMA}\.(ORDERS|ITEMS):KIND"}),
    _case("propagate_columns", {"column.propagate.source.type": rf"{SCHEMA}\.ORDERS\..*"}, schemas=True),
    _case("propagate_types", {"datatype.propagate.source.type": r".+\.NUMBER,.+\.VARCHAR2"}, schemas=True),
    _case("propagate_more_types", {"datatype.propagate.source.type": r".+\.(CLOB|TIMESTAMP.*|RAW)"}, schemas=True),
    _case("decimal_string", {"decimal.handling.mode": "string"}, schemas=True),
    _case("decimal_double", {"decimal.handling.mode": "double"}, schemas=True),
    _case("decimal_precise", {"decimal.handling.mode": "precise"}, schemas=True),
    _case(
        "decimal_string_legacy", {"decimal.handling.mode": "string", "legacy.decimal.handling.strategy": "true"}, True
    ),
    _case(
        "decimal_double_legacy", {"decimal.handling.mode": "double", "legacy.decimal.handling.strategy": "true"}, True
    ),
    *(
        _case(f"time_{mode}", {"time.precision.mode": mode}, schemas=True)
        for mode in ("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")
    ),
    *(_case(f"binary_{mode}", {"binary.handling.mode": mode}, True) for mode in ("base64", "base64-url-safe", "hex")),
    _case("interval_string", {"interval.handling.mode": "string"}, schemas=True),
    _case("null_for_default", {"value.converter.replace.null.with.default": "false"}),
    _case("null_for_default_schemas", {"value.converter.replace.null.with.default": "false"}, schemas=True),
    _case("placeholder", {"unavailable.value.placeholder": "(not there)"}),
    _case("placeholder_hex", {"unavailable.value.placeholder": "hex:00ff"}),
    _case("lob", {"lob.enabled": "true"}),
    _case("redo_sql", {"log.mining.include.redo.sql": "true"}, schemas=True),
    _case("no_schema_changes", {"include.schema.changes": "false"}),
    _case("comments", {"include.schema.comments": "true"}, schemas=True),
    _case("transactions", {"provide.transaction.metadata": "true"}, schemas=True),
    _case("transactions_topic", {"provide.transaction.metadata": "true", "topic.transaction": "tx"}),
    _case("transactions_skipped", {"provide.transaction.metadata": "true", "skipped.operations": "u"}),
    _case("topic_delimiter", {"topic.delimiter": "-", "topic.cache.size": "10"}),
    _case("topic_prefix", {"topic.prefix": "another-prefix_1"}, schemas=True),
    *(
        _case(f"topics_{name}", {"topic.naming.strategy": f"io.debezium.schema.{name}TopicNamingStrategy"}, True)
        for name in ("Default", "Schema", "SchemaUnicode", "DefaultUnicode")
    ),
    _case(
        "topics_regex",
        {
            "topic.naming.strategy": "io.debezium.schema.SchemaRegexTopicNamingStrategy",
            "topic.regex": r"(.*)\.CASES\.(ORDERS|ITEMS)",
            "topic.replacement": "$1.both",
        },
        True,
    ),
    *(
        _case(f"adjusted_{mode}", {"schema.name.adjustment.mode": mode, "field.name.adjustment.mode": mode}, True)
        for mode in _ADJUSTED
    ),
    *(
        _filtered(f"tables_{mode}", {"log.mining.query.filter.mode": mode, "table.include.list": _named("ORDERS")})
        for mode in _MODES
    ),
    *(
        _filtered(
            f"without_tables_{mode}",
            {"log.mining.query.filter.mode": mode, "table.include.list": "", "table.exclude.list": rf"{SCHEMA}\.NOTES"},
        )
        for mode in _MODES
    ),
    _filtered("schemas_include", {"table.include.list": "", "schema.include.list": SCHEMA}),
    *(
        _filtered(
            f"users_{mode}",
            {
                "log.mining.query.filter.mode": mode,
                "table.include.list": _named(*_TABLES),
                "log.mining.username.include.list": "APP,ANN",
            },
        )
        for mode in _MODES
    ),
    *(
        _filtered(
            f"without_users_{mode}",
            {
                "log.mining.query.filter.mode": mode,
                "table.include.list": _named(*_TABLES),
                "log.mining.username.exclude.list": "BEN",
            },
        )
        for mode in _MODES
    ),
    _case("clients", {"log.mining.clientid.include.list": "web"}),
    _case("without_clients", {"log.mining.clientid.exclude.list": "web"}),
    _case("small_fetches", {"query.fetch.size": "2", "snapshot.fetch.size": "1"}),
    _case("no_locks", {"snapshot.locking.mode": "none"}),
    _case("one_log", {"log.mining.log.count.min": "1"}),
)
