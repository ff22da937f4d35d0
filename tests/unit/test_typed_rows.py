"""Typed rows: what the log doesn't hold of a row is named, never passed off as NULL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from floodmark.changes.schema_changes import holds
from floodmark.changes.typed_rows import RowVersion
from floodmark.codecs.raw_column import RawColumn
from floodmark.connectors.postgres.decode.relation import Column, Relation
from floodmark.errors import DecodeError, SchemaChangeError
from tests.unit.test_types_helpers import numeric_modifier, options, strings

INT, TEXT, NUMERIC, INTS = 23, 25, 1700, 1007
TABLE = Relation(
    1,
    "s",
    "t",
    "d",
    (Column("id", INT, -1, True, False), Column("a", TEXT, -1, False), Column("b", TEXT, -1, False)),
    ("id",),
    {},
)
ROW = pa.struct([("id", pa.int32()), ("b", pa.string()), ("a", pa.string())])


def version(row: pa.StructType = ROW, settled: str = "", **given: str) -> RowVersion:
    return RowVersion(TABLE, options(**given), row, settled)


def column(values: list[str | None], unchanged: list[int] | None = None) -> RawColumn:
    return RawColumn(strings(values), None if unchanged is None else np.array(unchanged, bool))


def made(rows: int, before: list[Any] | None, after: list[Any] | None, op: str = "u") -> list[dict[str, Any]]:
    columns = version().columns(op, rows, before, after, [])
    names = list(columns)
    rows_made: list[dict[str, Any]] = pa.RecordBatch.from_arrays([columns[n] for n in names], names=names).to_pylist()
    return rows_made


def test_values_that_the_log_lacks_are_named() -> None:
    columns = [
        column(["1", "2", "3", "4"]),
        column(["x", None, None, None], [0, 1, 0, 1]),
        column([None, None, None, "y"], [1, 1, 0, 0]),
    ]
    rows = made(4, None, version().encode(columns))
    assert [row["unavailable"] for row in rows] == [["b"], ["b", "a"], [], ["a"]]
    assert [row["after"]["a"] for row in rows] == ["x", None, None, None]
    assert [row["key"] for row in rows] == [["id"]] * 4


def test_a_partial_old_row_of_a_delete_is_told_as_such() -> None:
    columns = [column(["1", "2"]), column([None, None]), column([None, "known"])]
    rows = made(2, version().encode_old(columns, complete=False), None, "d")
    assert [row["unavailable"] for row in rows] == [["b", "a"], ["a"]]
    rows = made(2, version().encode_old(columns, complete=True), None, "d")
    assert [row["unavailable"] for row in rows] == [[], []]
    assert rows[1]["before"] == {"id": 2, "b": "known", "a": None}


def test_of_an_update_the_new_row_is_spoken_of() -> None:
    old = version().encode_old([column(["1"]), column([None]), column([None])], complete=False)
    rows = made(1, old, version().encode([column(["1"]), column(["x"]), column([None], [1])]))
    assert rows[0]["unavailable"] == ["b"]


def test_an_old_key_that_the_log_lacks_is_no_changed_key() -> None:
    table = version(message_key_columns="s.t:a")
    old = [column(["1", "2", "3"]), column(["x", None, "z"], [0, 1, 0]), column([None] * 3, [1, 1, 1])]
    new = [column(["1", "2", "3"]), column(["y", "y", "z"]), column([None] * 3, [1, 1, 1])]
    assert table.key_changed(old, new, complete=True).tolist() == [True, False, False]


def test_truncates_lack_nothing() -> None:
    assert made(1, None, None, "t") == [
        {"before": None, "after": None, "unavailable": [], "unrepresentable": [], "key": ["id"]}
    ]


def test_values_that_the_type_does_not_hold_are_named() -> None:
    table = Relation(
        1, "s", "t", "d", (Column("n", NUMERIC, numeric_modifier(5, 2), False), Column("l", INTS, -1, False)), (), {}
    )
    row = pa.struct([("n", pa.decimal128(5, 2)), ("l", pa.list_(pa.int32()))])
    numbers = RawColumn(strings(["1.50", "NaN", None, None]), np.array([False, False, False, True]))
    lists = RawColumn(strings(["{{1},{2}}", "{{1}}", None, "{1,NULL}"]))
    one = RowVersion(table, options(), row)
    made = one.columns("c", 4, None, one.encode([numbers, lists]), [])
    assert made["unrepresentable"].to_pylist() == [["l"], ["n", "l"], [], []]
    assert made["unavailable"].to_pylist() == [[], [], [], ["n"]]
    assert [value["l"] for value in made["after"].to_pylist()] == [None, None, None, [1, None]]


def test_a_batch_read_refuses_arrays_that_lists_do_not_hold() -> None:
    table = Relation(1, "s", "t", "d", (Column("l", INTS, -1, False),), (), {})
    one = RowVersion(table, options(), pa.struct([("l", pa.list_(pa.int32()))]))
    assert one.values([column(["{1}", None])])[0].to_pylist() == [[1], None]
    with pytest.raises(DecodeError, match=r"column 'l' of s\.t has an array .*column\.exclude\.list"):
        one.values([column(["{1}", "{{1}}"])])


def test_columns_that_the_query_lacks_are_not_named() -> None:
    narrow = version(pa.struct([("id", pa.int32()), ("a", pa.string())]))
    columns = [column(["1"]), column([None], [1]), column([None], [1])]
    assert narrow.columns("u", 1, None, narrow.encode(columns), [])["unavailable"].to_pylist() == [["a"]]


ALTERED = pa.struct([("id", pa.string()), ("a", pa.int32()), ("gone", pa.date32())])


def test_an_altered_table_ends_the_query_and_is_named() -> None:
    version().admit(None)
    one = version(ALTERED, "0005")
    one.admit("0005")
    for place, when in (("0006", "at 0006 in the log"), (None, "when it was read")):
        with pytest.raises(SchemaChangeError) as raised:
            one.admit(place)
        text = str(raised.value)
        for part in (
            "The table s.t is no longer",
            when,
            "it has the new column 'b' (string)",
            "its column 'gone' (date32[day]) is gone",
            "its column 'id' was string and is int32",
            "its column 'a' was int32 and is string",
            "schema.changes=ignore_with_warning",
        ):
            assert part in text


def test_what_an_altered_table_cannot_fill_is_unavailable() -> None:
    one = version(ALTERED, schema_changes="ignore_with_warning")
    one.admit("0006")
    columns = [column(["1", "2"]), column(["x", None]), column(["y", "z"])]
    made = one.columns("u", 2, None, one.encode(columns), [])
    assert made["after"].to_pylist() == [{"id": "1", "a": None, "gone": None}, {"id": "2", "a": None, "gone": None}]
    assert made["unavailable"].to_pylist() == [["a", "gone"]] * 2
    assert made["unrepresentable"].to_pylist() == [[], []]


@pytest.mark.parametrize(
    ("wanted", "kind", "expected"),
    [
        (pa.int64(), pa.int32(), True),
        (pa.int32(), pa.int64(), False),
        (pa.float64(), pa.int32(), True),
        (pa.float64(), pa.int64(), False),
        (pa.float64(), pa.float32(), True),
        (pa.string(), pa.decimal128(5, 2), True),
        (pa.string(), pa.bool_(), False),
        (pa.decimal128(12, 2), pa.int32(), True),
        (pa.decimal128(10, 2), pa.int32(), False),
        (pa.decimal128(12, 4), pa.decimal128(10, 2), True),
        (pa.decimal128(12, 4), pa.decimal128(10, 1), False),
        (pa.date32(), pa.timestamp("us"), False),
        (pa.list_(pa.int32()), pa.list_(pa.int32()), True),
    ],
)
def test_which_types_hold_others(wanted: pa.DataType, kind: pa.DataType, expected: bool) -> None:
    assert holds(wanted, kind) is expected
    if expected:
        one: Any = [1] if pa.types.is_list(kind) else Decimal(1) if pa.types.is_decimal(kind) else 1
        pa.array([one, None], kind).cast(wanted)
