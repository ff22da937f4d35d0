"""Transforms that add the source's description of columns, and that write vectors as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.config.transforms.settings import parse_transforms
from floodmark.errors import ConfigError, SourceStateError
from floodmark.events.connect_schema import ConnectSchema, field_schema, struct
from floodmark.events.json_text import Fragment
from floodmark.transforms.debezium.vector_to_json_converter import VectorToJsonConverter
from floodmark.transforms.records import Records
from floodmark.transforms.structs import NULL, Plain, Struct, complete
from tests.support.records import chain, changes

DESCRIBED = "io.debezium.transforms.ExtractSchemaToNewRecord"
VECTOR = "io.debezium.transforms.VectorToJsonConverter"


def test_columns_must_be_described() -> None:
    with pytest.raises(SourceStateError) as caught:
        chain(DESCRIBED, {}).columns(changes("t", "x"))
    for word in ("'one'", "rows of s.t", "the column 'v'", "column.propagate.source.type"):
        assert word in str(caught.value)


@pytest.mark.parametrize("kind", [DESCRIBED, VECTOR])
def test_options_that_there_are_not(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"transforms\.one\.format"):
        chain(kind, {"format": "x"})


def vectors(kind: str, *texts: str | None, optional: bool = True) -> Records:
    """Return records with a vector in the field ``v``."""
    field: ConnectSchema = {"type": "array", "items": {"type": "double", "optional": False}, "name": kind, "version": 1}
    schema = struct([field_schema(field, optional, "v")], False, "t.Value")
    value = Struct(schema, [Fragment(pa.array(texts, pa.string()))])
    return Records("rows of s.t", len(texts), "t", None, value, (), np.arange(len(texts)))


def texts_of(records: Records) -> list[str | None]:
    (settings,) = parse_transforms(["one"], {"one.type": VECTOR})
    ((made),) = VectorToJsonConverter(settings)(records)
    assert isinstance(made.value, Struct)
    return [json.loads(text) for text in complete(made.value.value("v"), made.rows).to_pylist()]


def test_dense_vectors() -> None:
    given_records = vectors("io.debezium.data.FloatVector", "[1.0,-1.0E-5]", None, "[]")
    assert texts_of(given_records) == ['{ "values": [1.0, -1.0E-5] }', None, '{ "values": [] }']


@given(
    st.lists(
        st.none()
        | st.dictionaries(st.integers(1, 32_767), st.floats(allow_nan=False, allow_infinity=False), max_size=5),
        min_size=1,
        max_size=5,
    )
)
def test_sparse_vectors_are_sorted(rows: list[dict[int, float] | None]) -> None:
    texts = [
        None if row is None else json.dumps({"dimensions": 32_767, "vector": [[k, v] for k, v in row.items()]})
        for row in rows
    ]
    found = texts_of(vectors("io.debezium.data.SparseDoubleVector", *texts))
    for row, text in zip(rows, found, strict=True):
        if row is None or text is None:
            assert text is None
            assert row is None
            continue
        assert text.startswith('{ "dimensions": 32767, "vector": { ')
        read = json.loads(text)["vector"]
        assert [(int(key), value) for key, value in read.items()] == sorted(row.items())


def test_other_vectors_and_values() -> None:
    assert texts_of(vectors("other", "[1.0]")) == [[1.0]]  # type: ignore[comparison-overlap]
    (settings,) = parse_transforms(["one"], {"one.type": VECTOR})
    tombstone = replace(vectors("other", "[1.0]"), value=None)
    assert VectorToJsonConverter(settings)(tombstone) == (tombstone,)
    nothing = replace(tombstone, value=Struct(struct([], True, "t"), None))
    assert VectorToJsonConverter(settings)(nothing) == (nothing,)
    plain = replace(tombstone, value=Plain({"type": "string", "optional": True}, '"x"'))
    with pytest.raises(SourceStateError, match="no structure any more"):
        VectorToJsonConverter(settings)(plain)
    fixed = replace(tombstone, value=Struct(vectors("io.debezium.data.DoubleVector", None).value.schema, [NULL]))  # type: ignore[union-attr]
    ((made),) = VectorToJsonConverter(settings)(fixed)
    assert isinstance(made.value, Struct)
    assert (made.value.fields[0]["type"], made.value.value("v")) == ("string", NULL)
