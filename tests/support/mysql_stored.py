"""What MySQL's side stores, made from fixed statements and events: the same bytes from every version.

``python -m tests.support.mysql_stored`` records them in ``tests/data/mysql_stored``. Do so only when a format changes
on purpose: checkpoints of earlier versions must go on.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from floodmark.capture.gaps import AcceptedGaps
from floodmark.capture.segment import SegmentData
from floodmark.capture.spool import Undecided
from floodmark.connectors.load import load_options
from floodmark.connectors.mysql.capture.segment_maker import SegmentMaker
from floodmark.connectors.mysql.continuity.check import ResumePoint
from floodmark.connectors.mysql.continuity.resume_points import ResumePoints
from floodmark.connectors.mysql.ddl import statements
from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.position import Position
from floodmark.connectors.mysql.prepared.undecided import undecided_json
from floodmark.connectors.mysql.reading.file_marks import Mark
from floodmark.connectors.mysql.reading.receiver import Receiver
from floodmark.connectors.mysql.reading.table_versions import opened_at_end
from floodmark.connectors.mysql.schema.follower import SchemaFollower
from floodmark.connectors.mysql.schema_history.records import HistoryEntry
from floodmark.connectors.mysql.schema_history.store import SchemaHistory
from floodmark.connectors.mysql.snapshot.definitions import Announced
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.mysql.structures.table import Column, Table
from floodmark.connectors.schema_history.files import StateDirFiles
from tests.support.binlog_events import Log, packets
from tests.support.options import REQUIRED_MYSQL

RECORDED = Path(__file__).parents[1] / "data" / "mysql_stored"
HEADERS = "segment_headers.jsonl"
BOOKMARK = "bookmark.json"
OWNER = "owner"
DDL = (
    "CREATE TABLE a (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, e ENUM('x','y''z') DEFAULT 'x' COMMENT 'é', "
    "n DECIMAL(10,2) NOT NULL DEFAULT 1.50, at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3))"
    " COMMENT='first'",
    "CREATE TABLE b (id BIGINT NOT NULL, t TEXT, g INT GENERATED ALWAYS AS (id + 1) STORED, p POINT SRID 4326, "
    "UNIQUE (id), KEY part (t(7), id)) CHARACTER SET latin1",
    "CREATE TABLE child (a_id INT UNSIGNED, FOREIGN KEY (a_id) REFERENCES a (id))",
    "RENAME TABLE a TO c, b TO a",
    "CREATE UNIQUE INDEX i ON c (e)",
    "CREATE DATABASE other CHARACTER SET latin1",
    "CREATE TABLE other.t (v VARCHAR(3) CHARACTER SET utf8mb4 INVISIBLE, z INT(5) ZEROFILL)",
    "TRUNCATE TABLE c",
    "ALTER TABLE c ADD COLUMN s SET('p','q'), DROP COLUMN n",
    "DROP TABLE a",
    "DROP DATABASE other",
)
START = Schema({"shop": Charset("utf8mb4", "utf8mb4_bin")})


def place(number: int) -> str:
    """Return the position of a statement; 0: that of the history's beginning."""
    return f"00{number:08X}-0000-0000"


def schemas() -> list[Schema]:
    """Return the structures at the beginning and after each statement."""
    found = [START]
    for text in DDL:
        found.append(statements.apply(found[-1], text, Session("shop"), Server()).schema)
    return found


def write_history(directory: Path) -> SchemaHistory:
    """Write the statements into a history in a directory, with what a snapshot announces after the third."""
    history = SchemaHistory(StateDirFiles(str(directory), OWNER), "prefix")
    history.begin(place(0), START)
    known = schemas()
    for number, text in enumerate(DDL):
        applied = statements.apply(known[number], text, Session("shop"), Server())
        entry = HistoryEntry(place(number + 1), {"file": "binlog.000001", "pos": 4 + number}, 5, text, "shop", applied)
        history.append(entry, known[number])
    server = Charset("utf8mb4", "utf8mb4_0900_ai_ci")
    texts = {table: f"CREATE TABLE `{table[1]}` …" for table in known[3].tables}
    history.announce(place(3), Announced(server, known[3], texts).to_lines())
    return history


def segments(directory: Path) -> list[SegmentData]:
    """Return the segments of a log: a table is altered and emptied, and a transaction is cut in its middle.

    Args:
        directory: for the schema history.
    """
    options = load_options(REQUIRED_MYSQL | {"state.dir": str(directory), "table.include.list": "shop.*"})
    assert isinstance(options, BinlogOptions)
    follower = SchemaFollower(options, AcceptedGaps())
    follower.know(Server(), {45: "utf8mb4_general_ci"})
    columns = (Column("id", "int", optional=False),)
    follower.begin(
        str(Position(0, 1, 4)), Schema(START.databases, {("shop", "items"): Table("shop", "items", columns)})
    )
    log = Log()
    log.begin_file()
    log.transaction(1, 2)
    for text in ("ALTER TABLE items COMMENT 'é'", "TRUNCATE TABLE items", "CREATE TABLE more (id INT NOT NULL)"):
        log.gtid(standalone=True)
        log.query(text)
    log.gtid()
    log.query("BEGIN")
    log.add(29, b"\x08INSERT 1")
    log.table_map(5, "items")
    log.rows(5, (3,), last=False)
    cut = len(packets(log.events))
    log.rows(5, (4,))
    log.add(16, bytes(8))
    log.next_file()
    log.gtid()
    log.table_map(6, "more")
    log.rows(6, (5,))
    inner = Log(checksum=False)
    inner.query("BEGIN")
    inner.table_map(5, "items")
    inner.rows(5, (6,))
    log.gtid()
    log.payload(inner.events)
    data = packets(log.events)
    maker = SegmentMaker("mysql", follower, None, lambda _: {"shop.items": 3})
    receiver = Receiver(1 << 20, 0, 1, 4, None, None)
    found = []
    opened = None
    for part in (data[:cut], data[cut:]):
        receiver.space()[: len(part)] = part
        receiver.take(len(part))
        records = receiver.all_records()
        segment = maker.data(records, opened, 0, "a:1-7" if opened else None, receiver)
        # The receiver's buffer is used again.
        found.append(SegmentData(segment.payload.copy(), segment.starts, segment.header))
        opened = opened_at_end(records, opened)
        assert opened is not None
        opened = maker.counted(opened, segment)
        receiver.drop(receiver.waiting.count)
    return found


def header_lines(directory: Path) -> list[str]:
    """Return the headers of the segments as they are stored."""
    lines = []
    for segment in segments(directory):
        _, _, _, header, *_ = segment.to_parts("name")
        lines.append(bytes(header).decode())
    return lines


RESUME_POINT = ResumePoint("uuid", "a:1-7", "db", Mark(3, "1700000000-7-9.7.4", 157, 900, "5d" * 16))
UNDECIDED = Undecided(place(1), "a:1-3", place(2), "one.index", "xid")


def bookmark_line() -> str:
    """Return what the connector adds to an offset, as it is stored."""
    places = ResumePoints()
    places.add(place(1), RESUME_POINT)
    return json.dumps({**(places.to_json(place(3)) or {}), "history": place(3), **undecided_json(UNDECIDED)})


def main() -> None:
    """Record what is stored."""
    write_history(RECORDED)
    (RECORDED / BOOKMARK).write_text(bookmark_line() + "\n")
    with tempfile.TemporaryDirectory() as directory:
        (RECORDED / HEADERS).write_text("".join(line + "\n" for line in header_lines(Path(directory))))


if __name__ == "__main__":
    main()
