"""Each document that MySQL's side reads back, with each member changed: an error that names the way out, or no harm."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from floodmark.capture.segment import SegmentData
from floodmark.capture.spool import Undecided
from floodmark.changes.table_version import EventVersions
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest
from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.binlog.segments import (
    FileStart,
    PayloadRun,
    SegmentHeader,
    ShownOffset,
    StatementRecord,
)
from floodmark.connectors.mysql.continuity.check import ResumePoint
from floodmark.connectors.mysql.decode.decoder import BinlogDecoder
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.prepared.undecided import undecided_of
from floodmark.connectors.mysql.schema_history.store import SchemaHistory
from floodmark.connectors.mysql.structures.stored import WAYS_OUT
from floodmark.connectors.mysql.structures.table import Table
from floodmark.errors import CheckpointError, DecodeError, FloodmarkError, SchemaHistoryError, SourceStateError
from tests.support.mysql_stored import BOOKMARK, DDL, HEADERS, OWNER, RECORDED, place, schemas, segments
from tests.support.options import REQUIRED_MYSQL

OTHERS: tuple[Any, ...] = (None, True, -7, 1.5, "", "other", [], [None], [[1, 2, 3, 4, 5]], {}, {"other": 1})
CHANGES = 2


def changed(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield a document with each member and item changed, missing, and with one more; each with its place.

    Each member gets some of the other values, and the next member the next ones.
    """
    others = cycle(OTHERS)
    for keys in places(document):
        *before, last = keys
        for other in islice(others, CHANGES):
            result = copy.deepcopy(document)
            at(result, before)[last] = other
            yield named(keys, other), result
        result = copy.deepcopy(document)
        del at(result, before)[last]
        yield named(keys, "missing"), result
        if isinstance(at(document, keys), dict):
            result = copy.deepcopy(document)
            at(result, keys)["of a later version"] = 1
            yield named(keys, "more"), result


