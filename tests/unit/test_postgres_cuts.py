"""Segments cut from bytes made by hand, without a server: transactions, relations, and what the catalog is asked."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from floodmark.connectors.postgres.continuity.bookmark import Commit
from floodmark.connectors.postgres.decode.segment_header import SegmentHeader
from floodmark.connectors.postgres.position import position
from floodmark.connectors.postgres.server.structure import CatalogColumn
from floodmark.errors import DecodeError
from tests.support.pgoutput import FIRST_LSN, TEXT_OID, Log, relation_message
from tests.support.received import (
    COMMIT_US,
    DOMAIN,
    ENUM,
    LEVELS,
    MOODS,
    RELATIONS,
    TABLE,
    TYPES,
    Fed,
    fed,
    insert,
    lsn_of,
    opened,
    raw,
)


def test_a_forced_cut_inside_a_transaction() -> None:
    one = fed(options={"provide.transaction.metadata": "true"})
    first = Log()
    first.begin(lsn_of(0), 700)
    first.origin(b"elsewhere")
    first.relation(RELATIONS[TABLE])
    one.feed(raw(first))
    assert one.cut(force=False) is None
    assert one.cut(force=True) is None  # there is no change
    more = Log()
    insert(more)
    more.message(b"said", b"hello", inside=True)
    one.feed(raw(more))
    assert one.cut(force=False) is None
    inside = one.cut(force=True)
    assert inside is not None
    assert (inside.after, inside.upto) == (position(FIRST_LSN), position(lsn_of(0), 2))
    assert inside.data.header["transaction"] is None
    assert one.finished[0].commit == Commit(lsn_of(0), COMMIT_US, lsn_of(0) + 1)
    assert one.receiver.received == inside.upto
    assert one.idle() is None

    rest = Log()
    insert(rest)
    rest.commit(lsn_of(0))
    one.feed(raw(rest))
    cut = one.cut()
    assert cut is not None
    header = SegmentHeader.from_json(cut.data.header)
    assert header.transaction is not None
    assert header.transaction.changes == 2
    assert header.transaction.origin == ("elsewhere", 77)
    assert header.transaction.events == {"public.plain": 1, "LOGICAL_DECODING_MESSAGE": 1}
    assert (header.last_commit, header.last_commit_us) == (None, None)
    assert [entry.record for entry in header.relations] == [-1]
    assert one.finished[1].commit is None  # no transaction begins in it

    following = opened(first=1)
    following.commit(lsn_of(1))
    one.feed(raw(following))
    last = one.cut()
    assert last is not None
    header = SegmentHeader.from_json(last.data.header)
    assert header.transaction is None
    assert (header.last_commit, header.last_commit_us) == (lsn_of(0) + 8, COMMIT_US)


def test_a_change_outside_of_a_transaction() -> None:
    log = Log()
    log.relation(RELATIONS[TABLE])
    insert(log)
    one = fed()
    one.feed(raw(log))
    with pytest.raises(DecodeError, match="outside of a transaction"):
        one.cut(force=True)


def test_a_change_that_is_cut_off() -> None:
    log = Log()
    log.wal(b"I")
    one = fed()
    one.feed(raw(log))
    with pytest.raises(DecodeError):
        one.cut(force=True)


def _announced(one: Fed, *oids: int) -> None:
    log = Log()
    log.begin(lsn_of(0), 700)
    for oid in oids:
        log.relation(RELATIONS[oid])
        insert(log, oid)
    log.commit(lsn_of(0))
    one.feed(raw(log))
    assert one.cut() is not None


def _again(one: Fed, *oids: int) -> SegmentHeader:
    log = Log()
    log.begin(lsn_of(1), 701)
    for oid in oids:
        insert(log, oid)
    log.commit(lsn_of(1))
    one.feed(raw(log))
    cut = one.cut()
    assert cut is not None
    return SegmentHeader.from_json(cut.data.header)


def test_the_catalog_is_needed_for_new_relations_alone() -> None:
    one = fed()
    _announced(one, TABLE, MOODS)
    assert one.catalog.requests == [{TABLE: {TEXT_OID}, MOODS: {TEXT_OID, ENUM}}]
    # Labels are in events only with schemas.
    header = _again(one, TABLE, MOODS)
    assert len(one.catalog.requests) == 1
    assert [(entry.relation.oid, entry.record) for entry in header.relations] == [(TABLE, -1), (MOODS, -1)]
    assert _again(one, MOODS).relations == header.relations[1:]


def test_altered_types_are_read_again() -> None:
    one = fed(options={"schemas.enable": "true"})
    _announced(one, TABLE, MOODS, LEVELS)
    labels = ("sad", "ok", "happy")
    one.catalog.types = {**TYPES, ENUM: replace(TYPES[ENUM], labels=labels)}
    one.catalog.structure = replace(
        one.catalog.structure,
        key=("level",),
        required=("id", "level"),
        columns=(CatalogColumn("id", TEXT_OID, False), CatalogColumn("level", DOMAIN, False)),
    )
    header = _again(one, TABLE, LEVELS)
    assert one.catalog.requests[1:] == [{LEVELS: {TEXT_OID, DOMAIN}}]
    plain, levels = header.relations
    assert plain.structure.required == ("id",)
    assert levels.structure.required == ("id", "level")
    assert levels.structure.key == ("id",)  # what a Relation message would announce stays as it was
    assert levels.structure.types[ENUM].labels == labels
    (moods,) = _again(one, MOODS).relations
    assert one.catalog.requests[2:] == [{MOODS: {TEXT_OID, ENUM}}]
    assert moods.relation.types[ENUM].labels == labels


def test_a_table_that_is_announced_again() -> None:
    one = fed()
    _announced(one, TABLE)
    log = Log()
    log.begin(lsn_of(1), 701)
    insert(log)
    log.relation(relation_message(TABLE, "plain", ["id", "v", "more"]))
    log.change("I", TABLE, ("N", ["2", "two", "."]))
    log.commit(lsn_of(1))
    one.feed(raw(log))
    cut = one.cut()
    assert cut is not None
    header = SegmentHeader.from_json(cut.data.header)
    assert [(entry.record, len(entry.relation.columns)) for entry in header.relations] == [(-1, 2), (2, 3)]
    last = header.relations[1]
    assert SegmentHeader.from_json(json.loads(json.dumps(cut.data.header))) == header
    (again,) = _again(one, TABLE).relations
    assert again == replace(last, record=-1)
