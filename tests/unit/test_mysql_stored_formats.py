"""What an earlier version of MySQL's side has stored is read as before, and stored as before, byte for byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from floodmark.connectors.mysql.continuity.check import ResumePoint
from floodmark.connectors.mysql.prepared.undecided import undecided_of
from floodmark.connectors.mysql.schema_history.store import SchemaHistory
from floodmark.connectors.mysql.snapshot.definitions import Announced
from floodmark.connectors.schema_history.files import StateDirFiles
from tests.support.mysql_stored import (
    BOOKMARK,
    DDL,
    HEADERS,
    OWNER,
    RECORDED,
    RESUME_POINT,
    UNDECIDED,
    bookmark_line,
    header_lines,
    place,
    schemas,
    write_history,
)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / OWNER).rglob("*") if path.is_file()}


def recorded_history(directory: Path) -> SchemaHistory:
    shutil.copytree(RECORDED / OWNER, directory / OWNER, dirs_exist_ok=True)
    return SchemaHistory(StateDirFiles(str(directory), OWNER), "prefix")


def test_the_schema_history_is_written_as_before(tmp_path: Path) -> None:
    write_history(tmp_path)
    assert contents(tmp_path) == contents(RECORDED)


def test_a_recorded_schema_history_goes_on(tmp_path: Path) -> None:
    expected = schemas()
    for number in reversed(range(len(DDL) + 1)):
        assert recorded_history(tmp_path).load(place(number), place(number)) == expected[number]


def test_recorded_announcements_are_read(tmp_path: Path) -> None:
    lines = recorded_history(tmp_path).announced(place(3))
    assert lines is not None
    announced = Announced.from_lines(lines)
    assert announced.schema == schemas()[3]
    assert announced.to_lines() == lines


def test_segment_headers_are_written_as_before(tmp_path: Path) -> None:
    assert header_lines(tmp_path) == (RECORDED / HEADERS).read_text().splitlines()


def test_a_bookmark_is_written_and_read_as_before() -> None:
    recorded = (RECORDED / BOOKMARK).read_text().rstrip("\n")
    assert bookmark_line() == recorded
    assert ResumePoint.from_json(json.loads(recorded)) == RESUME_POINT
    assert undecided_of(json.loads(recorded)) == UNDECIDED


def test_bookmarks_of_earlier_versions() -> None:
    assert ResumePoint.from_json({"server": "uuid", "gtids": None}) == ResumePoint("uuid", None)
    early = {"server": "uuid", "gtids": "", "host": "db", "mark": None, "history": None}
    assert ResumePoint.from_json(early) == ResumePoint("uuid", "", "db")
    assert undecided_of(early) is None
