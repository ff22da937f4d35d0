"""Records of XStream: their order, the transactions that they make, their values, and what errors of Java's mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.oracle.continuity.resume_point import ResumePoint
from floodmark.connectors.oracle.decode.segment import dotted
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.connectors.oracle.values.documents import Entries
from floodmark.connectors.oracle.xstream.failures import Said, said_error
from floodmark.connectors.oracle.xstream.lcrs import Op, place_of, read_lcrs
from floodmark.connectors.oracle.xstream.transactions import (
    Changes,
    Idle,
    Transactions,
    Unknown,
    _comes_before,
    hexadecimal,
)
from floodmark.errors import (
    CheckpointError,
    ConnectError,
    DecodeError,
    FloodmarkError,
    LogGoneError,
    NotReadyError,
    SourceStateError,
    UnreadableLogError,
)

POSITIONS = st.binary(min_size=1, max_size=6)
MANY_BYTES = 1 << 20


@given(st.lists(POSITIONS, min_size=1, max_size=20), POSITIONS)
def test_positions_sort_as_debezium_sorts_them(some: list[bytes], one: bytes) -> None:
    expected = [(len(one), list(one)) < (len(other), list(other)) for other in some]
    found = _comes_before(pa.scalar(one.hex()), pa.array([other.hex() for other in some]))
    assert found.to_pylist() == expected
    assert [place_of(one.hex()) < place_of(other.hex()) for other in some] == expected


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF))
def test_transactions_are_named_as_by_logminer(segment: int, slot: int, sequence: int) -> None:
    name = f"{segment}.{slot}.{sequence}"
    digits = hexadecimal(name)
    assert len(digits) == 16
    assert dotted(pa.array([digits, None, digits])).to_pylist() == [name, None, name]


@pytest.mark.parametrize("name", ["", "1.2", "1.2.x", "70000.1.1", "1.-1.1", "1.2.4294967296"])
def test_other_names_of_transactions_are_refused(name: str) -> None:
    with pytest.raises(SourceStateError, match="a form that isn't known"):
        hexadecimal(name)


def lcr(op: str, position: int, commit: int, text: str = "", xid: str = "1.2.3", table: str = "T") -> dict[str, Any]:
    """Return a record."""
    known: dict[str, Any] = {"op": op, "position": f"{position:08x}", "scn": commit - 1, "commit_scn": commit}
    if op == "idle":
        return known
    row = {"xid": xid, "db": "PDB", "owner": "S", "table": table, "rid": "R", "text": text}
    return {**known, "tm": 3600 + position, **row}


def lines(records: Sequence[dict[str, Any]]) -> pa.Table:
    return read_lcrs("".join(f"{json.dumps(one)}\n" for one in records).encode())


def transactions(
    most_bytes: int = MANY_BYTES, after: str | None = None, inside: Position | None = None
) -> Transactions:
    return Transactions(lambda owner, table: (owner, table) == ("S", "T"), most_bytes, 3600, after, inside)


def test_a_transaction_is_whole_when_its_end_has_come() -> None:
    made = transactions()
    assert list(made.add(lines([lcr("c", 1, 100, "{}"), lcr("u", 2, 100, "{}")]))) == []
    (found,) = made.add(lines([lcr("d", 3, 100, "{}"), lcr("commit", 4, 100)]))
    assert isinstance(found, Changes)
    assert (found.commit, found.ends, found.lcr, found.seconds) == (
        Position(100, 0, "0100020003000000"),
        True,
        "00000004",
        4,
    )
    assert found.rows["SEQUENCE#"].to_pylist() == [1, 2, 3]
    assert found.rows["OPERATION_CODE"].to_pylist() == [Operation.INSERT, Operation.UPDATE, Operation.DELETE]
    assert found.rows["RS_ID"].to_pylist() == ["00000001", "00000002", "00000003"]


def test_a_large_transaction_comes_in_parts_and_its_end_has_rows() -> None:
    made = transactions(most_bytes=1)
    found: list[object] = []
    for place in range(1, 6):
        found += made.add(lines([lcr("c", place, 100, "{}")]))
    found += made.add(lines([lcr("commit", 6, 100)]))
    parts = [(one.rows["SEQUENCE#"].to_pylist(), one.ends, one.lcr) for one in found if isinstance(one, Changes)]
    assert parts == [([n], False, f"{n:08x}") for n in range(1, 5)] + [([5], True, "00000006")]


@given(st.integers(1, 4), st.integers(0, 4), st.booleans())
def test_what_is_sent_again_is_left_out(size: int, delivered: int, is_whole: bool) -> None:
    delivered = min(delivered, size)
    records = [lcr("c", place, 100, "{}") for place in range(1, size + 1)] + [lcr("commit", size + 1, 100)]
    commit = Position(100, 0, "0100020003000000")
    made = transactions(after=f"{delivered:08x}", inside=commit.at(delivered) if delivered else None)
    found = list(made.add(lines(records if is_whole else records[delivered:])))
    numbers = [number for one in found if isinstance(one, Changes) for number in one.rows["SEQUENCE#"].to_pylist()]
    assert numbers == list(range(delivered + 1, size + 1))
    assert isinstance(found[-1], Changes)
    assert found[-1].ends


def test_tables_that_are_not_captured_and_statements() -> None:
    records = [
        lcr("c", 1, 100, "{}", table="OTHER"),
        lcr("commit", 2, 100),
        lcr("ddl", 3, 101, "ALTER TABLE T ADD X NUMBER", "1.2.4"),
        lcr("commit", 4, 101, xid="1.2.4"),
        lcr("other", 5, 102, "LOB ERASE", "1.2.5"),
        lcr("other", 6, 102, "LOB ERASE", "1.2.5", "OTHER"),
        lcr("commit", 7, 102, xid="1.2.5"),
        lcr("idle", 9, 110),
    ]
    nothing, statement, unknown, end, idle = transactions().add(lines(records))
    assert isinstance(nothing, Changes)
    assert (len(nothing.rows), nothing.ends, nothing.lcr) == (0, True, "00000002")
    assert isinstance(statement, Changes)
    assert statement.is_statement
    assert unknown == Unknown(101, "S.T", "LOB ERASE")
    assert isinstance(end, Changes)
    assert idle == Idle(110, "00000009")


def test_records_out_of_order_are_an_error() -> None:
    with pytest.raises(UnreadableLogError, match="don't ascend"):
        list(transactions().add(lines([lcr("c", 2, 100, "{}"), lcr("commit", 1, 100)])))
    with pytest.raises(UnreadableLogError, match="before the end"):
        list(transactions().add(lines([lcr("c", 1, 100, "{}"), lcr("c", 2, 101, "{}", "1.2.4")])))


def test_a_record_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(SourceStateError, match="can't be read"):
        read_lcrs(b'{"op":"c","other":1}\n')
    assert len(read_lcrs(b"")) == 0
    assert set(Op) == {"c", "u", "d", "ddl", "commit", "other", "idle"}


TABLE = Table(
    "DB",
    "S",
    "T",
    (
        Column("ID", "NUMBER", False, 9, 0),
        Column("C", "CLOB"),
    ),
    ("ID",),
)


def entries(*rows: str) -> Entries:
    return Entries(pa.array(rows, pa.string()), TABLE, "xstream")


def test_large_values_are_known_if_they_came_as_chunks() -> None:
    row = '{"before":{"ID":"1","C":null},"after":{"ID":"1","C":null},"chunks":[]}'
    came = '{"before":{"ID":"1"},"after":{"ID":"1","C":"text"},"chunks":["C"]}'
    null = '{"before":{"ID":"1"},"after":{"ID":"1","C":null},"chunks":["C"]}'
    found = entries(row, came, null)
    new, old = found.columns(Side.NEW, True)[1], found.columns(Side.OLD, True)[1]
    assert new.values.to_pylist()[1:] == ["text", None]
    assert new.unchanged is not None
    assert new.unchanged.tolist() == [True, False, False]
    assert old.unchanged is not None
    assert old.unchanged.tolist() == [True, True, True]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('{"before":{},"after":{"ID":{"type":"oracle.sql.OPAQUE"}},"chunks":[]}', "can't be read"),
        ('{"before":{},"after":{"ID":"1","X":"1"},"chunks":[]}', "column 'X'"),
        ('{"before":{},"after":{},"chunks":[]}', "lacks the column 'ID'"),
        ('{"after":{"ID":"1"}}', "can't be read"),
    ],
)
def test_rows_that_cannot_be_read(row: str, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        entries(row).columns(Side.NEW)


SQL, STREAMS = "java.sql.SQLException", "oracle.streams.StreamsException"


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (Said(26812, "ORA-26812: busy", STREAMS), NotReadyError, "Another client"),
        (Said(26653, "ORA-26653: x", STREAMS), NotReadyError, "isn't ready"),
        (Said(23656, "ORA-23656: x", STREAMS), NotReadyError, "isn't ready"),
        (Said(26928, "ORA-26928: x", STREAMS), NotReadyError, "isn't ready"),
        (Said(0, "Timeout occurred while starting XStream process X", STREAMS), NotReadyError, "isn't ready"),
        (Said(26701, "ORA-26701: x", STREAMS), SourceStateError, "no outbound server"),
        (Said(26913, "ORA-26913: x", STREAMS), SourceStateError, "another instance"),
        (Said(26876, "ORA-26876: x", STREAMS), LogGoneError, "told to forget"),
        (Said(26877, "ORA-26877: x", STREAMS), ConnectError, "was stopped"),
        (Said(3113, "ORA-03113: x", STREAMS), ConnectError, "Lost the connection"),
        (Said(1031, "ORA-01031: x", STREAMS), SourceStateError, "refused"),
        (Said(17023, "ORA-17023: getOCIHandles", SQL), SourceStateError, "OCI driver"),
        (Said(0, "no ocijdbc23 in java.library.path", "java.lang.UnsatisfiedLinkError"), SourceStateError, "library"),
        (Said(0, "oracle/xdb/XMLType", "java.lang.NoClassDefFoundError"), SourceStateError, "library"),
    ],
)
def test_errors_of_java(said: Said, kind: type[FloodmarkError], words: str) -> None:
    error = said_error(said, "receiving records", "XOUT")
    assert type(error) is kind or (kind is SourceStateError and isinstance(error, kind)), repr(error)
    assert words in error.what


def test_an_offset_keeps_the_position_of_the_record() -> None:
    point = ResumePoint("1-1", 5, "v", adapter="xstream", lcr="00ff")
    assert ResumePoint.from_json(point.to_json()) == point
    with pytest.raises(CheckpointError, match="no position of XStream's"):
        ResumePoint.from_json({**point.to_json(), "lcr": "0xf"})
