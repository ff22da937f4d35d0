"""Makes records of the rows of an outbox table, as ``io.debezium.transforms.outbox.EventRouter`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask
from floodmark.config.transforms.outbox import EventRouterOptions, Placement
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.connect_schema import ConnectSchema, field_schema
from floodmark.events.json_text import Fragment
from floodmark.json_data import Json
from floodmark.logger import get_logger
from floodmark.transforms.failures import failure, member
from floodmark.transforms.outbox.json_structs import structs_of
from floodmark.transforms.records import Header, Part, Records, by_text, by_topic, is_envelope, is_null
from floodmark.transforms.structs import NULL, Member, Plain, Struct, Values, taken, texts, with_default

_BLANKS = "".join(map(chr, range(0x21)))
"""What Java's ``trim`` takes away."""
_PLACEMENT = "table.fields.additional.placement"
_NEEDED = "Name a column that the table has, or limit the transform to the outbox table by a predicate."

log = get_logger(__name__)


class EventRouter:
    """The transform.

    Args:
        settings: its name and its options.
    """

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings
        self._options = options = cast(EventRouterOptions, settings.options)
        self._renaming = options.renaming
        self._enveloped = bool(options.placed("envelope"))

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return what becomes of records: of rows that were inserted, what they hold; of other rows, nothing.

        Raises:
            SourceStateError: rows have no such columns as the options say, or columns of other types.
        """
        value = records.value
        if is_null(value):
            return ()
        if not is_envelope(value):
            return (records,)
        assert isinstance(value, Struct)
        routed: list[Records] = []
        for operation, part in by_text(records, value.value("op")):
            if operation == '"u"':
                self._note_updates(part)
            elif operation != '"d"':
                routed += self._routed(part)
        return routed

    def _note_updates(self, records: Records) -> None:
        option = "table.op.invalid.behavior"
        behavior = getattr(self._options, option.replace(".", "_"))
        if behavior == "fatal":
            raise failure(
                self._settings,
                option,
                records,
                "rows have been updated, and it is 'fatal'",
                "Insert rows into an outbox table and delete them, or set it to 'warn'.",
            )
        note = log.warning if behavior == "warn" else log.error
        note("updates_of_an_outbox_table", transform=self._settings.name, of=records.origin, effect="they are left out")

    def _routed(self, records: Records) -> Sequence[Records]:
        envelope = cast(Struct, records.value)
        row = member(self._settings, "type", records, envelope, "after")
        if row.values is None:
            raise failure(self._settings, "type", records, "they have no new row, as truncates")
        connector = self._connector(records, envelope)
        key, payload = (
            self._found(records, row, option, self._options.column(option.replace(".", "_"), connector))
            for option in ("table.field.event.key", "table.field.event.payload")
        )
        records = replace(
            records,
            key=_part(*key),
            value=row,
            headers=(*records.headers, *self._headers(records, row, connector)),
            topic=self._types(records, row, connector),
            partition=self._partition(records, row),
        )
        routed: list[Records] = []
        for part, values, schema in self._expanded(records, payload, connector):
            routed += self._with_values(part, schema, values)
        return [self._renamed(part) for part in routed]

    def _connector(self, records: Records, envelope: Struct) -> str:
        source = member(self._settings, "type", records, envelope, "source")
        field = source.field("connector")
        return "" if field is None else str(texts(source.value("connector"), 1)[0].as_py())

    def _found(self, records: Records, row: Struct, option: str, name: str) -> tuple[ConnectSchema, Values]:
        """Return the schema and the values of a column, with its default in the place of null.

        Raises:
            SourceStateError: there is no such column.
        """
        field = row.field(name)
        if field is None:
            raise failure(self._settings, option, records, f"they have no column '{name}'", _NEEDED)
        schema = {key: member for key, member in field.items() if key != "field"}
        return schema, with_default(row.value(name), field)

    def _headers(self, records: Records, row: Struct, connector: str) -> list[Header]:
        identifier = self._options.column("table_field_event_id", connector)
        headers = [Header("id", *self._found(records, row, "table.field.event.id", identifier))]
        return [*headers, *(Header(*one) for one in self._placed(records, row, "header"))]

    def _placed(self, records: Records, row: Struct, placement: Placement) -> list[Member]:
        """Return further columns with the names that they get."""
        placed = [one for one in self._options.placed(placement) if self._is_there(row, one.field)]
        return [(one.name, *self._found(records, row, _PLACEMENT, one.field)) for one in placed]

    def _is_there(self, row: Struct, name: str) -> bool:
        """Return whether a column is there, or must be."""
        return self._options.table_field_additional_missing == "error" or row.field(name) is not None

    def _types(self, records: Records, row: Struct, connector: str) -> pa.StringArray:
        """Return the texts of which topics are made, shape (rows,)."""
        option = "route.by.field"
        name = self._options.column("route_by_field", connector)
        schema, _ = self._found(records, row, option, name)
        if schema["type"] != "string":
            problem = f"the column '{name}' is of the type {schema['type']}, not string"
            raise failure(self._settings, option, records, problem)
        found = texts(row.value(name), records.rows)
        if found.null_count:
            raise failure(self._settings, option, records, f"the column '{name}' is null, so that there is no topic")
        return found

    def _partition(self, records: Records, row: Struct) -> pa.Int32Array | None:
        for one in self._options.placed("partition"):
            if not self._is_there(row, one.field):
                continue
            schema, _ = self._found(records, row, _PLACEMENT, one.field)
            if schema["type"] != "int32":
                problem = f"the column '{one.field}' is of the type {schema['type']}, and a partition is an int32"
                raise failure(self._settings, _PLACEMENT, records, problem)
            values = row.value(one.field)
            if isinstance(values, str):
                return pa.repeat(pa.scalar(None if values == NULL else int(values), pa.int32()), records.rows)
            assert isinstance(values, Fragment)
            found = values.text.cast(pa.int32())
            if pc.any(pc.less(found, 0)).as_py():
                raise failure(self._settings, _PLACEMENT, records, f"the column '{one.field}' is below 0")
            return found
        return records.partition

    def _expanded(
        self, records: Records, payload: tuple[ConnectSchema, Values], connector: str
    ) -> Sequence[tuple[Records, Values, ConnectSchema]]:
        """Return rows in groups of those whose payloads have the same schema, with these and that."""
        schema, values = payload
        if not self._options.table_expand_json_payload or schema["type"] != "string":
            return [(records, values, schema)]
        name = self._options.column("table_field_event_payload", connector)
        keeps_null = self._options.table_json_payload_null_behavior == "optional_bytes"
        groups: list[tuple[Records, Values, ConnectSchema]] = []
        for at, struct in structs_of(texts(values, records.rows), name, keeps_null):
            part = records.take(at)
            if struct is not None:
                groups.append((part, struct, struct.schema))
                continue
            left = taken(values, at)
            if pc.any(pc.is_valid(texts(left, part.rows))).as_py():
                log.warning("payloads_are_no_json_objects", transform=self._settings.name, of=records.origin)
            groups.append((part, left, schema))
        return groups

    def _with_values(self, records: Records, schema: ConnectSchema, values: Values) -> Sequence[Records]:
        """Return rows with their payloads as values, in tombstones and others."""
        parts = [(np.arange(records.rows), False)]
        if self._options.route_tombstone_on_empty_payload:
            empty = _empty(values, records.rows)
            parts = [(np.flatnonzero(~empty), False), (np.flatnonzero(empty), True)]
        made: list[Records] = []
        for at, tombstones in parts:
            if not len(at):
                continue
            whole = len(at) == records.rows
            part, shown = (records, values) if whole else (records.take(at), taken(values, at))
            if tombstones:
                made.append(replace(part, value=None))
            elif not self._enveloped:
                made.append(replace(part, value=_part(schema, shown)))
            else:
                made += self._with_envelopes(part, schema, shown)
        return made

    def _with_envelopes(self, records: Records, schema: ConnectSchema, values: Values) -> Sequence[Records]:
        """Return rows as structures of payload and further fields, whose schema depends on topic and version.

        Args:
            records: the rows.
            schema: of the payloads.
            values: the payloads.
        """
        made: list[Records] = []
        option, name = "table.field.event.schema.version", self._options.table_field_event_schema_version
        numbered = replace(records, index=np.arange(records.rows))
        for kind, of_topic in by_topic(numbered):
            row = cast(Struct, of_topic.value)
            versions: Values = NULL
            if name:
                field, versions = self._found(of_topic, row, option, name)
                if field["type"] != "int32":
                    problem = f"the column '{name}' is of the type {field['type']}, not int32"
                    raise failure(self._settings, option, of_topic, problem)
                versions = row.value(name)
            for version, part in by_text(of_topic, versions):
                at = part.index
                inner = taken(values, at)
                envelope = self._envelope(part, kind, None if version in (None, NULL) else int(version), schema, inner)
                made.append(replace(part, value=envelope, index=records.index[at]))
        return made

    def _envelope(
        self, records: Records, kind: str, version: int | None, schema: ConnectSchema, payload: Values
    ) -> Struct:
        row = cast(Struct, records.value)
        members: list[Member] = [("payload", schema, payload)]
        members += self._placed(records, row, "envelope")
        fields: list[Json] = [field_schema(own, bool(own["optional"]), name) for name, own, _ in members]
        before, dot, last = str(row.schema.get("name", "")).rpartition(".")
        made: dict[str, Json] = {"type": "struct", "fields": fields, "optional": False}
        made["name"] = f"{before}{dot}{kind}.{last}" if last else kind
        return Struct(made if version is None else {**made, "version": version}, [shown for _, _, shown in members])

    def _renamed(self, records: Records) -> Records:
        def renamed(text: str) -> str:
            topic = self._renaming(text)
            if topic == "" or (topic is None and not text):
                raise failure(
                    self._settings, "route.topic.replacement", records, "a topic would become a text without content"
                )
            return text if topic is None else topic

        return records.with_topics(renamed)


def _part(schema: ConnectSchema, values: Values) -> Part:
    return values if isinstance(values, Struct) else Plain(schema, values)


def _empty(values: Values, rows: int) -> NDArray[np.bool_]:
    """Return which payloads are null or texts of blanks, shape (rows,)."""
    if isinstance(values, Struct):
        return np.zeros(rows, bool)
    if isinstance(values, Fragment) and not values.quoted:
        return as_mask(pc.is_null(values.text))
    return as_mask(pc.fill_null(pc.equal(pc.utf8_trim(texts(values, rows), _BLANKS), ""), True))
