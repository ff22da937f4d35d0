"""Determines the relations that a segment's header needs. No I/O: the catalog's answers are sent in.

A Relation message lacks what only the catalog has, so for each message the catalog is needed; for tables of types that
can be altered without a new Relation message, it is needed again for each segment.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from floodmark.connectors.postgres.decode.records import truncated
from floodmark.connectors.postgres.decode.relation import follows_catalog, parse_relation
from floodmark.connectors.postgres.decode.relation_names import as_of
from floodmark.connectors.postgres.decode.segment_header import BEFORE, RelationEntry
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.structure import CurrentStructure
from floodmark.connectors.postgres.wire.frames import Bytes, Positions, be_view, frame_end
from floodmark.connectors.postgres.wire.messages import CHANGE_OID, DELETE, INSERT, PAYLOAD, RELATION, TRUNCATE, UPDATE
from floodmark.errors import DecodeError

Result = TypeVar("Result")

CatalogRequest = Mapping[int, set[int]]
"""Tables whose structures are needed, by OID: the type OIDs of their columns."""
CatalogAnswer = Mapping[int, CurrentStructure]
"""Their structures, by OID."""
CatalogSteps = Generator[CatalogRequest, CatalogAnswer, Result]
"""A computation that yields requests to the catalog and is sent the answers."""


@dataclass(frozen=True)
class CutRecords:
    """The records of one segment.

    Attributes:
        payload: the segment's bytes.
        starts: where the records start in it, shape (records,).
        kinds: their messages' type bytes, shape (records,).
    """

    payload: Bytes
    starts: Positions
    kinds: Bytes


class HeaderRelations:
    """The relations that a connection has announced.

    Args:
        options: the source's options.

    Attributes:
        signal_tables: OIDs of those that are signal tables.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self._relations: dict[int, RelationEntry] = {}
        self._altering: set[int] = set()
        self.signal_tables: set[int] = set()

    def entries(self, records: CutRecords) -> CatalogSteps[tuple[RelationEntry, ...]]:
        """Return the relation versions that records need: those from before, then those inside.

        Raises:
            DecodeError: a record is cut off.
        """
        used = _used(records)
        yield from self._follow_types(used)
        before = [replace(entry, record=BEFORE) for oid, entry in self._relations.items() if oid in used]
        inside = yield from self._read_relations(records)
        return (*before, *inside)

    def _follow_types(self, used: set[int]) -> CatalogSteps[None]:
        """Read the types and NOT NULL columns of tables again whose types can be altered without a new message."""
        known = {oid: self._relations[oid] for oid in used & self._altering}
        if not known:
            return
        fresh = yield _types_of(entry.raw for entry in known.values())
        for oid, entry in known.items():
            now = as_of(entry.raw, fresh[oid])
            structure = replace(entry.structure, required=now.required, types=now.types)
            self._relations[oid] = replace(entry, structure=structure)

    def _read_relations(self, records: CutRecords) -> CatalogSteps[list[RelationEntry]]:
        """Take over the Relation messages among records."""
        payload = records.payload
        raws: list[tuple[int, bytes]] = []
        for record in np.flatnonzero(records.kinds == RELATION).tolist():
            at = int(records.starts[record])
            raws.append((record, bytes(payload[at + PAYLOAD : frame_end(payload, at)])))
        if not raws:
            return []
        known = yield _types_of(raw for _, raw in raws)
        entries = []
        for record, raw in raws:
            oid = parse_relation(raw).oid
            entry = RelationEntry(raw, as_of(raw, known[oid]), record)
            relation = entry.relation
            if follows_catalog(relation, self._options.writes_schemas):
                self._altering.add(oid)
            if self._options.takes_signals(relation.schema, relation.table):
                self.signal_tables.add(oid)
            self._relations[oid] = entry
            entries.append(entry)
        return entries


def _used(records: CutRecords) -> set[int]:
    """Return the OIDs of the tables that records change."""
    payload, starts, kinds = records.payload, records.starts, records.kinds
    rows = (kinds == INSERT) | (kinds == UPDATE) | (kinds == DELETE)
    try:
        used = set(np.unique(be_view(payload, ">u4")[starts[rows] + PAYLOAD + CHANGE_OID]).tolist())
    except IndexError:
        raise DecodeError("PostgreSQL sent a change that is cut off.") from None
    for at in starts[kinds == TRUNCATE].tolist():
        used.update(truncated(payload, at + PAYLOAD))
    return used


def _types_of(raws: Iterable[bytes]) -> dict[int, set[int]]:
    """Return the type OIDs of the columns in Relation messages, by table OID."""
    relations = map(parse_relation, raws)
    return {relation.oid: {column.type_oid for column in relation.columns} for relation in relations}
