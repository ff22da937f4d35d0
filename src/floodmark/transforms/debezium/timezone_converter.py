"""Converts dates and times to another time zone, as ``io.debezium.transforms.TimezoneConverter`` does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa

from floodmark.codecs.time_units import CONNECT, DEBEZIUM
from floodmark.config.transforms.settings import TransformSettings
from floodmark.config.transforms.timezones import TimezoneConverterOptions
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment
from floodmark.transforms.debezium.zone_offsets import Zone
from floodmark.transforms.debezium.zoned_texts import moved_numbers, moved_times, moved_timestamps
from floodmark.transforms.records import Records, by_text, by_topic, is_envelope
from floodmark.transforms.structs import Struct, Values, text_or_json, with_default

Convert: TypeAlias = Callable[[pa.StringArray], pa.StringArray]
_PER_SECOND = {
    DEBEZIUM + "Timestamp": 1000,
    DEBEZIUM + "MicroTimestamp": 1_000_000,
    DEBEZIUM + "NanoTimestamp": 1_000_000_000,
    CONNECT + "Timestamp": 1000,
}
_EPOCH_FIELDS = {"ts_ms": 1000, "ts_us": 1_000_000, "ts_ns": 1_000_000_000}
"""Fields of the source block that are times, though their schemas have no name."""


class TimezoneConverter:
    """The transform.

    Args:
        settings: its name and its options.
    """

    def __init__(self, settings: TransformSettings) -> None:
        options = cast(TimezoneConverterOptions, settings.options)
        self._rules = options.rules
        self._zone = Zone(options.converted_timezone, options.fixed_offset)

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return records with the times of rows in the zone."""
        value = records.value
        if not is_envelope(value):
            return (records,)
        assert isinstance(value, Struct)
        if not self._rules.fields:
            return (replace(records, value=self._converted(value, frozenset())),)
        source = value.value("source") if value.field("source") is not None else None
        tables = source.value("table") if isinstance(source, Struct) and source.field("table") is not None else '""'
        return [
            self._of_table(part, topic, "" if table is None else str(text_or_json(table)))
            for table, group in by_text(records, tables)
            for topic, part in by_topic(group)
        ]

    def _of_table(self, records: Records, topic: str, table: str) -> Records:
        fields = self._rules.of(topic, table)
        if fields is None:
            if not self._rules.excluded:
                return records
            fields = frozenset()
        elif self._rules.excluded and not fields:
            return records
        return replace(records, value=self._converted(cast(Struct, records.value), fields))

    def _converted(self, envelope: Struct, fields: Set[str]) -> Struct:
        """Return envelopes with converted times.

        Args:
            envelope: what is converted.
            fields: those that are, or that aren't; none: all are but those of the source block.
        """
        named: dict[str, set[str]] = {"before": set(), "after": set(), "source": set()}
        for field in fields:
            struct, _, rest = field.partition(".")
            if rest and struct in named:
                named[struct].add(rest)
            else:
                named["before"].add(field)
                named["after"].add(field)
        members = envelope.members()
        for place, (name, schema, values) in enumerate(members):
            if name in named and isinstance(values, Struct) and (name != "source" or named[name]):
                members[place] = name, schema, self._struct(name, values, named[name], all_of=not fields)
        return Struct(envelope.schema, [values for _, _, values in members])

    def _struct(self, struct_name: str, struct: Struct, fields: Set[str], all_of: bool) -> Struct:
        if struct.values is None:
            return struct
        made: list[Values] = []
        for name, schema, values in struct.members():
            wanted = all_of or (name in fields) != self._rules.excluded
            convert = self._conversion(struct_name, name, schema) if wanted else None
            made.append(values if convert is None else _applied(convert, with_default(values, schema)))
        return Struct(struct.schema, made)

    def _conversion(self, struct_name: str, name: str, schema: ConnectSchema) -> Convert | None:
        """Return what converts a field's values; None: they are no times with a date, or of a zone."""
        kind = schema.get("name")
        if kind is None:
            if struct_name != "source" or name not in _EPOCH_FIELDS:
                return None
            return partial(moved_numbers, per_second=_EPOCH_FIELDS[name], shifts=self._zone.at_instants)
        if kind == DEBEZIUM + "ZonedTimestamp":
            return partial(moved_timestamps, zone=self._zone)
        if kind == DEBEZIUM + "ZonedTime":
            # A time of day has no date, so that the offset is today's.
            offset = int(self._zone.at_instants(np.array([int(time.time())]))[0])
            return partial(moved_times, offset=offset)
        if kind in _PER_SECOND:
            return partial(
                moved_numbers,
                per_second=_PER_SECOND[str(kind)],
                shifts=lambda seconds: -self._zone.at_clocks(seconds),
            )
        return None


def _applied(convert: Convert, values: Values) -> Values:
    """Return converted values."""
    if isinstance(values, Struct) or values == "null":
        return values
    if isinstance(values, str):
        text = text_or_json(values)
        made = convert(pa.array([text]))[0].as_py()
        return f'"{made}"' if values.startswith('"') else str(made)
    return Fragment(convert(values.text), values.quoted)
