"""Reads and writes the header of PostgreSQL's segments.

A segment holds pgoutput messages; its header holds what they lack to be decoded: the transaction that is open at its
start, the commit before it, and the relations of its changes. The JSON has these keys:

- ``transaction``: null, or the fields of ``OpenTransaction``; ``origin`` is a pair of name and LSN;
- ``last_commit``, ``last_commit_us``: end LSN and time of the last transaction before the segment, null if unknown;
- ``relations``: for each version of a table ``raw`` (the Relation message, in base64), ``record`` (the message's
  record; -1 if the message came before the segment) and ``structure`` (the fields of ``CatalogStructure``; types are
  lists of the fields of ``TypeInfo``).

Earlier versions left some of the keys out.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Self

from floodmark.connectors.postgres.decode.relation import Relation, parse_relation
from floodmark.connectors.postgres.server.structure import CatalogStructure
from floodmark.connectors.postgres.types.type_info import type_from_list
from floodmark.errors import DecodeError, describe

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What it raises to read stored data that is not what was written."""
BEFORE = -1
"""The record of a relation that was announced before the segment."""


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction whose commit hasn't been received yet.

    Attributes:
        lsn: the LSN of its commit record.
        commit_us: commit time, microseconds since the Unix epoch.
        changes: how many of its changes were received.
        origin: name and commit LSN of its replication origin; None if it began here.
        events: how many events of each table its changes make; None if they aren't counted.
    """

    lsn: int
    commit_us: int
    xid: int
    changes: int
    origin: tuple[str, int] | None = None
    events: Mapping[str, int] | None = None


@dataclass(frozen=True)
class RelationEntry:
    """A version of a table.

    Attributes:
        raw: its Relation message.
        structure: what the catalog had when the message was received, by the message's names.
        record: number of the message's record, from which the version is in force; ``BEFORE`` if it was announced
            before the segment.
    """

    raw: bytes
    structure: CatalogStructure
    record: int

    @property
    def relation(self) -> Relation:
        """The message, decoded.

        Raises:
            DecodeError: it is cut off, or is another kind of message.
        """
        return parse_relation(self.raw, self.structure)


@dataclass(frozen=True)
class SegmentHeader:
    """What a segment's records lack to be decoded.

    Attributes:
        transaction: the transaction that is open at the segment's start.
        last_commit: end LSN of the last transaction before the segment; None if unknown.
        last_commit_us: its commit time, microseconds since the Unix epoch; None if unknown.
        relations: the relations of the segment's changes: those from before the segment, then those inside.
    """

    transaction: OpenTransaction | None
    last_commit: int | None
    last_commit_us: int | None
    relations: tuple[RelationEntry, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the header as JSON data."""
        opened = self.transaction
        return {
            "transaction": None if opened is None else _transaction_to_json(opened),
            "last_commit": self.last_commit,
            "last_commit_us": self.last_commit_us,
            "relations": [_relation_to_json(entry) for entry in self.relations],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the header that ``to_json`` of this or an earlier version described.

        Raises:
            DecodeError: the data is something else.
        """
        try:
            opened = data["transaction"]
            return cls(
                None if opened is None else _transaction_from_json(opened),
                _number_or_none(data["last_commit"]),
                _number_or_none(data.get("last_commit_us")),
                tuple(_relation_from_json(entry) for entry in data["relations"]),
            )
        except UNREADABLE as exc:
            raise unreadable(exc) from None


def unreadable(exc: BaseException) -> DecodeError:
    """Return the error for a header that is not what was written."""
    return DecodeError(f"The header of a log segment cannot be read: {describe(exc)}.")


def _transaction_to_json(opened: OpenTransaction) -> dict[str, Any]:
    return {
        "lsn": opened.lsn,
        "commit_us": opened.commit_us,
        "xid": opened.xid,
        "changes": opened.changes,
        "origin": None if opened.origin is None else list(opened.origin),
        "events": None if opened.events is None else dict(opened.events),
    }


def _transaction_from_json(data: Mapping[str, Any]) -> OpenTransaction:
    origin, events = data.get("origin"), data.get("events")
    return OpenTransaction(
        int(data["lsn"]),
        int(data["commit_us"]),
        int(data["xid"]),
        int(data["changes"]),
        None if origin is None else (str(origin[0]), int(origin[1])),
        None if events is None else {str(table): int(count) for table, count in events.items()},
    )


def _relation_to_json(entry: RelationEntry) -> dict[str, Any]:
    structure = entry.structure
    return {
        "raw": base64.b64encode(entry.raw).decode(),
        "structure": {
            "key": list(structure.key),
            "unmarked_key": list(structure.unmarked_key),
            "identity": list(structure.identity),
            "required": list(structure.required),
            "defaults": dict(structure.defaults),
            "types": {str(oid): astuple(info) for oid, info in structure.types.items()},
        },
        "record": entry.record,
    }


def _relation_from_json(data: Mapping[str, Any]) -> RelationEntry:
    structure = data["structure"]
    return RelationEntry(
        base64.b64decode(data["raw"], validate=True),
        CatalogStructure(
            key=_names(structure.get("key", ())),
            unmarked_key=_names(structure.get("unmarked_key", ())),
            identity=_names(structure.get("identity", ())),
            required=_names(structure.get("required", ())),
            defaults={str(name): str(default) for name, default in structure.get("defaults", {}).items()},
            types={int(oid): type_from_list(info) for oid, info in structure.get("types", {}).items()},
        ),
        int(data["record"]),
    )


def _names(data: Iterable[object]) -> tuple[str, ...]:
    return tuple(str(name) for name in data)


def _number_or_none(number: int | None) -> int | None:
    return None if number is None else int(number)
