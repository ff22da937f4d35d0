"""Debezium's incremental snapshot in an offset: as Debezium wrote it, and whatever a key's values are."""

from __future__ import annotations

import contextlib
import json
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.contract.key_forms import KeyForm, text_of, value_of
from floodmark.debezium.snapshot_state import AskedTable, DebeziumSnapshot, KeyValue, write_key
from floodmark.errors import OffsetError
from floodmark.json_data import Json
from tests.unit.test_java_objects import ARRAY

LONG = (
    "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c0200007870000000017372000e6a6176612e6c616e67"
    "2e4c6f6e673b8be490cc8f23df0200014a000576616c7565787200106a6176612e6c616e672e4e756d62657286ac951d0b94e08b0200007870"
)
FIELDS: dict[str, Json] = {
    "incremental_snapshot_correlation_id": "ask-1",
    "incremental_snapshot_collections": json.dumps(
        [
            {
                "incremental_snapshot_collections_id": name,
                "incremental_snapshot_collections_additional_condition": condition,
                "incremental_snapshot_collections_surrogate_key": surrogate,
            }
            for name, condition, surrogate in (
                ("public.numbered", None, None),
                ("public.named", "(part > 10)", None),
                ("public.keyless", None, "place"),
            )
        ]
    ),
    "incremental_snapshot_primary_key": f"{LONG}00000000000007ce",
    "incremental_snapshot_maximum_key": f"{LONG}0000000000001770",
}
"""What Debezium 3.6.3 stores."""

values: st.SearchStrategy[KeyValue | None] = st.one_of(
    st.none(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30),
    st.text(max_size=40),
    st.uuids(),
    st.binary(max_size=40),
)


def test_an_offset_of_debezium() -> None:
    found = DebeziumSnapshot.from_fields(FIELDS)
    assert found == DebeziumSnapshot(
        (
            AskedTable("public.numbered"),
            AskedTable("public.named", "(part > 10)"),
            AskedTable("public.keyless", "", "place"),
        ),
        "ask-1",
        (1998,),
        (6000,),
    )
    assert found.to_fields()["incremental_snapshot_primary_key"] == FIELDS["incremental_snapshot_primary_key"]
    assert DebeziumSnapshot.from_fields(found.to_fields()) == found


def test_no_snapshot_and_one_that_has_delivered_nothing() -> None:
    assert DebeziumSnapshot.from_fields({"lsn": 5}) is None
    assert DebeziumSnapshot.from_fields({"incremental_snapshot_collections": "[]"}) is None
    found = DebeziumSnapshot.from_fields({**FIELDS, "incremental_snapshot_primary_key": "aced000570"})
    assert found is not None
    assert found.last is None
    assert write_key(None) == "aced000570"


def test_values_that_java_wrote() -> None:
    found = DebeziumSnapshot.from_fields({**FIELDS, "incremental_snapshot_primary_key": ARRAY.hex().upper()})
    assert found is not None
    assert found.last == (
        *(7, 1 << 40, "a\0\U0001f600", None, b"\1\2", Decimal("12.50")),
        *(uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), None, None, 3),
    )


@given(st.lists(values, max_size=5).map(tuple))
def test_a_key_is_read_as_it_was_written(key: tuple[KeyValue | None, ...]) -> None:
    written = DebeziumSnapshot((AskedTable("s.t"),), "", key).to_fields()
    found = DebeziumSnapshot.from_fields(written)
    assert found is not None
    assert found.last == key
    assert found.highest is None


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("incremental_snapshot_collections", "not JSON"),
        ("incremental_snapshot_collections", '{"a": 1}'),
        ("incremental_snapshot_collections", '[{"id": "x"}]'),
        ("incremental_snapshot_primary_key", "xyz"),
        ("incremental_snapshot_primary_key", "aced0005"),
        ("incremental_snapshot_maximum_key", "aced000574000161"),
        ("incremental_snapshot_maximum_key", 5),
    ],
)
def test_damaged_fields_are_one_clear_error(field: str, text: Json) -> None:
    with pytest.raises(OffsetError, match=rf"incremental snapshot is damaged \({field}"):
        DebeziumSnapshot.from_fields({**FIELDS, field: text})


@given(st.data())
def test_any_damage_of_a_key_is_one_clear_error(data: st.DataObject) -> None:
    changed = bytearray(ARRAY)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(ARRAY) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(OffsetError):
        DebeziumSnapshot.from_fields({**FIELDS, "incremental_snapshot_primary_key": changed.hex()})


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        ("number", "-5", -5),
        ("number", "12.50", Decimal("12.50")),
        ("text", "k'\\", "k'\\"),
        ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("hex", "00AB", b"\x00\xab"),
        ("bytea", r"\x00ab", b"\x00\xab"),
    ],
)
def test_a_value_has_one_text(form: KeyForm, text: str, value: KeyValue) -> None:
    assert text_of(form, value) == text
    assert value_of(form, text) == value


def test_what_has_no_exact_value() -> None:
    assert value_of("number", "NaN") is None
    assert value_of(None, "2026-01-01") is None
    assert text_of("number", "5") is None
    assert text_of("text", b"5") is None
    assert text_of("number", None) is None
    assert text_of(None, 5) is None
    assert text_of("number", Decimal("1E+3")) == "1000"
