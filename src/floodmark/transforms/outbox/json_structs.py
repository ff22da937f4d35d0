"""Reads columns of JSON texts as structures whose schemas follow from the texts, as Debezium's ``JsonSchemaData`` does.

Texts that differ only in their values are read together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask, valid
from floodmark.codecs.floats import java_number
from floodmark.events.connect_schema import ConnectSchema, field_schema
from floodmark.events.json_text import FOUR_BYTES, Fragment, Joiner, string, value_bytes
from floodmark.json_data import Json
from floodmark.transforms.outbox.json_tokens import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    NEITHER,
    NULL_WORD,
    SCALARS,
    TEXT,
    Tokens,
    closed_quotes,
    tokens_of,
)
from floodmark.transforms.structs import NULL, Struct, Values, plain, write

Node: TypeAlias = int | list["Node"] | dict[str, "Node"]
"""A value of a text: its token's number, or the values that it has."""
_TYPES = {TEXT: "string", BOOLEAN: "boolean", INT: "int32", LONG: "int64", DOUBLE: "double"}
_DECODER = json.JSONDecoder()
_NOT_COPIED = r"\\[u/]"
"""Escapes that Jackson doesn't write as they are."""


class _UnfitError(ValueError):
    """A text has no schema that fits it."""


def structs_of(texts: pa.StringArray, name: str, keeps_null: bool) -> Iterator[tuple[NDArray[np.int64], Struct | None]]:
    """Yield the numbers of texts that have the same schema, with the structures that they mean; None: they mean none.

    A text does if it is no JSON object, or one with an array of values of several types.

    Args:
        texts: shape (texts,).
        name: of the structures' schema.
        keeps_null: whether fields that are null are kept, as bytes.
    """
    chosen = valid(texts) & as_mask(pc.starts_with(texts, "{"))
    rows = np.flatnonzero(chosen)
    rows = rows[closed_quotes(texts.take(pa.array(rows)))]
    tokens = tokens_of(texts.take(pa.array(rows)))
    shapes = tokens.shapes.dictionary_encode()
    shape = shapes.indices.to_numpy()
    order = np.argsort(shape, kind="stable")
    others = [np.setdiff1d(np.arange(len(texts)), rows)]
    for group in np.split(order, np.flatnonzero(np.diff(shape[order])) + 1) if len(order) else ():
        try:
            yield rows[group], _Reader(tokens, group, keeps_null).struct(name)
        except _UnfitError:
            others.append(rows[group])
    rest = np.sort(np.concatenate(others))
    if len(rest):
        yield rest, None


