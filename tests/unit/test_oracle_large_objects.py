"""Large values that are put together of their pieces."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.oracle.decode.large_objects import assembly
from floodmark.connectors.oracle.decode.large_objects.assembly import Assembled, assembled
from floodmark.connectors.oracle.decode.large_objects.content import UNKNOWN, Content, Document, LargeObject
from floodmark.connectors.oracle.decode.large_objects.pieces import Piece, pieces_of
from floodmark.connectors.oracle.decode.rows_of_transactions import rows_of
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.row_ids import NO_ROW_ID, known_row_id
from floodmark.connectors.oracle.mining.transactions import Committed
from floodmark.connectors.oracle.redo.large_values import large_objects, long_strings, xml_documents
from floodmark.connectors.oracle.redo.statements import StatementReader
from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.connectors.oracle.types.settings import OracleSettings
from floodmark.errors import DecodeError

BLANK = ord(" ")
TEXT = st.text("aЖ🐘", max_size=6)
BYTES = st.binary(max_size=6)
NUMBERS = st.integers(0, 12)


def changes(data: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    return st.lists(
        st.one_of(
            st.tuples(st.just("write"), NUMBERS, data),
            st.tuples(st.just("trim"), NUMBERS),
            st.tuples(st.just("erase"), NUMBERS, NUMBERS),
        ),
        max_size=8,
    )


class PlainModel:
    """A large object as a list of what is at each place; None: not known."""

    def __init__(self, before: Any) -> None:
        self.units: list[int | None] = list(units(before)) if before is not None else []
        self.has_end = before is not None
        self.fails = False

    def write(self, offset: int, data: Any) -> None:
        fill = None if not self.has_end else 0 if isinstance(data, bytes) else BLANK
        self.units += [fill] * (offset - len(self.units))
        self.units[offset : offset + len(units(data))] = units(data)

    def trim(self, length: int) -> None:
        self.units = (self.units + [None] * length)[: max(length, 0)]
        self.has_end = True

    def erase(self, offset: int, length: int, fill: int) -> None:
        self.fails |= not self.has_end and offset + length > len(self.units)
        for place in range(offset, min(offset + length, len(self.units))):
            self.units[place] = fill


def units(data: Any) -> list[int]:
    if isinstance(data, bytes):
        return list(data)
    raw = data.encode("utf-16-le")
    return [int.from_bytes(raw[at : at + 2], "little") for at in range(0, len(raw), 2)]


@given(
    st.one_of(
        st.tuples(st.none() | TEXT, changes(TEXT), st.just(False)),
        st.tuples(st.none() | BYTES, changes(BYTES), st.just(True)),
    )
)
def test_large_objects_are_what_a_plain_model_says(given_: tuple[Any, list[tuple[Any, ...]], bool]) -> None:
    before, changes_, is_binary = given_
    content, model = LargeObject(before, is_binary), PlainModel(before)
    for name, *arguments in changes_:
        getattr(content, name)(*arguments)
        getattr(model, name)(*arguments, *([0 if is_binary else BLANK] if name == "erase" else []))
    found = content.value()
    known = [one for one in model.units if one is not None]
    if model.fails or len(known) < len(model.units) or not (known or model.has_end):
        assert found is UNKNOWN
    elif found is UNKNOWN:
        # Half of a character is left.
        assert not is_binary
        with pytest.raises(UnicodeDecodeError):
            b"".join(one.to_bytes(2, "little") for one in known).decode("utf-16-le")
    else:
        assert units(found) == known


def test_a_large_object_of_another_kind() -> None:
    for before, data in (("a", b"b"), (b"a", "b")):
        content = LargeObject(before, isinstance(before, bytes))
        content.write(1, data)
        assert content.value() is UNKNOWN


@given(st.text(), st.lists(st.integers(0, 20), max_size=3))
def test_documents_are_joined(text: str, cuts: list[int]) -> None:
    raw = text.encode()
    bounds = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    document = Document()
    for begin, end in pairwise(bounds):
        document.add(raw[begin:end])
    assert document.value() == text


def test_documents_without_content() -> None:
    assert Document().value() is UNKNOWN
    empty = Document()
    empty.add(None)
    assert empty.value() is None
    empty.fail()
    assert empty.value() is UNKNOWN
    damaged = Document()
    damaged.add(b"\xff")
    assert damaged.value() is UNKNOWN


@pytest.mark.parametrize(
    ("statement", "info", "wanted"),
    [
        ("XML_REDO := '<a>it's</a>'\n amount: 11", "XML sql_redo not re-executable", "<a>it's</a>"),
        ("XML_REDO := HEXTORAW('3C612F3E)\n amount: 4", "XML sql_redo not re-executable", b"<a/>"),
        ("XML_REDO := HEXTORAW('3C612F3E')\n amount: 4", "XML sql_redo not re-executable", b"<a/>"),
        ("XML_REDO := '<a/>'", None, "<a/>"),
        ("XML_REDO := NULL", "XML sql_redo not re-executable", None),
        ("<a/>", None, "<a/>"),
        ("<a/>", "", "<a/>"),
        ("", "", None),
        (None, None, None),
    ],
)
def test_pieces_of_xml(statement: str | None, info: str | None, wanted: str | bytes | None) -> None:
    assert xml_documents.piece(statement, info) == wanted


@pytest.mark.parametrize(
    "statement", ["<a/>", "XML_REDO := '<a/>", "XML_REDO := HEXTORAW('3C", "XML_REDO := HEXTORAW('x')"]
)
def test_pieces_of_xml_in_no_known_form(statement: str) -> None:
    with pytest.raises(DecodeError, match="XML_WRITE"):
        xml_documents.piece(statement, "not re-executable")


def test_where_documents_begin() -> None:
    statements = [
        """XML DOC BEGIN:  select "X" from "S"."T" where "ID" = 'a where b' and "N" IS NULL""",
        """update "S"."T" a set a."X" = XMLType(:1) where a."ID" = '1';""",
    ]
    for given_ in (statements, statements[:1], statements[1:]):
        found = xml_documents.documents(pa.array(given_, pa.string()))
        assert found.columns.to_pylist() == ["X"] * len(given_)
    found = xml_documents.documents(pa.array(statements, pa.string()))
    assert found.rows.to_pylist() == [
        """delete from "S"."T" where "ID" = 'a where b' and "N" IS NULL;""",
        """delete from "S"."T" where a."ID" = '1';""",
    ]
    with pytest.raises(DecodeError, match="XML_BEGIN"):
        xml_documents.documents(pa.array([*statements, "x"], pa.string()))


def test_long_strings() -> None:
    update_ = """update "S"."T" set "C" = :VAR where "ID" = ''a''''b''"""
    begin = f"DECLARE \n VAR VARCHAR2(32767); \nBEGIN\n Stmt := '{update_}';\n"
    found = long_strings.long_strings(pa.array([begin], pa.string()))
    assert found.columns.to_pylist() == ["C"]
    assert found.rows.to_pylist() == ["""delete from "S"."T" where "ID" = 'a''b';"""]
    assert long_strings.piece(" VAR :=    'it''s; ok'; EXECUTE IMMEDIATE Stmt USING VAR;") == "it's; ok"
    for statement in ("", "x", ";;", "BEGIN;;", " VAR := 'not there'; EXECUTE IMMEDIATE Stmt;"):
        with pytest.raises(DecodeError, match="32K_WRITE"):
            long_strings.piece(statement)
    for statement in ("x", "DECLARE BEGIN Stmt := 'delete';"):
        with pytest.raises(DecodeError, match="32K_BEGIN"):
            long_strings.long_strings(pa.array([statement], pa.string()))


def test_parts_of_large_objects() -> None:
    assert large_objects.trims(pa.array([" dbms_lob.trim(loc_c, 5);"], pa.string())).tolist() == [5]
    erased = large_objects.erasures(pa.array([" e_len :=  3; \n  dbms_lob.erase(loc_b, e_len, 2);"], pa.string()))
    assert (erased.offsets.tolist(), erased.lengths.tolist()) == ([1], [3])
    for function in (large_objects.trims, large_objects.erasures):
        with pytest.raises(DecodeError, match="form that isn't known"):
            function(pa.array(["x"], pa.string()))


def piece(operation: Operation, statement: str | None, info: str | None = None) -> Piece:
    row = {"SQL_REDO": statement, "INFO": info, "ROW_ID": None}
    schema = pa.schema([(name, pa.string()) for name in row])
    (found,) = pieces_of(np.array([operation]), pa.Table.from_pylist([row], schema))
    return found


@pytest.mark.parametrize(
    ("operation", "content"),
    [
        (Operation.LOB_WRITE, LargeObject("", False)),
        (Operation.LOB_TRIM, LargeObject("", False)),
        (Operation.LOB_ERASE, LargeObject(b"", True)),
        (Operation.XML_WRITE, Document()),
        (Operation.WRITE_32K, Document()),
    ],
)
def test_pieces_that_can_t_be_read(operation: Operation, content: Content) -> None:
    assert isinstance(content, LargeObject | Document)
    piece(operation, "x", "not re-executable").put_into(content)
    assert content.value() is UNKNOWN


def test_a_piece_that_is_longer_than_it_says() -> None:
    content = LargeObject("", False)
    # The halves of a character count for themselves.
    for text, length, wanted in (("🐘🐘", 2, "🐘"), ("abc", 3, "abc"), ("xyz", 1, "xbc"), ("d", 9, "dbc")):
        statement = f" buf_c := '{text}'; dbms_lob.write(loc_c, {length}, 1, buf_c);"
        piece(Operation.LOB_WRITE, statement).put_into(content)
        assert content.value() == wanted
    binary = LargeObject(b"", True)
    for digits in ("00ff", "0"):
        statement = f" buf_b := HEXTORAW('{digits}'); dbms_lob.write(loc_b, 1, 1, buf_b);"
        piece(Operation.LOB_WRITE, statement).put_into(binary)
        assert binary.value() == (b"\0" if digits == "00ff" else UNKNOWN)


def test_rowids() -> None:
    assert [known_row_id(one) for one in (None, NO_ROW_ID, "B" * 18)] == [None, None, "B" * 18]


COLUMNS = (
    Column("ID", "NUMBER", length=9, scale=0),
    Column("C", "CLOB"),
    Column("B", "BLOB"),
    Column("X", "XMLTYPE"),
    Column("S", "VARCHAR2", length=8000),
)
SETTINGS = OracleSettings("precise", "adaptive", "bytes", "?", "numeric")


def structure(*key: str) -> TableStructure:
    return TableStructure(Table("D", "S", "T", COLUMNS, key), SETTINGS)


def put_together(*given_: tuple[Operation, str | None, str | None], key: tuple[str, ...] = ("ID",)) -> Assembled:
    """Return what is made of a transaction's rows: operation, statement and ROWID of each."""
    shown = pa.table(
        {
            **{name: pa.array(range(len(given_)), pa.int64()) for name in ("SCN", "SSN", "THREAD#")},
            **{name: pa.array([0] * len(given_), pa.timestamp("s")) for name in ("TIMESTAMP",)},
            "OPERATION_CODE": pa.array([int(one) for one, *_ in given_], pa.int64()),
            **{name: pa.array([value] * len(given_)) for name, value in (("SEG_OWNER", "S"), ("TABLE_NAME", "T"))},
            **{name: pa.array(["a"] * len(given_)) for name in ("XID", "RS_ID", "USERNAME")},
            "INFO": pa.array(["XML sql_redo not re-executable"] * len(given_)),
            "ROW_ID": pa.array([row_id for *_, row_id in given_], pa.string()),
            "SQL_REDO": pa.array([statement for _, statement, _ in given_], pa.string()),
        }
    )
    names = [column.name for column in COLUMNS]
    structures = {"S.T": structure(*key)}
    commit = shown.slice(0, 1)
    return assembled(*rows_of([Committed("a", 0, commit, [shown])]), structures, lambda _: StatementReader(names))


def new_rows(found: Assembled) -> list[list[Any]]:
    """Return the new rows, with ``?`` for what isn't known."""
    columns = found.columns["S.T"].new
    return [
        ["?" if one.unchanged is not None and one.unchanged[number] else one.values[number].as_py() for one in columns]
        for number in range(len(found.rows))
    ]


def insert(number: int, clob: str = "EMPTY_CLOB()", text: str = "NULL") -> str:
    return f"""insert into "S"."T"("ID","C","B","S") values ('{number}',{clob},EMPTY_BLOB(),{text});"""


def update(number: int, **values: str) -> str:
    set_ = ", ".join(f'"{name}" = {value}' for name, value in values.items())
    return f"""update "S"."T" set {set_} where "ID" = '{number}';"""


def select(number: int, column: str = "C") -> str:
    return f"""DECLARE BEGIN select "{column}" into loc_c from "S"."T" where "ID" = '{number}' for update;"""


def write(text: str, offset: int = 1) -> str:
    literal = text.replace("'", "''")
    return f" buf_c := '{literal}'; dbms_lob.write(loc_c, {len(text)}, {offset}, buf_c);"


ONE, TWO = "B" * 18, "C" * 18


def test_an_insert_and_what_follows_it_are_one_change() -> None:
    found = put_together(
        (Operation.INSERT, insert(1, text="'LM_EMPTY_STRING'"), NO_ROW_ID),
        (Operation.SELECT_LOB_LOCATOR, select(1), NO_ROW_ID),
        (Operation.LOB_WRITE, write("large"), None),
        (Operation.XML_BEGIN, """XML DOC BEGIN:  select "X" from "S"."T" where "ID" = '1'""", None),
        (Operation.XML_WRITE, "XML_REDO := '<a/>'\n amount: 4", None),
        (Operation.XML_END, None, None),
        (Operation.BEGIN_32K, """DECLARE BEGIN Stmt := 'update "S"."T" set "S" = :VAR where "ID" = ''1''';""", None),
        (Operation.WRITE_32K, " VAR :=    'long'; EXECUTE IMMEDIATE Stmt USING VAR;", None),
        (Operation.END_32K, None, None),
        (Operation.UPDATE, update(1, B="HEXTORAW('ff')"), ONE),
    )
    assert found.shown["OPERATION_CODE"].to_pylist() == [1]
    assert new_rows(found) == [["1", "large", b"\xff", "<a/>", "long"]]
    assert found.rows.row_id.to_pylist() == [NO_ROW_ID]


def test_an_update_that_replaces_what_pieces_were_announced_for() -> None:
    found = put_together(
        (Operation.INSERT, insert(1), ONE),
        (Operation.SELECT_LOB_LOCATOR, select(1), ONE),
        (Operation.LOB_WRITE, write("first"), ONE),
        (Operation.UPDATE, update(1, C="'second'"), ONE),
    )
    assert new_rows(found)[0][1] == "second"
    later = put_together(
        (Operation.INSERT, insert(1), ONE),
        (Operation.SELECT_LOB_LOCATOR, select(1), ONE),
        (Operation.LOB_WRITE, write("first"), ONE),
        (Operation.UPDATE, update(1, C="'second'"), ONE),
        (Operation.LOB_WRITE, write("third", 3), ONE),
    )
    assert new_rows(later)[0][1] == "?"


def test_rows_of_a_table_without_a_key() -> None:
    found = put_together(
        (Operation.INSERT, insert(1), NO_ROW_ID),
        (Operation.UPDATE, update(1, C="'one'"), ONE),
        (Operation.SELECT_LOB_LOCATOR, select(2), TWO),
        (Operation.LOB_WRITE, write("two"), TWO),
        (Operation.SELECT_LOB_LOCATOR, select(3), None),
        (Operation.LOB_WRITE, write("three"), None),
        (Operation.LOB_TRIM, " dbms_lob.trim(loc_c, 5);", None),
        (Operation.UPDATE, update(4, C="'four'"), None),
        key=(),
    )
    assert [row[:2] for row in new_rows(found)] == [["1", "one"], ["2", "two"], ["3", "three"], ["4", "four"]]


def test_pieces_of_a_value_that_no_row_names(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[dict[str, object]] = []
    monkeypatch.setattr(assembly.log, "warning", lambda event, **fields: reported.append({"event": event, **fields}))
    found = put_together(
        (Operation.LOB_WRITE, write("early"), NO_ROW_ID),
        (Operation.INSERT, insert(1), TWO),
        (Operation.LOB_WRITE, "x", ONE),
        (Operation.INSERT, insert(2), ONE),
        (Operation.INSERT, insert(3, "'c'"), TWO),
    )
    # The first may be any CLOB's, the second any value's of its row.
    assert [row[:3] for row in new_rows(found)] == [["1", "?", None], ["2", "?", "?"], ["3", "c", None]]
    events = [(one["event"], one.get("column")) for one in reported]
    assert events == [
        *[("piece_of_no_large_value", None)] * 2,
        *(("large_value_is_not_known", name) for name in "CCB"),
    ]
    assert reported[0] == {"event": "piece_of_no_large_value", "table": "D.S.T", "scn": 0, "transaction": "a"}


def test_a_value_that_is_only_locked() -> None:
    found = put_together((Operation.SELECT_LOB_LOCATOR, select(1), ONE))
    assert len(found.rows) == 0
    begun = put_together(
        (Operation.XML_BEGIN, """XML DOC BEGIN:  select "X" from "S"."T" where "ID" = '1'""", ONE),
        (Operation.XML_END, None, ONE),
    )
    assert new_rows(begun)[0][3] == "?"


def test_a_column_that_the_table_does_not_have() -> None:
    with pytest.raises(DecodeError, match=r"'NONE', which isn't a column of D\.S\.T"):
        put_together((Operation.SELECT_LOB_LOCATOR, select(1, "NONE"), ONE))
    with pytest.raises(DecodeError, match="form that isn't known"):
        put_together((Operation.SELECT_LOB_LOCATOR, "x", ONE))
    with pytest.raises(DecodeError, match=r"SQL_REDO of S\.T can't be read"):
        put_together((Operation.UPDATE, "x", ONE))


WRITES = st.lists(st.tuples(st.integers(1, 30), st.text("aЖ'", min_size=1, max_size=9)), min_size=1, max_size=6)


@given(WRITES)
def test_random_fragments(writes: list[tuple[int, str]]) -> None:
    model: list[str] = []
    for offset, text in writes:
        model += [" "] * (offset - 1 - len(model))
        model[offset - 1 : offset - 1 + len(text)] = text
    pieces = [(Operation.LOB_WRITE, write(text, offset), ONE) for offset, text in writes]
    found = put_together((Operation.INSERT, insert(1), ONE), (Operation.SELECT_LOB_LOCATOR, select(1), ONE), *pieces)
    assert new_rows(found)[0][1] == "".join(model)
