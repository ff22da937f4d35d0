"""OpenLogReplicator's protocol buffers: fields of many messages, and values of which it changes or leaves out some."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.replicator.documents import Documents, read_documents
from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.connectors.oracle.values.messages import rows_of
from floodmark.connectors.oracle.values.protocol_buffers import read_fields
from floodmark.errors import DecodeError, FloodmarkError, SourceStateError
from tests.support.oracle.model.tables import Structure, column
from tests.support.oracle.replicator.messages import number_field, text_field
from tests.support.oracle.replicator.writers import BufferWriter, Change, JsonWriter

TYPES = {
    "ID": "NUMBER(9,0)",
    "WHOLE": "INTEGER",
    "LONG": "NUMBER(17,0)",
    "CENTS": "NUMBER(6,2)",
    "PRICE": "NUMBER(15,4)",
    "LARGE": "NUMBER(30,10)",
    "HUNDREDS": "NUMBER(5,-2)",
    "FEW": "FLOAT(5)",
    "SOME": "FLOAT(15)",
    "MANY": "FLOAT(126)",
    "NAME": "VARCHAR2(100)",
    "TEXT": "CLOB",
    "SINGLE": "BINARY_FLOAT",
    "DOUBLE": "BINARY_DOUBLE",
    "MONTHS": "INTERVAL YEAR(2) TO MONTH",
    "DAYS": "INTERVAL DAY(2) TO SECOND(6)",
}
STRUCTURE = Structure(
    "S", "T", tuple(column(name, kind) for name, kind in TYPES.items()), ("ID",), 1, "ORCLPDB1", supplemental=True
)
OTHERS = {"DATE": "DATE", "TIMESTAMP(6)": "TIMESTAMP", "RAW(8)": "RAW", "BLOB": "BLOB"}
XID = "0a000c003c020000"


def table(*columns: Column) -> Table:
    return Table("D", "S", "T", columns, (columns[0].name,))


def known() -> Table:
    """Return the table as Floodmark knows it."""
    found = []
    for one in STRUCTURE.columns:
        kind = one.type
        length, scale = kind.precision, kind.scale if kind.scale != -127 else None
        found.append(Column(one.name, kind.base, True, length, scale))
    return table(*found)


def a_row(source: random.Random) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for one in STRUCTURE.columns:
        kind = one.type
        if kind.base == "NUMBER":
            digits = source.randrange(10 ** min(kind.precision or 9, 18))
            row[one.name] = (Decimal(digits) * source.choice((1, -1))).scaleb(-kind.scale)
        elif kind.base == "FLOAT":
            digits = max(1, int((kind.precision or 0) * 0.301))
            row[one.name] = Decimal(source.randrange(10**digits)).scaleb(source.randrange(-20, 20)).normalize()
        elif kind.base == "BINARY_DOUBLE":
            row[one.name] = source.choice((float("inf"), 0.1, -1e300, source.random()))
        elif kind.base == "BINARY_FLOAT":
            row[one.name] = struct.unpack("<f", struct.pack("<f", source.random()))[0]
        elif kind.base.startswith("INTERVAL YEAR"):
            row[one.name] = f"+{source.randrange(99):02d}-{source.randrange(12):02d}"
        elif kind.base.startswith("INTERVAL DAY"):
            row[one.name] = f"-{source.randrange(99):02d} 01:02:03.{source.randrange(10**6):06d}"
        else:
            row[one.name] = "".join(source.choice("aäß€\U0001f40d'\"\\\n") for _ in range(source.randrange(1, 200)))
        if one.name != "ID" and not source.randrange(5):
            row[one.name] = None
    return row


def changes(source: random.Random, count: int) -> list[Change]:
    found = []
    for number in range(count):
        operation = source.choice("cud")
        before, after = (a_row(source) if operation in which else None for which in ("ud", "cu"))
        if before is not None:
            del before["TEXT"]  # as it was isn't in the log
        found.append(Change(operation, 7, number, f"AAA{number:015d}", before, after))
    return found


def documents(writer: JsonWriter | BufferWriter, some: list[Change], in_one: bool) -> list[bytes]:
    entries = [writer.change(STRUCTURE, one) for one in some]
    marked = [writer.mark("begin"), *entries, writer.mark("commit")]
    head = {"scn": 2**40, "tm": 1_795_171_802_000, "c_scn": 2**40, "xid": XID, "db": "D"}
    parts = [entries] if in_one else [[one] for one in marked]
    found = [writer.message({**head, "c_idx": number + 1}, part) for number, part in enumerate(parts)]
    last = {**head, "xid": None, "db": None, "c_idx": 900}
    last = {name: value for name, value in last.items() if value is not None}
    return [*found, writer.message(last, [writer.mark("chkpt", seq=15, offset=1 << 20)])]


@pytest.mark.parametrize("in_one", [False, True], ids=["a message for each", "one message"])
@pytest.mark.parametrize("seed", range(3))
def test_protocol_buffers_say_the_same_as_documents(seed: int, in_one: bool) -> None:
    some = changes(random.Random(seed), 60)
    for one in some:
        for row in (one.before, one.after):
            # JSON has no infinities, and not all digits of binary numbers.
            if row is not None:
                row.update(SINGLE=None if row["SINGLE"] is None else 0.5, DOUBLE=None if row["DOUBLE"] is None else 2.5)
    found = [
        read_documents(documents(writer, some, in_one), lambda *_: True) for writer in (JsonWriter(), BufferWriter())
    ]
    assert summary(found[0]) == summary(found[1])
    for kind, sides in (("c", [Side.NEW]), ("u", [Side.OLD, Side.NEW]), ("d", [Side.OLD])):
        chosen = pa.array([number for number, one in enumerate(some) if one.operation == kind])
        texts = [one.rows["SQL_REDO"].combine_chunks().take(chosen) for one in found]
        for side in sides:
            json_columns, columns = (rows_of(one, known()).columns(side, kind == "u") for one in texts)
            for name, wanted, got in zip(TYPES, json_columns, columns, strict=True):
                assert got.values.to_pylist() == wanted.values.to_pylist(), name
                assert (got.unchanged is None) == (wanted.unchanged is None), name
                if got.unchanged is not None and wanted.unchanged is not None:
                    assert (got.unchanged == wanted.unchanged).all()


def summary(found: Documents) -> list[Any]:
    rows = found.rows.drop_columns(["SQL_REDO"]).to_pylist()
    heads = [one.tolist() for one in (found.kind, found.scn, found.index, found.seconds, found.commit_scn, found.place)]
    return [rows, *heads, list(found.xid), found.database]


def value(name: str, datum: bytes = b"") -> bytes:
    return text_field(1, name) + datum


def after(of: Table, *values: bytes) -> list[Any]:
    entry = number_field(1, 2) + b"".join(text_field(5, one) for one in values)
    return [one.values[0].as_py() for one in rows_of(pa.array([entry.hex()]), of).columns(Side.NEW)]


@pytest.mark.parametrize("number", [float("inf"), -float("inf"), 0.1, -0.0, 1e-308, 1.7976931348623157e308])
def test_binary_numbers_keep_all_digits(number: float) -> None:
    of = table(Column("SINGLE", "BINARY_FLOAT"), Column("DOUBLE", "BINARY_DOUBLE"))
    with np.errstate(over="ignore"):
        nearest = float(np.float64(number).astype(np.float32))
    sent = [value(name, b"\x21" + struct.pack("<d", one)) for name, one in (("SINGLE", nearest), ("DOUBLE", number))]
    assert after(of, *sent) == [nearest, number]


def test_numbers_that_are_none() -> None:
    datum = b"\x21" + struct.pack("<d", float("nan"))
    (found,) = after(table(Column("DOUBLE", "BINARY_DOUBLE")), value("DOUBLE", datum))
    assert found != found


ID = Column("N", "NUMBER", False)


@pytest.mark.parametrize(
    ("of", "values", "words"),
    [
        *(
            (Column("N", kind), [value("N")], f"doesn't say in protocol buffers which {kind}")
            for kind in OTHERS.values()
        ),
        # Of columns without a precision, the server sends the nearest binary number.
        (ID, [value("N", b"\x1d" + struct.pack("<f", 1))], "rounds numbers of the column 'N'"),
        (Column("N", "NUMBER", True, 38, 2), [value("N", b"\x1d" + struct.pack("<f", 1.25))], "rounds numbers"),
        (Column("N", "NUMBER", True, 16, 2), [value("N", b"\x21" + struct.pack("<d", 1))], "rounds numbers"),
        (
            Column("N", "NUMBER", True, 5, -40),
            [value("N", b"\x1d" + struct.pack("<f", float("inf")))],
            "rounds numbers",
        ),
        (Column("N", "NUMBER", True, 38, 0), [value("N", number_field(2, (1 << 63) - 1))], "rounds numbers"),
        (Column("N", "NUMBER", True, 38, 0), [value("N", number_field(2, -(1 << 63)))], "rounds numbers"),
        (ID, [value("N", text_field(5, "x"))], "isn't a number"),
        (ID, [value("N", text_field(5, b"\xff"))], "isn't UTF-8"),
        (ID, [value(b"\xff".decode("latin-1"), text_field(5, "1"))], "column 'ÿ'"),
        (ID, [value("X", text_field(5, "1"))], "column 'X'"),
        (ID, [], "lacks the row after"),
        (ID, [text_field(5, "1")], "lacks the row after"),
    ],
)
def test_values_that_are_not_known(of: Column, values: list[bytes], words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        after(table(of), *values)


def test_a_row_that_lacks_a_column() -> None:
    of = table(Column("ID", "NUMBER", False, 9, 0), Column("V", "VARCHAR2", True, 9), Column("C", "CLOB"))
    row = [value("ID", number_field(2, 0, is_written=True)), value("V", text_field(5, "a"))]
    entry = b"".join(text_field(number, one) for number in (4, 5) for one in row)
    found = rows_of(pa.array([entry.hex()] * 2), of).columns(Side.NEW, True)
    assert [one.unchanged is not None for one in found] == [False, False, True]
    assert found[0].values.to_pylist() == ["0", "0"]
    with pytest.raises(DecodeError, match="lacks the column 'V'"):
        after(of, row[0])


def test_an_update_that_shows_what_it_did_not_change_lacks_only_nulls() -> None:
    of = table(*(Column(name, "VARCHAR2", True, 9) for name in ("ID", "V", "W")))

    def updated(before: dict[str, str], new: dict[str, str]) -> list[Any]:
        entry = b"".join(
            text_field(number, value(name, text_field(5, text)))
            for number, row in ((4, before), (5, new))
            for name, text in row.items()
        )
        return [one.values[0].as_py() for one in rows_of(pa.array([entry.hex()]), of).columns(Side.NEW, True)]

    assert updated({"ID": "1", "V": "a"}, {"ID": "1", "V": "a"}) == ["1", "a", None]
    with pytest.raises(DecodeError, match="lacks the column 'W'"):
        updated({"ID": "1", "V": "a"}, {"ID": "1", "V": "b"})


def test_operations_that_are_not_known() -> None:
    head = {"scn": 5, "tm": 1, "c_scn": 5, "c_idx": 1, "xid": XID}
    for number in (7, 1 << 63):
        with pytest.raises(SourceStateError, match="operation"):
            read_documents([BufferWriter().message(head, [number_field(1, number)])], lambda *_: True)


def test_any_damage_is_an_error_of_ours() -> None:
    source = random.Random(4)
    messages = documents(BufferWriter(), changes(source, 3), in_one=False)
    for _ in range(300):
        damaged = [bytearray(one) for one in messages]
        for _ in range(source.randrange(1, 4)):
            one = source.choice(damaged)
            one[source.randrange(2, len(one))] = source.randrange(256)
        try:
            found = read_documents([bytes(one) for one in damaged], lambda *_: True)
            rows_of(found.rows["SQL_REDO"].combine_chunks(), known()).columns(Side.NEW)
        except FloodmarkError:
            continue


def test_fields_of_any_form() -> None:
    fields = [
        number_field(1, (1 << 64) - 1),
        b"\x95\x80\x01" + struct.pack("<I", 7),  # the number 2050, 4 bytes
        b"\x19" + struct.pack("<Q", 1 << 60),
        text_field(4, "x" * 300),
        text_field(4, ""),
    ]
    source = random.Random(1)
    messages = [b"".join(source.sample(fields, source.randrange(6))) for _ in range(50)]
    ends = np.cumsum([len(one) for one in messages])
    data = np.frombuffer(b"".join(messages), np.uint8)
    found = read_fields(data, np.concatenate(([0], ends[:-1])), ends)
    one_by_one = [read_fields(np.frombuffer(one, np.uint8), np.array([0]), np.array([len(one)])) for one in messages]
    for name in ("number", "value"):
        wanted = np.concatenate([getattr(one, name) for one in one_by_one])
        assert getattr(found, name).tolist() == wanted.tolist()
    assert set(found.number.tolist()) == {1, 2050, 3, 4}
    assert set(found.value.tolist()) == {(1 << 64) - 1, 7, 1 << 60, 300, 0}


@pytest.mark.parametrize(
    "message", [b"\x08", b"\x42\x7fab", b"\xff" * 12, b"\x0b", b"\x0d\x01", b"\x42\xff\xff\xff\xff\xff\xff\xff\xff\x7f"]
)
def test_what_is_no_protocol_buffer(message: bytes) -> None:
    with pytest.raises(DecodeError, match="no protocol buffer"):
        read_fields(np.frombuffer(message + b"\x08\x01", np.uint8), np.array([0]), np.array([len(message)]))