class _Reader:
    """Reads texts that differ only in their values.

    Args:
        tokens: of all texts.
        group: the numbers of these.
        keeps_null: whether fields that are null are kept.
    """

    def __init__(self, tokens: Tokens, group: NDArray[np.int64], keeps_null: bool) -> None:
        self._text = tokens.text
        self._begins = tokens.begins[group]
        first, end = tokens.begins[group[0]], tokens.begins[group[0] + 1]
        self._kind = tokens.kind[first:end]
        self._words = tokens.text[first:end].to_pylist()
        self._keeps_null = keeps_null

    def struct(self, name: str) -> Struct:
        """Return the structures.

        Raises:
            _UnfitError: the texts are no JSON, or no schema fits.
        """
        scalar = np.isin(self._kind, SCALARS)
        pieces = [f" {at} " if scalar[at] else word for at, word in enumerate(self._words)]
        try:
            # As Jackson, without a look at what follows the object.
            node, _ = cast(tuple[Node, int], _DECODER.raw_decode("".join(pieces)))
            schema = self._schema(name, node)
            struct = self._values(node, schema or {})
        except (ValueError, RecursionError):
            raise _UnfitError from None
        assert isinstance(struct, Struct)
        return struct

    def _schema(self, name: str, node: Node) -> ConnectSchema | None:
        """Return a value's schema; None: it gets none.

        Args:
            name: of the schema of an object; empty: it has none.
            node: the value.
        """
        if isinstance(node, int):
            if self._kind[node] == NEITHER:
                raise _UnfitError
            if self._kind[node] == NULL_WORD:
                return {"type": "bytes", "optional": True} if self._keeps_null else None
            return {"type": _TYPES[int(self._kind[node])], "optional": True}
        if isinstance(node, list):
            return {"type": "array", "items": dict(self._items(name, node)), "optional": True} if node else None
        fields: list[Json] = []
        for key, value in node.items():
            schema = self._schema(f"{name}.{key}" if name.strip() else key, value)
            if schema is not None and not key:
                raise _UnfitError
            if schema is not None:
                fields.append(field_schema(schema, bool(schema["optional"]), key))
        return _object(name, fields, optional=True)

    def _items(self, name: str, nodes: Sequence[Node]) -> ConnectSchema:
        """Return the schema of the values of an array that isn't empty."""
        present = [node for node in nodes if not self._is_null(node)]
        if len({self._family(node) for node in present}) > 1:
            raise _UnfitError
        sample = present[0] if present else nodes[0]
        if not isinstance(sample, dict):
            schema = self._schema("", sample)
            if schema is None:
                raise _UnfitError
            return schema
        schemas = [cast(ConnectSchema, self._schema(name, node)) for node in present]
        if all(schema == schemas[0] for schema in schemas):
            return schemas[0]
        fields: dict[str, Mapping[str, Json]] = {}
        for schema in schemas:
            for field in cast(Sequence[ConnectSchema], schema["fields"]):
                known = fields.setdefault(str(field["field"]), field)
                if known["type"] == "bytes":
                    fields[str(field["field"])] = field
        return _object(name, [dict(field) for field in fields.values()], optional=False)

    def _is_null(self, node: Node) -> bool:
        return isinstance(node, int) and bool(self._kind[node] == NULL_WORD)

    def _family(self, node: Node) -> str:
        """Return what must be the same for all values of an array."""
        return chr(self._kind[node]) if isinstance(node, int) else type(node).__name__

    def _values(self, node: Node, schema: ConnectSchema) -> Values:
        """Return the values of all texts at the place of a node.

        Raises:
            _UnfitError: the schema, which several values of an array share, doesn't fit.
        """
        if self._is_null(node):
            if not schema["optional"]:
                raise _UnfitError
            return NULL
        if isinstance(node, int):
            kind = int(self._kind[node])
            if _TYPES[kind] != schema["type"]:
                raise _UnfitError
            return _scalars(self._text.take(pa.array(self._begins + node)), kind)
        if isinstance(node, list):
            if schema["type"] != "array":
                raise _UnfitError
            items = cast(ConnectSchema, schema["items"])
            joiner = Joiner().add("[")
            for place, item in enumerate(node):
                write(joiner.add("," if place else ""), self._values(item, items))
            return Fragment(joiner.add("]").join(len(self._begins)))
        if schema["type"] != "struct":
            raise _UnfitError
        fields = cast(Sequence[ConnectSchema], schema["fields"])
        named = [(str(field["field"]), field) for field in fields]
        return Struct(schema, [self._values(node[name], field) if name in node else NULL for name, field in named])


def _object(name: str, fields: list[Json], optional: bool) -> ConnectSchema:
    schema: dict[str, Json] = {"type": "struct", "fields": fields, "optional": optional}
    return {**schema, "name": name} if name else schema


def _scalars(text: pa.StringArray, kind: int) -> Fragment:
    """Return values as Jackson writes them."""
    if kind == DOUBLE:
        return Fragment(java_number(text.cast(pa.float64()).cast(pa.string()), pa.float64()))
    if kind in (INT, LONG):
        return Fragment(pc.if_else(pc.equal(text, "-0"), "0", text))
    if kind == BOOLEAN:
        return Fragment(text)
    inner = Fragment(pc.binary_slice(text.cast(pa.binary()), 1, -1).cast(pa.string()), quoted=True)
    data = value_bytes(inner.text)
    beyond = bool(len(data)) and int(data.max()) >= FOUR_BYTES
    if beyond or pc.any(pc.match_substring_regex(inner.text, _NOT_COPIED)).as_py():
        return string(plain(inner))
    return inner
