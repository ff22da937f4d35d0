"""Decodes Relation messages, which hold a table's structure as of a change.

Source: PostgreSQL documentation, "Logical Replication Message Formats", Relation; ``pg_class.relreplident``.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from floodmark.changes.column_plan import read_columns
from floodmark.changes.structure import SourceType
from floodmark.codecs.codec import Codec
from floodmark.config.common import CommonOptions
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.structure import CatalogStructure
from floodmark.connectors.postgres.source_block import SCHEMA as SOURCE_SCHEMA
from floodmark.connectors.postgres.source_block import table_piece
from floodmark.connectors.postgres.types.defaults import default_text
from floodmark.connectors.postgres.types.registry import codec_for
from floodmark.connectors.postgres.types.source_types import source_type
from floodmark.connectors.postgres.types.type_info import TypeInfo
from floodmark.connectors.postgres.wire.messages import RELATION, RELATION_OID
from floodmark.errors import DecodeError

_UINT32 = struct.Struct(">I")
_UINT16 = struct.Struct(">H")
_TYPE = struct.Struct(">Ii")

IDENTITIES = "dnfi"
"""Replica identities: default, nothing, full, index."""
UNKNOWN = CatalogStructure()


@dataclass(frozen=True)
class Column:
    """A column as of one relation version.

    Attributes:
        identity: whether the log holds it for old rows.
        optional: whether it may be NULL.
        default: the expression of its default, as the catalog prints it.
    """

    name: str
    type_oid: int
    modifier: int
    identity: bool
    optional: bool = True
    default: str | None = None


@dataclass(frozen=True)
class Relation:
    """One version of a table.

    Attributes:
        oid: the table's ``pg_class.oid``.
        columns: the published columns, in the order of tuples.
        replica_identity: d(efault), n(othing), f(ull), i(ndex).
        key: names of the columns that make an event's key; empty if there is none.
        types: the catalog's descriptions of the columns' types, and of those that they are made of, by OID; without
            those that need no query.
    """

    oid: int
    schema: str
    table: str
    replica_identity: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    types: Mapping[int, TypeInfo] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The table's number in the log."""
        return self.oid

    @property
    def source_schema(self) -> Mapping[str, Any]:
        """The Connect schema of the source block."""
        return SOURCE_SCHEMA

    @property
    def source_pieces(self) -> tuple[str, ...]:
        """The part of the source block's text that names the table."""
        return (table_piece(self.schema, self.table),)

    def layout_key(self) -> Hashable:
        """Return a value that is equal for tables whose rows become events in the same way, except for names."""
        return self.columns, self.key, tuple(sorted(self.types.items()))

    def codec(self, column: int, options: CommonOptions) -> Codec:
        """Return the codec of a column."""
        assert isinstance(options, PostgresOptions)
        one = self.columns[column]
        return codec_for(one.type_oid, one.modifier, self.types, options)

    def source_type(self, column: int) -> SourceType:
        """Return a column's type as JDBC reports it."""
        one = self.columns[column]
        return source_type(one.type_oid, one.modifier, self.types)

    def comment(self, column: int, options: CommonOptions) -> str:
        """Return an empty text: Debezium has no comments on PostgreSQL's columns."""
        del column, options
        return ""

    def default(self, column: int, codec: Codec) -> pa.Array | None:
        """Return a column's default as the server would print it; None if it has none."""
        one = self.columns[column]
        text = default_text(one.default, one.type_oid, one.modifier, codec, self.types)
        return None if text is None else pa.array([text], pa.string())


def parse_relation(raw: bytes, structure: CatalogStructure = UNKNOWN) -> Relation:
    """Decode a Relation message.

    Args:
        raw: the message from its type byte on.
        structure: the catalog's structure when the message was received, by the message's names.

    Raises:
        DecodeError: the message is cut off, or is another kind of message.
    """
    try:
        (oid,) = _UINT32.unpack_from(raw, RELATION_OID)
        schema, at = _text(raw, RELATION_OID + _UINT32.size)
        table, at = _text(raw, at)
        identity = chr(raw[at])
        if raw[0] != RELATION or identity not in IDENTITIES:
            raise ValueError("another kind of message")
        (count,) = _UINT16.unpack_from(raw, at + 1)
        at += 3
        columns: list[Column] = []
        required = set(structure.required)
        for _ in range(count):
            flag = raw[at]
            name, at = _text(raw, at + 1)
            type_oid, modifier = _TYPE.unpack_from(raw, at)
            at += _TYPE.size
            optional = name not in required
            columns.append(Column(name, type_oid, modifier, bool(flag & 1), optional, structure.defaults.get(name)))
        if at != len(raw):
            raise ValueError(f"{len(raw) - at} bytes too many")
    except (IndexError, ValueError, struct.error) as exc:
        raise DecodeError(f"A Relation message cannot be read: {exc}.") from None
    key = key_columns(identity, columns, structure.key, structure.unmarked_key)
    return Relation(oid, schema or "pg_catalog", table, identity, tuple(columns), key, structure.types)


def key_columns(
    identity: str, columns: Sequence[Column], catalog_key: Sequence[str], unmarked_key: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names of the key's columns.

    With the default identity the message itself marks the primary key as it was at the time of the
    change; the catalog has its order. If the message marks none, there was none: one that the catalog has was added
    later, unless it is a key that messages don't mark. With an index as identity, a key that the index doesn't cover
    would be unknown in deletes, so then the index's columns are the key. Otherwise only the catalog has the key.

    Args:
        identity: the replica identity.
        columns: the relation's columns; ``identity`` marks those that the log holds for old rows.
        catalog_key: columns of the primary key, or of a unique index over NOT NULL columns.
        unmarked_key: columns of the best key that the message wouldn't mark.
    """
    marked = tuple(column.name for column in columns if column.identity)
    names = {column.name for column in columns}
    known = tuple(name for name in catalog_key if name in names)
    if identity == "d" and marked:
        return known if set(known) == set(marked) else marked
    if identity == "d":
        return tuple(unmarked_key) if set(unmarked_key) <= names else ()
    if identity == "i":
        return known if known and set(known) <= set(marked) else marked
    return known


def follows_catalog(relation: Relation, schemas: bool) -> bool:
    """Return whether the events of a table depend on types that ``ALTER`` changes without a new Relation message.

    Those are domains, which can become NOT NULL, and in schemas enums, whose labels they list.
    """
    own = {column.type_oid for column in relation.columns} & relation.types.keys()
    kinds = {relation.types[oid].kind for oid in own}
    return "d" in kinds or (schemas and any(info.kind == "e" for info in relation.types.values()))


def _text(raw: bytes, at: int) -> tuple[str, int]:
    end = raw.index(b"\0", at)
    return raw[at:end].decode(), end + 1


def as_read(relation: Relation, options: PostgresOptions) -> Relation:
    """Return a relation with the columns that a snapshot reads."""
    names = [column.name for column in relation.columns]
    wanted = read_columns(relation.schema, relation.table, names, relation.key, options)
    return dataclasses.replace(relation, columns=tuple(column for column in relation.columns if column.name in wanted))
