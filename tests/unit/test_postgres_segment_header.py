"""The header of PostgreSQL's segments: what earlier versions wrote is read, and its format stays as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from floodmark.connectors.postgres.decode.segment_header import OpenTransaction, SegmentHeader
from floodmark.connectors.postgres.types.type_info import TypeInfo
from floodmark.errors import DecodeError

RECORDED = (
    '{"transaction": {"lsn": 1152921504606854388, "commit_us": 946684801000000, "xid": 840, "changes": 1, '
    '"origin": ["else", 77], "events": {"public.enumed": 1}}, "last_commit": null, "last_commit_us": null, '
    '"relations": [{"raw": "UgAAAANwdWJsaWMAZG9tYWluZWQAaQACAWlkAAAAABn/////AHYAAAFfkf////8=", '
    '"structure": {"key": ["id"], "unmarked_key": [], "identity": [], "required": ["id"], '
    '"defaults": {"v": "\'x\'::text", "id": "1"}, "types": {"90000": ["mood", "e", 0, -1, 0, ["a", "b", "4"]], '
    '"90001": ["dom", "d", 25, -1, 0, []], "25": ["text", "b", 0, -1, 0, []]}}, "record": -1}]}'
)
"""As capture wrote it when headers were dictionaries."""


def test_a_recorded_header_is_read_and_written_the_same() -> None:
    header = SegmentHeader.from_json(json.loads(RECORDED))
    assert header.transaction == OpenTransaction(
        1152921504606854388, 946684801000000, 840, 1, ("else", 77), {"public.enumed": 1}
    )
    relation = header.relations[0].relation
    assert (relation.schema, relation.table, relation.oid, relation.key) == ("public", "domained", 3, ("id",))
    assert [(column.optional, column.default) for column in relation.columns] == [(False, "1"), (True, "'x'::text")]
    assert relation.types[90000] == TypeInfo("mood", "e", labels=("a", "b", "4"))
    assert json.dumps(header.to_json()) == RECORDED


def test_headers_of_the_first_versions() -> None:
    data = json.loads(RECORDED)
    for name in ("origin", "events"):
        del data["transaction"][name]
    for name in ("unmarked_key", "identity", "defaults", "types"):
        del data["relations"][0]["structure"][name]
    del data["last_commit_us"]
    header = SegmentHeader.from_json(data)
    assert header.transaction == OpenTransaction(1152921504606854388, 946684801000000, 840, 1)
    assert header.last_commit_us is None
    assert header.relations[0].relation.key == ("id",)
    assert header.relations[0].relation.types == {}


@pytest.mark.parametrize(
    "change",
    [
        {"transaction": {}},
        {"transaction": "open"},
        {"transaction": {"lsn": "x", "commit_us": 1, "xid": 1, "changes": 1}},
        {"last_commit": "yesterday"},
        {"relations": None},
        {"relations": [{}]},
        {"relations": [{"raw": "?", "structure": {}, "record": -1}]},
        {"relations": [{"raw": "", "structure": {"types": {"25": ["text"]}}, "record": -1}]},
        {"relations": [{"raw": "", "structure": [], "record": -1}]},
        {"relations": [{"raw": "", "structure": {}, "record": "first"}]},
    ],
)
def test_other_data_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DecodeError, match="header of a log segment cannot be read"):
        SegmentHeader.from_json({**json.loads(RECORDED), **change})
