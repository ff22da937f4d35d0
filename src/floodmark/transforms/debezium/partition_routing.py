"""Decides on records' partitions by fields, as ``io.debezium.transforms.partitions.PartitionRouting`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask, valid
from floodmark.config.transforms.partitions import PartitionRoutingOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.connect_schema import ConnectSchema
from floodmark.transforms.debezium.java_hashes import (
    Hashes,
    decoded_base64,
    hash_booleans,
    hash_bytes,
    hash_decimals,
    hash_doubles,
    hash_floats,
    hash_longs,
    hash_texts,
    murmur_hashes,
    murmur_texts,
)
from floodmark.transforms.failures import failure
from floodmark.transforms.kafka.types import BITS, decimal_scale, is_date, is_days
from floodmark.transforms.records import Records, by_text, is_envelope
from floodmark.transforms.structs import Struct, Values, texts, with_default

_DAY_MS = 86_400_000
_NO_ROWS = ('"t"', '"m"')
_MOST = 0x7FFFFFFF


class PartitionRouting:
    """The transform.

    Args:
        settings: its name and its options.
    """

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings
        options = cast(PartitionRoutingOptions, settings.options)
        self._paths = options.paths
        self._partitions = options.partition_topic_num
        self._murmur = options.partition_hash_function == "murmur"

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return records with their partitions; those without any of the fields stay as they are.

        Raises:
            SourceStateError: a field is of a type whose hash differs from run to run in Java.
        """
        value = records.value
        if not is_envelope(value):
            return (records,)
        assert isinstance(value, Struct)
        if value.field("op") is None:
            return (records,)
        groups = by_text(records, value.value("op"))
        return [part if operation in _NO_ROWS else self._placed(part, operation == '"d"') for operation, part in groups]

    def _placed(self, records: Records, deleted: bool) -> Records:
        total = np.zeros(records.rows, np.uint32)
        decided = np.zeros(records.rows, bool)
        for path in self._paths:
            found = _found(cast(Struct, records.value), path, deleted)
            if found is None:
                continue
            hashes, present = self._hashes(records, path, *found)
            total[present] += hashes
            decided |= present
        if not decided.any():
            return records
        positive = total & np.uint32(_MOST)
        numbers = np.where(positive == _MOST, 0, positive) % self._partitions
        partition = pa.array(numbers.astype(np.int32), mask=~decided)
        if records.partition is not None:
            partition = pc.coalesce(partition, records.partition)
        return replace(records, partition=partition)

    def _hashes(
        self, records: Records, path: Sequence[str], schema: ConnectSchema, values: Values
    ) -> tuple[Hashes, NDArray[np.bool_]]:
        """Return the hashes of a field's values, but for nulls, and which aren't null, shape (rows,)."""
        kind = str(schema["type"])
        scale = decimal_scale(schema)
        opaque = kind == "bytes" and "name" in schema and scale is None
        if isinstance(values, Struct) or opaque or kind not in (*BITS, "float", "double", "boolean", "string", "bytes"):
            shown = schema.get("name", kind)
            problem = f"the field '{'.'.join(path)}' is of the type {shown}, whose hash differs from run to run in Java"
            raise failure(self._settings, "partition.payload.fields", records, problem)
        column = texts(values, records.rows)
        present = valid(column)
        column = column.drop_null()
        if kind == "string":
            return (murmur_texts if self._murmur else hash_texts)(column), present
        if kind == "bytes":
            content = decoded_base64(column)
            hashes = hash_bytes(content) if scale is None else hash_decimals(content, scale)
        else:
            hashes = _numbers(column, kind, schema)
        return murmur_hashes(hashes) if self._murmur else hashes, present


def _found(envelope: Struct, path: Sequence[str], deleted: bool) -> tuple[ConnectSchema, Values] | None:
    """Return the schema and the values of a field; None if it isn't there."""
    struct: Values = envelope
    for name in path[:-1]:
        member = ("before" if deleted else "after") if name == "change" else name
        if not isinstance(struct, Struct) or struct.values is None or struct.field(member) is None:
            return None
        struct = struct.value(member)
    if not isinstance(struct, Struct) or struct.values is None:
        return None
    field = struct.field(path[-1])
    return None if field is None else (field, with_default(struct.value(path[-1]), field))


def _numbers(column: pa.StringArray, kind: str, schema: ConnectSchema) -> Hashes:
    """Return the hashes of numbers and booleans, written as JSON and not null."""
    if kind == "boolean":
        return hash_booleans(as_mask(pc.equal(column, "true")))
    if kind in ("float", "double"):
        bare = pc.utf8_trim(column, '"')
        if kind == "float":
            return hash_floats(bare.cast(pa.float32()).to_numpy())
        return hash_doubles(bare.cast(pa.float64()).to_numpy())
    numbers = column.cast(pa.int64()).to_numpy()
    if is_date(schema):
        return hash_longs(numbers * _DAY_MS if is_days(schema) else numbers)
    return hash_longs(numbers) if kind == "int64" else numbers.astype(np.uint32)
