"""Applies transforms to records, one after the other, and writes what they make."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa

from floodmark.config.common import CommonOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.columns import KEPT_ROWS, PARTITION, header_lists
from floodmark.events.connect_schema import ConnectSchema, field_schema, schema_start
from floodmark.events.json_text import Joiner
from floodmark.transforms.avro.converter import avro_converters
from floodmark.transforms.cloud_events import CloudEvents
from floodmark.transforms.predicates import Predicate, make_predicate
from floodmark.transforms.records import Header, Part, Records
from floodmark.transforms.structs import Struct, Values, complete, texts, write

Transform: TypeAlias = Callable[[Records], Sequence[Records]]
"""Returns what becomes of records: none, others, or several groups of them."""


class Chain:
    """The transforms of a source, in their order.

    Args:
        options: the source's options.
    """

    def __init__(self, options: CommonOptions) -> None:
        self._steps = [_step(settings) for settings in options.parsed_transforms]
        self._with_schemas = options.schemas_enable
        self._partitions = options.chooses_partitions
        self._defaults = options.value_converter_replace_null_with_default
        self._cloud_events = CloudEvents(options) if options.makes_cloud_events else None
        self._avro = avro_converters(options)
        self._types = {name: pa.binary() if name in self._avro else pa.string() for name in ("key", "value", "topic")}
        self._json_headers = options.writes_json_headers
        self._header_schemas = options.header_schemas

    def columns(self, records: Records) -> dict[str, pa.Array]:
        """Return the output columns of what becomes of records.

        Among them are topics and headers, partitions if a transform decides on them, and ``KEPT_ROWS`` if they are
        fewer, or in another order.
        """
        parts = [records]
        for predicate, negate, apply in self._steps:
            following: list[Records] = []
            for part in parts:
                if predicate is None:
                    following += apply(part)
                    continue
                met = predicate(part) ^ negate
                for chosen, transformed in ((met, True), (~met, False)):
                    if chosen.any():
                        one = part if chosen.all() else part.take(np.flatnonzero(chosen))
                        following += apply(one) if transformed else (one,)
            parts = following
        return self._written(parts, records.rows)

    def _written(self, parts: Sequence[Records], rows: int) -> dict[str, pa.Array]:
        if not parts:
            nothing = {name: pa.array([], kind) for name, kind in self._types.items()}
            return {**nothing, "headers": header_lists([], 0), KEPT_ROWS: pa.array([], pa.int64())}
        columns = [self._columns(part) for part in parts]
        whole = (
            columns[0]
            if len(columns) == 1
            else {name: pa.concat_arrays([one[name] for one in columns]) for name in columns[0]}
        )
        if len(parts) > 1 or parts[0].rows < rows:
            whole[KEPT_ROWS] = pa.array(np.concatenate([part.index for part in parts]))
        return whole

    def _columns(self, records: Records) -> dict[str, pa.Array]:
        rows, topic = records.rows, records.topic
        columns = {
            "key": self._key(records),
            "value": self._value(records),
            "topic": pa.repeat(pa.scalar(topic), rows) if isinstance(topic, str) else topic,
            "headers": header_lists([(one.name, self._header(one, rows)) for one in records.headers], rows),
        }
        if self._partitions:
            columns[PARTITION] = pa.nulls(rows, pa.int32()) if records.partition is None else records.partition
        return columns

    def _key(self, records: Records) -> pa.StringArray | pa.BinaryArray:
        if "key" in self._avro:
            return self._avro["key"].column(records.key, records)
        # Only the values' converter has an option for defaults.
        return self._part(records.key, records.rows, defaults=True)

    def _value(self, records: Records) -> pa.StringArray | pa.BinaryArray:
        if "value" in self._avro:
            return self._avro["value"].column(records.value, records)
        if self._cloud_events is not None:
            return self._cloud_events.column(records)
        return self._part(records.value, records.rows, self._defaults)

    def _part(self, part: Part | None, rows: int, defaults: bool) -> pa.StringArray:
        if part is None:
            return pa.nulls(rows, pa.string())
        joiner = Joiner()
        if self._with_schemas:
            joiner.add(schema_start({key: member for key, member in part.schema.items() if key != "field"}))
        part.write(joiner, defaults)
        if self._with_schemas:
            joiner.add("}")
        return joiner.join(rows)

    def _header(self, header: Header, rows: int) -> pa.StringArray:
        """Return the values of a header as text: as JSON, or as Kafka Connect's SimpleHeaderConverter writes it."""
        values: Values = header.values
        if not self._json_headers and not isinstance(values, Struct):
            return texts(values, rows)
        return header_text(values, header.schema, rows, self._json_headers and self._header_schemas)


def header_text(values: Values, schema: ConnectSchema, rows: int, with_schema: bool) -> pa.StringArray:
    """Return the values of a header as JSON, shape (rows,).

    Args:
        values: JSON of each record's, or of all.
        schema: theirs.
        rows: how many.
        with_schema: whether they carry it.
    """
    if not with_schema:
        return complete(values, rows)
    own = field_schema({key: member for key, member in schema.items() if key != "field"}, bool(schema.get("optional")))
    joiner = Joiner().add(schema_start(own))
    write(joiner, values)
    return joiner.add("}").join(rows)


def _step(settings: TransformSettings) -> tuple[Predicate | None, bool, Transform]:
    module, _, name = settings.kind.maker.partition(":")
    make = cast(Callable[[TransformSettings], Transform], getattr(importlib.import_module(module), name))
    predicate = None if settings.predicate is None else make_predicate(settings.predicate)
    return predicate, settings.negate, make(settings)
