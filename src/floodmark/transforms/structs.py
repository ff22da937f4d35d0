"""Values of records in the form that transforms take: columns with their Connect schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from numpy.typing import NDArray

from floodmark.events.connect_schema import ConnectSchema, Raw, field_schema
from floodmark.events.json_text import Fragment, Joiner, Text, dumps, string, value_bytes
from floodmark.json_data import Json
from floodmark.transforms.written_fields import find_field

_QUOTE, _BACKSLASH = b'"\\'
_ARROW = {"string": pa.string(), "int32": pa.int64(), "int64": pa.int64(), "boolean": pa.bool_()}


class Struct:
    """A structure for each of some records, or null for all of them.

    Args:
        schema: its Connect schema, without ``optional`` and the field that holds it.
        values: those of the schema's fields, in their order; None: it is null for all records.
    """

    def __init__(self, schema: ConnectSchema, values: Sequence[Values] | None) -> None:
        self.schema = schema
        self._values = values

    @property
    def values(self) -> Sequence[Values] | None:
        """The values of the schema's fields; None: it is null for all records."""
        return self._values

    @property
    def fields(self) -> Sequence[ConnectSchema]:
        """The schemas of its fields."""
        return cast(Sequence[ConnectSchema], self.schema["fields"])

    def field(self, name: str) -> ConnectSchema | None:
        """Return the schema of a field; None if there is no such field."""
        return next((field for field in self.fields if field["field"] == name), None)

    def value(self, name: str) -> Values:
        """Return the values of a field that there is."""
        if self.values is None:
            return NULL
        return next(value for field, value in zip(self.fields, self.values, strict=True) if field["field"] == name)

    def members(self) -> list[Member]:
        """Return its fields with their names, schemas and values."""
        values = self.values
        every = [NULL] * len(self.fields) if values is None else values
        return [(str(field["field"]), field, value) for field, value in zip(self.fields, every, strict=True)]

    def with_members(self, members: Sequence[Member]) -> Struct:
        """Return the structure with these fields in the place of its own.

        As where Connect copies a schema, it isn't optional any more, and has no default.

        Raises:
            ValueError: two of them have the same name, which is the error's text.
        """
        names = set()
        for name, _, _ in members:
            if name in names:
                raise ValueError(name)
            names.add(name)
        fields: list[Json] = [field_schema(schema, bool(schema["optional"]), name) for name, schema, _ in members]
        kept = {key: self.schema[key] for key in ("name", "version", "doc", "parameters") if key in self.schema}
        schema: ConnectSchema = {"type": "struct", "fields": fields, "optional": False, **kept}
        return Struct(schema, None if self.values is None else [value for _, _, value in members])

    def with_fields(self, fields: Sequence[Member]) -> Struct:
        """Return the structure with more fields; otherwise as ``with_members``."""
        return self.with_members([*self.members(), *fields])

    def with_schema(self, schema: ConnectSchema) -> Struct:
        """Return the structure with another schema, of the same fields."""
        return Struct(schema, self.values)

    def with_defaults(self) -> Struct:
        """Return the structure with the defaults of its fields in the place of nulls."""
        if self.values is None:
            return self
        return Struct(self.schema, [with_default(value, schema) for _, schema, value in self.members()])

    def write(self, joiner: Joiner, defaults: bool) -> None:
        """Append the structures as JSON.

        Args:
            joiner: where to.
            defaults: whether nulls become the default of their field, if it has one.
        """
        if self.values is None:
            joiner.add(NULL)
            return
        lead = "{"
        for field, value in zip(self.fields, self.values, strict=True):
            shown = with_default(value, field) if defaults else value
            write(joiner.add(f"{lead}{dumps(str(field['field']))}:"), shown, defaults)
            lead = ","
        joiner.add("}" if self.fields else "{}")

    def take(self, at: NDArray[np.int64]) -> Struct:
        """Return the structures of some of the records."""
        values = self.values
        return Struct(self.schema, None if values is None else [taken(value, at) for value in values])


class Written(Struct):
    """A structure that has already been written as JSON; its fields are read when they are asked for.

    A value that is its field's default is null: as such it has been written.

    Args:
        schema: as for ``Struct``.
        pieces: of its text.
        rows: how many records.
    """

    def __init__(self, schema: ConnectSchema, pieces: Sequence[Text], rows: int) -> None:
        super().__init__(schema, ())
        joiner = Joiner()
        for piece in pieces:
            joiner.add(piece)
        self._pieces = joiner.parts(rows, apart=True)
        self._rows = rows

    def value(self, name: str) -> Values:
        """Return the values of a field that there is."""
        field = self.field(name)
        assert field is not None
        if not self._flat:
            return super().value(name)
        found = find_field(self._pieces, name, field["type"] == "string", self._rows)
        if found is None:
            return super().value(name)
        return _without_default(found, field)

    @property
    def _flat(self) -> bool:
        return all(field["type"] in _ARROW for field in self.fields)

    @cached_property
    def _read(self) -> list[Values]:
        if all(isinstance(piece, str) for piece in self._pieces):
            members = json.loads("".join(map(str, self._pieces)))
            return [_without_default(dumps(members[field["field"]]), field) for field in self.fields]
        joiner = Joiner()
        for piece in self._pieces:
            joiner.add(piece)
        if not self._flat:
            # Only records that aren't rows have structures within, and transforms seldom ask for their fields.
            objects = [json.loads(text) for text in joiner.join(self._rows).to_pylist()]
            shown = [[_json(one[str(field["field"])]) for one in objects] for field in self.fields]
            return [
                _without_default(Fragment(pa.array(texts, pa.string())), field)
                for texts, field in zip(shown, self.fields, strict=True)
            ]
        kinds = [(str(field["field"]), _ARROW[str(field["type"])]) for field in self.fields]
        table = read_lines(joiner.add("\n").join(self._rows), pa.schema(kinds))
        columns = [column.combine_chunks() for column in table.columns]
        return [_without_default(_fragment(column), field) for column, field in zip(columns, self.fields, strict=True)]

    @property
    def values(self) -> Sequence[Values]:
        """The values of the schema's fields."""
        return self._read

    def with_schema(self, schema: ConnectSchema) -> Written:
        """Return the structure with another schema, of the same fields."""
        return Written(schema, self._pieces, self._rows)

    def write(self, joiner: Joiner, defaults: bool) -> None:
        """Append the structures as JSON, as they have been written."""
        del defaults
        for piece in self._pieces:
            joiner.add(piece)

    def take(self, at: NDArray[np.int64]) -> Written:
        """Return the structures of some of the records."""
        index = pa.array(at)
        pieces = [piece if isinstance(piece, str) else piece.take(index) for piece in self._pieces]
        return Written(self.schema, pieces, len(at))