def places(document: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in members:
        yield (*keys, key)
        if isinstance(value, dict | list):
            yield from places(value, (*keys, key))


def at(document: Any, keys: Sequence[Any]) -> Any:
    for key in keys:
        document = document[key]
    return document


def named(keys: Sequence[Any], what: Any) -> str:
    return f"{'.'.join(map(str, keys))}: {what!r}"


def errors(document: Any, read: Callable[[Any], object]) -> dict[str, FloodmarkError]:
    """Return the errors of a document's changes; any exception that isn't one of Floodmark's fails the test."""
    found = {}
    for what, other in changed(document):
        try:
            read(other)
        except FloodmarkError as exc:
            found[what] = exc
        except Exception as exc:
            pytest.fail(f"{what}: {type(exc).__name__}: {exc}")
    return found


class Lines:
    """A schema history's files in memory."""

    place = "memory"

    def __init__(self) -> None:
        self.files = {
            path.name: path.read_bytes().splitlines()[:-1] for path in (RECORDED / OWNER).rglob("*") if path.is_file()
        }

    def names(self) -> list[str]:
        return list(self.files)

    def read(self, name: str) -> list[bytes]:
        return self.files[name]

    def write(self, name: str, lines: Sequence[bytes]) -> None:
        self.files[name] = list(lines)

    def remove(self, names: Sequence[str]) -> None:
        for name in names:
            del self.files[name]


def record_of(number: int) -> str:
    return f"{place(number)}.record"


@pytest.mark.parametrize("number", [2, 4, 6])
def test_records_of_the_schema_history(number: int) -> None:
    line, *more = Lines().files[record_of(number)]
    record = json.loads(line)

    def load(own: Any) -> None:
        files = Lines()
        files.files[record_of(number)] = [json.dumps({**record, "floodmark": own}).encode(), *more]
        SchemaHistory(files, "prefix").load(place(number))

    found = errors(record["floodmark"], load)
    for exc in found.values():
        assert isinstance(exc, SchemaHistoryError)
        assert record_of(number) in exc.what
        assert exc.cure == WAYS_OUT
    assert "after: 'missing'" in found
    assert len(found) > 10
    for other in OTHERS:
        with pytest.raises(SchemaHistoryError, match=record_of(number)):
            load(other)


def test_a_column_of_a_later_version() -> None:
    files = Lines()
    (line, *_) = files.files[record_of(1)]
    data = json.loads(line)
    data["floodmark"]["tables"][0]["columns"][0]["masked"] = True
    files.files[record_of(1)] = [json.dumps(data).encode()]
    with pytest.raises(SchemaHistoryError, match=r"a column has an unknown member 'masked'.*snapshot\.mode=recovery"):
        SchemaHistory(files, "prefix").load(place(1))


def test_a_history_whose_debezium_members_are_changed_goes_on() -> None:
    files = Lines()
    for number in range(1, len(DDL) + 1):
        lines = [json.loads(line) for line in files.files[record_of(number)]]
        for line in lines:
            line |= {"source": None, "tableChanges": 7, "ts_ms": "x"}
        files.files[record_of(number)] = [json.dumps(line).encode() for line in lines]
    assert SchemaHistory(files, "prefix").load(place(len(DDL))) == schemas()[-1]


def test_announcements_that_are_no_objects_are_not_used() -> None:
    files = Lines()
    files.files[f"{place(3)}.announced"] = [b"[1]", b"2"]
    assert SchemaHistory(files, "prefix").announced(place(3)) is None


def test_bookmarks() -> None:
    document = json.loads((RECORDED / BOOKMARK).read_text())

    def read(bookmark: dict[str, Any]) -> tuple[ResumePoint, Undecided | None]:
        return ResumePoint.from_json(bookmark), undecided_of(bookmark)

    found = errors(document, read)
    for exc in found.values():
        assert isinstance(exc, CheckpointError)
        assert "new checkpoint" in exc.cure
    assert {"server: 'missing'", "mark.birth: 'missing'", "undecided.begin: 'missing'"} <= set(found)
    assert len(found) > 20


@pytest.mark.parametrize("number", [0, 1])
def test_segment_headers(number: int, tmp_path: Path) -> None:
    given = REQUIRED_MYSQL | {
        "state.dir": str(tmp_path),
        "include.schema.changes": "true",
        "include.query": "true",
        "provide.transaction.metadata": "true",
    }
    options = load_options(given)
    assert isinstance(options, BinlogOptions)
    decoder = BinlogDecoder(options, EventVersions(options))
    segment = segments(tmp_path)[number]
    header = json.loads((RECORDED / HEADERS).read_text().splitlines()[number])
    whole = str(Position(0, 0, 4)), str(Position(0, 9, 4))

    def decode(other: dict[str, Any]) -> int:
        request = DecodeRequest(SegmentData(segment.payload, segment.starts, other), *whole)
        return sum(len(batch) for batch in decoder.decode(request, DecodeProblems()))

    assert decode(header) > 3
    found = errors(header, decode)
    # A type or a character set that does not exist is the source's state.
    others = {what for what, exc in found.items() if not isinstance(exc, DecodeError)}
    assert all("structure" in what for what in others), others
    assert all(isinstance(found[what], SourceStateError) for what in others)
    shown = str(found["epoch: 'missing'"])
    assert shown.startswith("A log segment cannot be read: its header has no 'epoch' that is a whole number.")
    assert "the same version of Floodmark" in shown
    assert {"moves: 'missing'", "tables.0.structure.columns.0: 'more'", "tables.0.record: 'missing'"} <= set(found)
    assert len(found) > 50


def test_a_segment_header_with_all_its_members() -> None:
    header = SegmentHeader(
        "mariadb",
        "11.8",
        "binlog",
        3,
        FileStart(0, 1, 4, True),
        (FileStart(2, 2, 4, False),),
        (PayloadRun(1, 1, 90, 30),),
        "0-1-7",
        statements=(StatementRecord(1, {"why": "text"}),),
        shown=(ShownOffset(0, 2, 700),),
    )
    assert SegmentHeader.from_json(json.loads(json.dumps(header.to_json()))) == header
    for recorded in (RECORDED / HEADERS).read_text().splitlines():
        data = json.loads(recorded)
        del data["payload_bytes"]
        assert json.dumps(SegmentHeader.from_json(data).to_json()) == json.dumps(data)


def test_a_table_that_is_none() -> None:
    with pytest.raises(SchemaHistoryError, match="a table is not an object"):
        Table.from_json([])
