"""The two formats of documents: JSON, and protocol buffers."""

from __future__ import annotations

import json
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.oracle.model.tables import Column, Row, Structure
from tests.support.oracle.model.types import UNSET_SCALE, OracleType
from tests.support.oracle.replicator.messages import number_field, text_field
from tests.support.oracle.replicator.values import row_text, value_text


@dataclass(frozen=True)
class Change:
    """A change of a row.

    Attributes:
        operation: ``c``, ``u`` or ``d``.
        object_id: the table's number.
        number: the change's number in its transaction; None: it isn't shown.
        row_id: the row's; None: it isn't shown.
        before: the row before; None: it isn't shown.
        after: the row after; None: it isn't shown.
    """

    operation: str
    object_id: int
    number: int | None
    row_id: str | None
    before: Row | None
    after: Row | None


class Writer(ABC):
    """Writes documents in a format."""

    @abstractmethod
    def mark(self, operation: str, **more: int) -> bytes:
        """Return the entry of a beginning, an end or a checkpoint."""

    @abstractmethod
    def statement(self, structure: Structure, object_id: int, text: str) -> bytes:
        """Return the entry of a statement about a table."""

    @abstractmethod
    def change(self, structure: Structure, change: Change) -> bytes:
        """Return the entry of a change."""

    @abstractmethod
    def message(self, head: Mapping[str, object], entries: Sequence[bytes]) -> bytes:
        """Return a document."""


class JsonWriter(Writer):
    """JSON."""

    def mark(self, operation: str, **more: int) -> bytes:
        return _json({"op": operation, **more}).encode()

    def statement(self, structure: Structure, object_id: int, text: str) -> bytes:
        return f'{{"op":"ddl",{_schema(structure, object_id)},"sql":{json.dumps(text)}}}'.encode()

    def change(self, structure: Structure, change: Change) -> bytes:
        columns = list(structure.columns)
        parts = [f'"op":"{change.operation}"', _schema(structure, change.object_id)]
        if change.number is not None:
            parts.append(f'"num":{change.number}')
        if change.row_id is not None:
            parts.append(f'"rid":"{change.row_id}"')
        if change.before is not None:
            parts.append(f'"before":{row_text(change.before, columns)}')
        if change.after is not None:
            parts.append(f'"after":{row_text(change.after, columns)}')
        return f"{{{','.join(parts)}}}".encode()

    def message(self, head: Mapping[str, object], entries: Sequence[bytes]) -> bytes:
        return f'{_json(head)[:-1]},"payload":['.encode() + b",".join(entries) + b"]}"


def _json(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"))


def _schema(structure: Structure, object_id: int) -> str:
    names = f'"owner":{json.dumps(structure.owner)},"table":{json.dumps(structure.name)}'
    shown = ",".join(map(_column, structure.columns))
    return f'"schema":{{{names},"obj":{object_id},"columns":[{shown}]}}'


def _column(one: Column) -> str:
    kind = json.dumps(one.type.base.lower())
    return f'{{"name":{json.dumps(one.name)},"type":{kind},"nullable":{json.dumps(one.nullable)}}}'


class BufferWriter(Writer):
    """Protocol buffers, with what release 1.9.0 makes of values."""

    _OPERATIONS = ("begin", "commit", "c", "u", "d", "ddl", "chkpt")

    def mark(self, operation: str, **more: int) -> bytes:
        fields = number_field(1, self._OPERATIONS.index(operation))
        for name, number in (("seq", 7), ("offset", 8)):
            fields += number_field(number, more.get(name, 0))
        return fields

    def statement(self, structure: Structure, object_id: int, text: str) -> bytes:
        raise AssertionError("Release 1.9.0 ends itself if it should send a statement in a protocol buffer.")

    def change(self, structure: Structure, change: Change) -> bytes:
        schema = text_field(1, structure.owner) + text_field(2, structure.name) + number_field(3, change.object_id)
        entry = number_field(1, self._OPERATIONS.index(change.operation)) + text_field(2, schema)
        entry += text_field(3, change.row_id) if change.row_id is not None else b""
        for number, row in ((4, change.before), (5, change.after)):
            for column in structure.columns:
                if row is not None and column.name in row:
                    value = text_field(1, column.name) + _datum(column.type, row[column.name])
                    entry += text_field(number, value)
        return entry + number_field(10, change.number or 0)

    def message(self, head: Mapping[str, object], entries: Sequence[bytes]) -> bytes:
        parts = [number_field(1, 5)]
        for name, number in (("scn", 2), ("tm", 4), ("xid", 6), ("db", 8)):
            value = head.get(name)
            if value is not None:
                parts.append(
                    text_field(number, value) if isinstance(value, str) else number_field(number, int(str(value)))
                )
        parts += [text_field(9, entry) for entry in entries]
        parts += [number_field(number, int(str(head.get(name, 0)))) for name, number in (("c_scn", 10), ("c_idx", 11))]
        return b"".join(parts)


def _datum(type_: OracleType, value: Any) -> bytes:
    base = type_.base
    if value is None or base in {"RAW", "BLOB", "DATE"} or base.startswith("TIMESTAMP"):
        return b""
    if base in {"BINARY_FLOAT", "BINARY_DOUBLE"}:
        return b"\x21" + struct.pack("<d", value)
    shown = value_text(type_, value)
    if base not in {"NUMBER", "FLOAT"}:
        return text_field(5, json.loads(shown))
    digits = -1 if type_.precision is None or "*" in type_.text else type_.precision
    scale = -1 if type_.scale == UNSET_SCALE else type_.scale
    if scale == 0 and digits <= 17:
        return number_field(2, int(shown), is_written=True)
    if digits <= 6 and scale < 38:
        return b"\x1d" + struct.pack("<f", float(shown))
    if digits <= 15 and scale <= 307:
        return b"\x21" + struct.pack("<d", float(shown))
    return text_field(5, shown)
