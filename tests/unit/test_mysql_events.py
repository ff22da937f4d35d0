"""Reading single binlog events: checksums, statements, GTIDs, tables, compressed parts."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.mysql.binlog import event_types as types
from floodmark.connectors.mysql.binlog.checksums import first_wrong, has_checksum
from floodmark.connectors.mysql.binlog.column_types import LONG
from floodmark.connectors.mysql.binlog.compressed import decompressed, payload_events
from floodmark.connectors.mysql.binlog.queries import BEGIN, COMMIT, OTHER, parse_query, query_kinds
from floodmark.connectors.mysql.binlog.table_map import ColumnMap, parse_table_map, table_name
from floodmark.connectors.mysql.binlog.transactions import Transaction, parse_gtid, with_transactions
from floodmark.connectors.mysql.gtid import MysqlGtids
from floodmark.errors import DecodeError
from tests.support.binlog_events import Log, packets

# Events that MySQL 9.7 and MariaDB 10.11 wrote, without checksums.
TAGGED = bytes.fromhex(
    "00f153652ac9ed00005200000023050000000002760000"
    "0002c29902e103ad0399030422c50371022d0204f103000000020404060a6d7974616708080a140c7fdd4671c1d160061075041283120b"
)
STATEMENT = (
    bytes.fromhex(
        "00f1536502c9ed0000960000003102000000000e000000000000000000002c000000000000012000a04500000000060373746404ff00ff00"
        "ff000c01740011150000000000000012ff00130000"
    )
    + b"create table t.a (id int primary key, v varchar(20), e enum('x','y'))"
)
PAYLOAD = bytes.fromhex(
    "0201000301ba01018b0028b52ffd20ba150400a2861824902b8d0190eceeae7bd7ebbb3bd4b4aa5b508d10cdd2a9dc515f4bc2703908c1524a"
    "9902ffbfc220c0682e94fc3317bf078a50a7ebf5e06d0659e7487e02884becc936cb2f0aea74411e0e89f14b7873326510923627ecc380a31b"
    "cfa99c3a5d010d00a004c4c554b0a0ef5699036dc02f23acca2d67591a080c0a198017bf"
)


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=30), st.data())
def test_checksums_of_many_events(bodies: list[bytes], data: st.DataObject) -> None:
    log = Log()
    for body in bodies:
        log.add(types.ROWS_QUERY, body)
    sent = np.frombuffer(packets(log.events), np.uint8).copy()
    before = sent.copy()
    ends = np.cumsum([len(event) + 5 for event in log.events])
    starts = np.append(0, ends[:-1])
    assert first_wrong(sent, starts, int(ends[-1])) is None
    assert (sent == before).all()
    assert all(map(has_checksum, log.events))
    event = data.draw(st.integers(0, len(bodies) - 1))
    at = int(starts[event]) + 5 + data.draw(st.integers(0, len(log.events[event]) - 1))
    sent[at] ^= data.draw(st.integers(1, 255))
    assert first_wrong(sent, starts, int(ends[-1])) == event


def test_a_statement_and_its_session() -> None:
    query = parse_query(STATEMENT)
    assert query.sql == "create table t.a (id int primary key, v varchar(20), e enum('x','y'))"
    assert (query.database, query.thread) == ("", 14)
    assert query.sql_mode == 0x45A00020
    assert (query.client_charset, query.server_collation, query.utf8mb4_collation) == (255, 255, 255)
    assert query.explicit_timestamps is None
    assert not query.controls


@pytest.mark.parametrize(
    ("text", "starts", "ends", "controls"),
    [
        ("BEGIN", True, False, True),
        ("XA START X'61',X'',1", True, False, True),
        ("COMMIT", False, True, True),
        ("ROLLBACK", False, True, True),
        ("XA COMMIT X'61',X'',1", False, True, True),
        ("XA END X'61',X'',1", False, False, True),
        ("ROLLBACK TO `s`", False, False, True),
        ("SAVEPOINT `s`", False, False, True),
        ("CREATE TABLE begin (a INT)", False, False, False),
        ("xa_table", False, False, False),
    ],
)
def test_transaction_control(text: str, starts: bool, ends: bool, controls: bool) -> None:
    query = replace(parse_query(STATEMENT), sql=text)
    assert (query.starts, query.ends, query.controls) == (starts, ends, controls)


@given(st.lists(st.sampled_from(["BEGIN", "COMMIT", "ROLLBACK", "begin", "BEGIM", "XA", "", "DROP TABLE x"])))
def test_kinds_of_statements(texts: list[str]) -> None:
    log = Log()
    for index, text in enumerate(texts):
        log.query(text, "d" * (index % 5), bytes([0, 0, 0, 0, 0]) * (index % 3))
    sent = np.frombuffer(packets(log.events), np.uint8)
    ends = np.cumsum([len(event) + 5 for event in log.events], dtype=np.int64)
    starts = np.append(0, ends)[:-1] if texts else np.empty(0, np.int64)
    expected = [{"BEGIN": BEGIN, "COMMIT": COMMIT, "ROLLBACK": COMMIT}.get(text, OTHER) for text in texts]
    assert query_kinds(sent, starts, 4).tolist() == expected


def test_a_tagged_gtid() -> None:
    said = Transaction("61a6f8eb-e602-11f1-9c8b-02fc00000001:mytag:1", 1_795_303_870_121_693)
    assert parse_gtid(TAGGED) == said
    record = np.frombuffer(bytes(5) + TAGGED + bytes(4), np.uint8)
    gtids = with_transactions(MysqlGtids({}), record, np.zeros(1, np.int64))
    assert str(gtids) == "61a6f8eb-e602-11f1-9c8b-02fc00000001:mytag:1"


def test_a_compressed_transaction() -> None:
    plain, starts = payload_events(PAYLOAD)
    assert len(plain) == 186
    assert plain[starts + types.TYPE].tolist() == [types.QUERY, types.TABLE_MAP, types.WRITE_ROWS, types.XID]
    assert table_name(bytes(plain[starts[1] : starts[2]])) == (108, "t", "a")
    for damaged in (PAYLOAD[:40], PAYLOAD[:3], b"\x02\x01\x07" + PAYLOAD[3:], PAYLOAD[:-20] + bytes(20), b""):
        with pytest.raises(DecodeError):
            payload_events(damaged)


def test_an_uncompressed_payload_and_cut_off_events() -> None:
    log = Log(checksum=False)
    log.transaction(1)
    del log.events[0]
    inner = b"".join(log.events)
    size = struct.pack("<H", len(inner))
    body = b"\x02\x03\xfc\xff\x00" + b"\x01\x03\xfc" + size + b"\0"
    plain, starts = payload_events(body + inner)
    assert bytes(plain) == inner
    assert len(starts) == len(log.events)
    with pytest.raises(DecodeError, match="cut off"):
        payload_events(body + inner[:-3])


@given(st.binary(max_size=300))
def test_mariadbs_compressed_data(data: bytes) -> None:
    packed = bytes([0x82]) + struct.pack(">H", len(data)) + zlib.compress(data)
    assert decompressed(packed) == data
    for damaged in (packed[:2], b"\x92" + packed[1:], bytes([0x82, 0xFF, 0xFF]) + packed[3:], b""):
        with pytest.raises(DecodeError):
            decompressed(damaged)


def test_events_cut_anywhere_give_clear_errors() -> None:
    log = Log(checksum=False)
    log.table_map(5, "items")
    event = log.events[0]
    assert parse_table_map(event, "mysql").columns == (ColumnMap(LONG, nullable=False),)
    for size in range(types.HEADER_BYTES, len(event)):
        with pytest.raises(DecodeError):
            parse_table_map(event[:size], "mysql")
    for parse, whole in ((parse_query, STATEMENT), (parse_gtid, TAGGED)):
        for size in range(types.HEADER_BYTES, types.HEADER_BYTES + 12):
            with pytest.raises(DecodeError):
                parse(whole[:size])


def test_arrow_has_zstd() -> None:
    assert pa.Codec.is_available("zstd")
