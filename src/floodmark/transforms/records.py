"""Records in the form that transforms take: their fields as columns, with Connect schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from numpy.typing import NDArray

from floodmark.events.connect_schema import ConnectSchema, Raw, field_schema
from floodmark.events.json_text import Fragment, Joiner, Text, dumps, string
from floodmark.json_data import Json
from floodmark.transforms.written_fields import find_field

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

    def with_fields(self, fields: Sequence[tuple[str, ConnectSchema, Values]]) -> Struct:
        """Return the structure with more fields: their names, schemas and values.

        As in Connect, only the schema's name, version and fields are kept, so that it isn't optional.

        Raises:
            ValueError: there is a field of that name.
        """
        names = [str(field["field"]) for field in self.fields]
        for name, _, _ in fields:
            if name in names:
                raise ValueError(name)
            names.append(name)
        schemas: list[Json] = [dict(field) for field in self.fields]
        schemas += [field_schema(schema, bool(schema["optional"]), name) for name, schema, _ in fields]
        kept = {key: self.schema[key] for key in ("name", "version") if key in self.schema}
        added = [value for _, _, value in fields]
        schema: ConnectSchema = {"type": "struct", "fields": schemas, "optional": False, **kept}
        return Struct(schema, None if self.values is None else [*self.values, *added])

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
    """A structure of scalars that has already been written as JSON; its fields are read when they are asked for.

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
        found = find_field(self._pieces, name, field["type"] == "string", self._rows)
        if found is None:
            return super().value(name)
        return _without_default(found, field)

    @cached_property
    def _read(self) -> list[Values]:
        if all(isinstance(piece, str) for piece in self._pieces):
            members = json.loads("".join(map(str, self._pieces)))
            return [_without_default(dumps(members[field["field"]]), field) for field in self.fields]
        joiner = Joiner()
        for piece in self._pieces:
            joiner.add(piece)
        kinds = [(str(field["field"]), _ARROW[str(field["type"])]) for field in self.fields]
        table = read_lines(joiner.add("\n").join(self._rows), pa.schema(kinds))
        columns = [column.combine_chunks() for column in table.columns]
        return [_without_default(_fragment(column), field) for column, field in zip(columns, self.fields, strict=True)]

    @property
    def values(self) -> Sequence[Values]:
        """The values of the schema's fields."""
        return self._read

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


Values: TypeAlias = Fragment | Struct | str
"""The values of a field: JSON of each record, structures, or JSON that is the same for all records."""
NULL = "null"


def write(joiner: Joiner, values: Values, defaults: bool = False) -> None:
    """Append values as JSON; see ``Struct.write``."""
    if isinstance(values, str):
        joiner.add(values)
    elif isinstance(values, Fragment):
        joiner.add_field(values)
    else:
        values.write(joiner, defaults)


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
    if not fragment.quoted or not pc.any(pc.match_substring(text, "\\")).as_py():
        return text
    lines = pc.binary_join_element_wise('{"v":"', text.fill_null(""), '"}\n', "")
    read = read_lines(lines, pa.schema([("v", pa.string())])).column("v").combine_chunks()
    return pc.if_else(pc.is_null(text), pa.scalar(None, pa.string()), read)


def _without_default(values: Fragment | str, field: ConnectSchema) -> Values:
    """Return the values of a written field, null where it is the default."""
    if "default" not in field:
        return values
    default = dumps(field["default"])
    if isinstance(values, str):
        return NULL if values == default else values
    shown = default[1:-1] if values.quoted else default
    return Fragment(pc.if_else(pc.equal(values.text, shown), pa.scalar(None, pa.string()), values.text), values.quoted)


def _fragment(values: pa.Array) -> Fragment:
    if pa.types.is_string(values.type):
        return string(values)
    return Fragment(values.cast(pa.string()))


@dataclass(frozen=True)
class Header:
    """A header that records have.

    Attributes:
        name: its name.
        values: JSON of each record's, or of all.
    """

    name: str
    values: Values


@dataclass(frozen=True)
class Records:
    """Records of one kind, of one version of a table.

    Attributes:
        rows: how many.
        topic: where they go.
        key: as JSON text, shape (rows,); null if they have none.
        value: None: they are tombstones.
        headers: in their order.
        index: their numbers among the records that the transforms were given, shape (rows,).
        deleted: with tombstones, the values of the deletes that they follow.
    """

    rows: int
    topic: Text
    key: pa.StringArray
    value: Struct | None
    headers: tuple[Header, ...]
    index: NDArray[np.int64]
    deleted: Struct | None = None

    def take(self, at: NDArray[np.int64]) -> Records:
        """Return some of the records."""
        index = pa.array(at)
        return replace(
            self,
            rows=len(at),
            topic=self.topic if isinstance(self.topic, str) else self.topic.take(index),
            key=self.key.take(index),
            value=None if self.value is None else self.value.take(at),
            headers=tuple(replace(header, values=taken(header.values, at)) for header in self.headers),
            index=self.index[at],
            deleted=None if self.deleted is None else self.deleted.take(at),
        )