@dataclass(frozen=True)
class Plain:
    """Keys or values of records that aren't structures, or whose fields no transform can ask for.

    Attributes:
        schema: their Connect schema.
        values: JSON of each record's, or of all.
    """

    schema: ConnectSchema
    values: Fragment | str

    def write(self, joiner: Joiner, defaults: bool) -> None:
        """Append them as JSON; see ``Struct.write``."""
        write(joiner, with_default(self.values, self.schema) if defaults else self.values, defaults)

    def take(self, at: NDArray[np.int64]) -> Plain:
        """Return those of some of the records."""
        return Plain(self.schema, self.values if isinstance(self.values, str) else self.values.take(at))


Values: TypeAlias = Fragment | Struct | str
"""The values of a field: JSON of each record, structures, or JSON that is the same for all records."""
Member: TypeAlias = tuple[str, ConnectSchema, Values]
"""A field of a structure: its name, its schema and its values."""
NULL = "null"


def write(joiner: Joiner, values: Values, defaults: bool = False) -> None:
    """Append values as JSON; see ``Struct.write``."""
    if isinstance(values, str):
        joiner.add(values)
    elif isinstance(values, Fragment):
        joiner.add_field(values)
    else:
        values.write(joiner, defaults)


def complete(values: Values, rows: int) -> pa.StringArray:
    """Return values as complete JSON, ``null`` included, shape (rows,)."""
    joiner = Joiner()
    write(joiner, values)
    return joiner.join(rows)


def with_default(values: Values, field: ConnectSchema) -> Values:
    """Return the values of a field with its default in the place of null."""
    default = field.get("default")
    if default is None or isinstance(values, Struct):
        return values
    text = str(default) if isinstance(default, Raw) else dumps(default)
    if isinstance(values, str):
        return text if values == NULL else values
    return values.filled(text)


def taken(values: Values, at: NDArray[np.int64]) -> Values:
    """Return the values of some of the records."""
    return values if isinstance(values, str) else values.take(at)


def read_lines(lines: pa.StringArray, schema: pa.Schema) -> pa.Table:
    """Return fields of JSON objects as columns, shape (rows,).

    Args:
        lines: the objects, each with a line break at its end.
        schema: the fields that are wanted.
    """
    text = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines), "")[0].as_buffer()
    parsing = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = pyarrow.json.ReadOptions(block_size=max(len(text), 1), use_threads=False)
    return pyarrow.json.read_json(pa.BufferReader(text), reading, parsing)


def plain(fragment: Fragment) -> pa.StringArray:
    """Return JSON texts as texts without quotes and escapes, other values as they are written; null stays null."""
    text = fragment.text
    if not fragment.quoted:
        return text
    # Where nulls are, there may be bytes of no value.
    data = value_bytes(text.drop_null() if text.null_count else text)
    escaping = np.flatnonzero(data == _BACKSLASH)
    if not len(escaping):
        return text
    if (data[np.minimum(escaping + 1, len(data) - 1)] == _QUOTE).all():
        # Nothing but quotes is escaped, so no backslash belongs to another one.
        return pc.replace_substring(text, '\\"', '"')
    lines = pc.binary_join_element_wise('{"v":"', text.fill_null(""), '"}\n', "")
    read = read_lines(lines, pa.schema([("v", pa.string())])).column("v").combine_chunks()
    return pc.if_else(pc.is_null(text), pa.scalar(None, pa.string()), read)


def texts(values: Fragment | Struct | str, rows: int) -> pa.StringArray:
    """Return texts without quotes and escapes, shape (rows,); other values as they are written; null stays null.

    Args:
        values: of the records; no structures.
        rows: how many.
    """
    if isinstance(values, Fragment):
        return plain(values)
    assert isinstance(values, str)
    return pa.repeat(pa.scalar(text_or_json(values), pa.string()), rows)


def text_or_json(value: str) -> str | None:
    """Return a text without quotes and escapes, another value as it is written, and None for null."""
    text = json.loads(value)
    return text if isinstance(text, str) or text is None else value


def _without_default(values: Fragment | str, field: ConnectSchema) -> Values:
    """Return the values of a written field, null where it is the default."""
    if "default" not in field:
        return values
    default = dumps(field["default"])
    if isinstance(values, str):
        return NULL if values == default else values
    shown = default[1:-1] if values.quoted else default
    return Fragment(pc.if_else(pc.equal(values.text, shown), pa.scalar(None, pa.string()), values.text), values.quoted)


def _json(value: Json) -> str | None:
    return None if value is None else dumps(value)


def _fragment(values: pa.Array) -> Fragment:
    if pa.types.is_string(values.type):
        return string(values)
    return Fragment(values.cast(pa.string()))
