"""Writes values as CloudEvents in JSON, as ``io.debezium.converters.CloudEventsConverter`` does.

Source: the specification of CloudEvents 1.0, and Debezium's documentation of its converter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.config.common import CommonOptions
from floodmark.errors import SourceStateError
from floodmark.events.connect_schema import TRANSACTION_BLOCK, ConnectSchema, field_schema, schema_start, struct
from floodmark.events.json_text import Fragment, Joiner, Text
from floodmark.transforms.records import Records, is_envelope
from floodmark.transforms.structs import NULL, Member, Struct, Values, with_default, write

_IDENTITY: Mapping[str, tuple[str, ...]] = {
    "mysql": ("file", "pos"),
    "mariadb": ("file", "pos"),
    "oracle": ("scn", "commit_scn", "lcr_position"),
    "postgresql": ("lsn", "txId", "sequence"),
}
"""The fields of the source block that say, with its name, which event it is; by connector."""
_WHOLE = {"mariadb"}
"""Connectors of which the data are whole envelopes, not just the rows."""
_ROWS = ("before", "after")
_NEEDED = (*_ROWS, "source", "op")
_NOT_ALLOWED = re.compile("[^A-Za-z0-9]")


class CloudEvents:
    """Writes values.

    Args:
        options: the source's options.
    """

    def __init__(self, options: CommonOptions) -> None:
        # As source blocks name it.
        self._connector = "postgresql" if options.connector == "postgres" else options.connector
        self._schemas = options.cloud_events_schemas
        self._defaults = options.cloud_events_defaults
        self._extensions = options.cloud_events_extensions

    def column(self, records: Records) -> pa.StringArray:
        """Return the values, shape (rows,); null for records that aren't envelopes, as with Debezium.

        Raises:
            SourceStateError: a transform has taken the envelopes of rows away.
        """
        value = records.value
        if not isinstance(value, Struct) or not is_envelope(value) or not all(map(value.field, _NEEDED)):
            if value is not None and records.origin.startswith("rows of "):
                raise SourceStateError(
                    f"The {records.origin} can't become CloudEvents: a transform has taken away their envelopes, or "
                    "parts of these.",
                    "Remove the transform, or 'value.converter'.",
                )
            return pa.nulls(records.rows, pa.string())
        source = value.value("source")
        assert isinstance(source, Struct)
        fields = {name: (schema, with_default(shown, schema)) for name, schema, shown in _members(source)}
        joiner = Joiner()
        connector, server = self._connector, _inside(fields["name"][1])
        joiner.add('{"id":"name:').add(server)
        for name in _IDENTITY[connector]:
            joiner.add(f";{name}:").add(_inside(fields[name][1]))
        joiner.add(f'","source":"/debezium/{connector}/').add(server)
        joiner.add(f'","specversion":"1.0","type":"io.debezium.connector.{connector}.DataChangeEvent","time":"')
        joiner.add(_time(fields["ts_ms"][1])).add('","datacontenttype":"application/json"')
        if self._extensions:
            write(joiner.add(',"iodebeziumop":'), value.value("op"))
            for name, (schema, shown) in fields.items():
                write(joiner.add(f',"{_attribute(name)}":'), _as_attribute(schema, shown))
            for name, schema, shown in _transaction(value):
                write(joiner.add(f',"{_attribute("tx" + name)}":'), _as_attribute(schema, shown))
        self._write_data(joiner.add(',"data":'), value)
        return joiner.add("}").join(records.rows)

    def _write_data(self, joiner: Joiner, envelope: Struct) -> None:
        members = envelope.members()
        if self._connector not in _WHOLE:
            members = [member for member in members if member[0] in _ROWS]
        fields = [field_schema(schema, bool(schema["optional"]), name) for name, schema, _ in members]
        schema = struct(fields, False, f"io.debezium.connector.{self._connector}.Data")
        if self._schemas:
            joiner.add(schema_start(schema))
        Struct(schema, [shown for _, _, shown in members]).write(joiner, self._defaults)
        if self._schemas:
            joiner.add("}")


def _members(source: Struct) -> list[Member]:
    """Return the fields of a source block, each read by itself: most are the same for all rows."""
    return [(str(schema["field"]), schema, source.value(str(schema["field"]))) for schema in source.fields]


def _transaction(envelope: Struct) -> list[Member]:
    if envelope.field("transaction") is not None:
        block = envelope.value("transaction")
        assert isinstance(block, Struct)
        if block.values is not None:
            return _members(block)
    return Struct({"fields": TRANSACTION_BLOCK["fields"]}, None).members()


def _attribute(name: str) -> str:
    """Return the name of an extension attribute, which may only have letters and digits."""
    return "iodebezium" + _NOT_ALLOWED.sub("", name)


def _as_attribute(schema: ConnectSchema, values: Values) -> Values:
    """Return a value as an attribute: CloudEvents have no integers of 64 bits, so these become texts."""
    if schema["type"] != "int64":
        return values
    if isinstance(values, str):
        return values if values == NULL else f'"{values}"'
    assert isinstance(values, Fragment)
    return Fragment(values.text, quoted=True)


def _inside(values: Values) -> Text:
    """Return values as they are between the quotes of a text."""
    if isinstance(values, str):
        return values[1:-1] if values.startswith('"') else values
    assert isinstance(values, Fragment)
    return values.text.fill_null(NULL)


def _time(millis: Values) -> Text:
    """Return times as RFC 3339 has them."""
    if isinstance(millis, str):
        moment = np.datetime64(int(millis), "ms")
        return f"{np.datetime_as_string(moment, unit='ms')}Z"
    assert isinstance(millis, Fragment)
    # Rows of a transaction have the same time, and writing one takes long.
    coded = millis.text.dictionary_encode()
    moments = coded.dictionary.cast(pa.int64()).cast(pa.timestamp("ms"))
    return pc.strftime(moments, "%Y-%m-%dT%H:%M:%SZ").take(coded.indices)
