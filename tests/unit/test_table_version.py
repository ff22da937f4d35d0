"""Which columns events of a table hold, and what stands for nulls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from floodmark.changes.table_version import TableVersion
from floodmark.changes.typed_rows import RowVersion
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.postgres.decode.relation import Column, Relation
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.types.type_info import TypeInfo
from tests.support.options import REQUIRED
from tests.unit.test_types_helpers import options, strings

INT, TEXT, LSN = 23, 25, 3220
TYPES = {LSN: TypeInfo("pg_lsn", "b")}


def relation(*columns: Column, key: Sequence[str] = ()) -> Relation:
    return Relation(1, "s", "t", "d", columns, tuple(key), TYPES)


def texts(*values: str | None) -> list[RawColumn]:
    return [RawColumn(strings([value])) for value in values]


def event(version: TableVersion, after: list[Any] | None, before: list[Any] | None = None) -> tuple[Any, Any]:
    """Return key and value of one event."""
    made = version.columns("c" if before is None else "d", 1, before, after, ["{}"])
    return tuple(json.loads(made[name][0].as_py() or "null") for name in ("key", "value"))


def test_columns_without_a_mapping_are_in_keys_alone() -> None:
    table = relation(Column("a", INT, -1, True, False), Column("x", LSN, -1, True, False), key=("a", "x"))
    version = TableVersion(table, options())
    key, value = event(version, version.encode(texts("1", "0/1")))
    assert (key, value["after"]) == ({"a": 1, "x": "MC8x"}, {"a": 1})
    whole = TableVersion(table, options(include_unknown_datatypes="true"))
    assert event(whole, whole.encode(texts("1", "0/1")))[1]["after"] == {"a": 1, "x": "MC8x"}


def test_typed_rows_hold_columns_without_a_mapping() -> None:
    row = pa.struct([("a", pa.int32()), ("x", pa.string())])
    version = RowVersion(relation(Column("a", INT, -1, True), Column("x", LSN, -1, False)), options(), row)
    after = version.columns("c", 1, None, version.encode(texts("1", "0/1")), [])["after"]
    assert after.to_pylist() == [{"a": 1, "x": "0/1"}]


def test_defaults_stand_for_nulls() -> None:
    table = relation(
        Column("id", INT, -1, True, False, "nextval('s'::regclass)"),
        Column("a", INT, -1, False, True, "5"),
        Column("b", TEXT, -1, False, False, "'b'::text"),
        Column("c", TEXT, -1, False, True),
        key=("id",),
    )
    version = TableVersion(table, options(schemas_enable="true"))
    key, value = event(version, version.encode(texts("1", None, "x", None)))
    assert value["payload"]["after"] == {"id": 1, "a": 5, "b": "x", "c": None}
    fields = {field["field"]: field.get("default") for field in value["schema"]["fields"][0]["fields"]}
    assert fields == {"id": 0, "a": 5, "b": "b", "c": None}
    assert key["schema"]["fields"][0]["default"] == 0
    _, value = event(version, None, version.encode_old(texts("1", None, None, None), complete=False))
    assert value["payload"]["before"] == {"id": 1, "a": 5, "b": "b", "c": None}


def test_nulls_can_stay_nulls() -> None:
    table = relation(Column("a", INT, -1, False, True, "5"), Column("b", INT, -1, False, False, "6"))
    version = TableVersion(table, options(value_converter_replace_null_with_default="false", schemas_enable="true"))
    _, value = event(version, version.encode(texts(None, "1")))
    assert value["payload"]["after"] == {"a": None, "b": 1}
    assert [field["default"] for field in value["schema"]["fields"][0]["fields"]] == [5, 6]
    _, value = event(version, None, version.encode_old(texts(None, None), complete=False))
    assert value["payload"]["before"] == {"a": None, "b": 6}


def test_defaults_of_masked_columns_are_masked_where_they_stand_for_what_the_log_lacks() -> None:
    table = relation(Column("id", INT, -1, True, False), Column("b", TEXT, -1, False, False, "'b'::text"), key=("id",))
    version = TableVersion(table, PostgresOptions.parse({**REQUIRED, "column.mask.with.3.chars": "s.t.b"}))
    _, value = event(version, None, version.encode_old(texts("1", None), complete=False))
    assert value["before"] == {"id": 1, "b": "***"}


def test_transforms_see_nulls_and_texts_beside_values_that_the_log_lacks() -> None:
    table = relation(
        Column("id", INT, -1, True, False),
        Column("b", TEXT, -1, False, True, "'d'::text"),
        Column("n", TEXT, -1, False, False),
        key=("id",),
    )
    kind = "io.debezium.transforms.ExtractNewRecordState"
    routed = {
        "transforms": "one",
        "transforms.one.type": kind,
        "transforms.one.delete.tombstone.handling.mode": "rewrite",
    }
    version = TableVersion(table, PostgresOptions.parse({**REQUIRED, **routed, "transforms.one.route.by.field": "b"}))
    b = RawColumn(strings([None, None, "a"]), np.array([True, False, False]))
    after = version.encode([RawColumn(strings(["1", "2", "3"])), b, RawColumn(strings(["x", "y", "z"]))])
    made = version.columns("u", 3, None, after, ["{}"], topic="t")
    missing = "__debezium_unavailable_value"
    assert made["topic"].to_pylist() == [missing, "t", "a"]
    assert [json.loads(value)["b"] for value in made["value"].to_pylist()] == [missing, "d", "a"]
    version = TableVersion(table, PostgresOptions.parse({**REQUIRED, **routed, "transforms.one.route.by.field": "n"}))
    before = version.encode_old(texts("1", None, None), complete=False)
    assert version.columns("d", 1, before, None, ["{}"], topic="t")["topic"].to_pylist() == ["t"]
