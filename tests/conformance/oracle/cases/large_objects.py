"""CLOB, NCLOB, BLOB, XMLTYPE and texts of more than 4000 bytes, whose values LogMiner shows apart from their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.conformance.oracle.cases.case import SCHEMA, Case, Step, table
from tests.conformance.oracle.cases.random_large_objects import random_changes
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.large_values import Apart, Later, Part
from tests.support.oracle.model.redo import Operation
from tests.support.oracle.model.tables import column
from tests.support.oracle.model.transactions import Transaction

LONG = "Zeile mit ' und '' und ; und Ж, 漢字 🐘\n" * 130
"""A text of more than 4000 bytes."""
BYTES = bytes(range(256)) * 20
XML = '<a b="c">it\'s Ж</a>'
LONG_XML = f"<list>{'<item>text</item>' * 60}</list>"
_ID, _NAME = column("ID", "NUMBER(9,0)", nullable=False), column("NAME", "VARCHAR2(50)")


def _setup(database: OracleDatabase) -> None:
    database.settings.max_string_size = "EXTENDED"
    objects = [column("C", "CLOB"), column("N", "NCLOB"), column("B", "BLOB")]
    database.create_table(SCHEMA, "DOCS", [_ID, _NAME, *objects], ["ID"], logged=False)
    needed = [_ID, column("C", "CLOB", nullable=False), column("B", "BLOB", nullable=False)]
    database.create_table(SCHEMA, "NEEDED", needed, ["ID"], logged=False)
    database.create_table(SCHEMA, "BARE", [_NAME, column("C", "CLOB"), column("B", "BLOB")], logged=False)
    database.create_table(SCHEMA, "PAPERS", [_ID, _NAME, column("X", "XMLTYPE")], ["ID"], logged=False)
    texts = [column("S", "VARCHAR2(32000)"), column("T", "NVARCHAR2(16000)")]
    database.create_table(SCHEMA, "STRINGS", [_ID, _NAME, *texts], ["ID"], logged=False)
    plain = database.create_table(SCHEMA, "PLAIN", [_ID, _NAME], ["ID"], logged=False)
    transaction = database.begin()
    transaction.insert(plain, ID=1, NAME="one")
    transaction.commit()


def _inserts(database: OracleDatabase) -> None:
    docs, needed = table(database, "DOCS"), table(database, "NEEDED")
    transaction = database.begin()
    transaction.insert(docs, ID=1, NAME="small", C="c's", N="nЖ", B=b"\x00\xff")
    transaction.insert(docs, ID=2, NAME="second statement", C=Later("c's"), B=Later(b"\x01"))
    transaction.insert(docs, ID=3, NAME="apart", C=Apart(LONG, 500), N=Apart(LONG), B=Apart(BYTES, 1000))
    transaction.insert(docs, ID=4, NAME="both", C=Apart(LONG), N=Later("n"), B=Apart(BYTES, 100))
    transaction.insert(docs, ID=5, NAME="nothing")
    transaction.insert(docs, ID=6, NAME="empty", C="", N="", B=b"")
    transaction.insert(docs, ID=7, NAME="empty and not", C="", N=Apart("n"), B=None)
    transaction.insert(needed, ID=1, C="", B=b"")
    transaction.insert(needed, ID=2, C=Apart(LONG), B=Apart(BYTES))
    transaction.commit()


def _updates(database: OracleDatabase) -> None:
    docs, needed, plain = (table(database, name) for name in ("DOCS", "NEEDED", "PLAIN"))
    for changes in (
        {"NAME": "other column"},
        {"C": "small"},
        {"C": Apart("x" * 3000)},
        {"B": Apart(BYTES[::-1])},
        {"NAME": "and a large one", "N": Apart(LONG)},
        {"C": None, "B": None},
        {"C": "", "N": "", "B": b""},
        {"NAME": None, "C": Apart("c"), "B": Apart(b"b"), "N": Later("n")},
    ):
        transaction = database.begin()
        transaction.update(docs, {"ID": 3}, **changes)
        transaction.commit()
    transaction = database.begin()
    transaction.update(needed, {"ID": 1}, C=Apart("needed"))
    transaction.update(needed, {"ID": 2}, C="", B=b"")
    transaction.insert(plain, ID=10, NAME="at once")
    transaction.delete(docs, {"ID": 1})
    transaction.update(docs, {"ID": 4}, NAME="last")
    transaction.commit()


def _twice(database: OracleDatabase) -> None:
    docs, plain = table(database, "DOCS"), table(database, "PLAIN")
    transaction = database.begin()
    transaction.insert(docs, ID=31, NAME="inserted", C=Apart("first" * 900))
    transaction.insert(plain, ID=31, NAME="between")
    transaction.insert(docs, ID=32, NAME="other", C=Apart("other" * 900))
    transaction.update(docs, {"ID": 31}, NAME="updated")
    transaction.update(docs, {"ID": 31}, C=Apart("second" * 900))
    transaction.update(docs, {"ID": 32}, NAME="once more", B=b"inline")
    transaction.update(docs, {"ID": 32}, NAME="and again")
    transaction.delete(docs, {"ID": 32})
    transaction.insert(docs, ID=32, NAME="reborn", C=Later("c"))
    transaction.commit()
    transaction = database.begin()
    transaction.update(docs, {"ID": 31}, NAME="a")
    transaction.update(docs, {"ID": 31}, NAME="b")
    transaction.update(docs, {"ID": 31}, C="c")
    transaction.update(docs, {"ID": 31}, N="n")
    transaction.update(docs, {"ID": 31}, C=Apart("d"), B=Apart(b"d"))
    transaction.update(docs, {"ID": 31}, NAME="e", C="e")
    transaction.commit()


def _in_place(database: OracleDatabase) -> None:
    docs = table(database, "DOCS")
    transaction = database.begin()
    transaction.insert(docs, ID=41, NAME="written", C="", B=b"")
    transaction.lob_write(docs, {"ID": 41}, "C", (1, "0123456789"), (5, "abc"), (9, "xyz🐘"), (20, "gap"), (3, "it's"))
    transaction.lob_write(docs, {"ID": 41}, "B", (3, b"\x01\x02"), (1, b"\xff"), (10, b"\xee"))
    transaction.insert(docs, ID=42, NAME="inline", C="0123456789", B=b"\x00\x01\x02")
    transaction.lob_write(docs, {"ID": 42}, "C", (3, "ab"), (15, "end"))
    transaction.lob_write(docs, {"ID": 42}, "B", (2, b"\xff\xff\xff"))
    transaction.commit()
    transaction = database.begin()
    transaction.lob_write(docs, {"ID": 41}, "C", (1, "a whole value" * 5))
    transaction.lob_write(docs, {"ID": 42}, "C", (1, "another"), (8, " one"))
    transaction.commit()


def _undone(database: OracleDatabase) -> None:
    docs, plain = table(database, "DOCS"), table(database, "PLAIN")
    transaction = database.begin()
    transaction.insert(docs, ID=51, NAME="kept", C=Apart("kept"), B=Later(b"kept"))
    transaction.savepoint("a")
    transaction.update(docs, {"ID": 51}, NAME="undone", C=Apart("undone"))
    transaction.insert(docs, ID=52, NAME="undone", C=Apart("undone"))
    transaction.rollback_to("a")
    transaction.insert(plain, ID=51, NAME="kept")
    transaction.savepoint("b")
    transaction.lob_write(docs, {"ID": 51}, "C", (1, "undone"))
    transaction.rollback_to("b")
    transaction.insert(docs, ID=53, NAME="undone", C=Later("undone"))
    transaction.update(docs, {"ID": 51}, C=Later("undone"))
    transaction.rollback_to("b")
    transaction.update(docs, {"ID": 51}, NAME="kept, too")
    transaction.insert(docs, ID=54, NAME="kept", C=Apart("the end"))
    transaction.commit()
    lost = database.begin()
    lost.insert(docs, ID=55, NAME="lost", C=Apart("lost"))
    lost.rollback()


def _interleaved(database: OracleDatabase) -> None:
    docs, plain = table(database, "DOCS"), table(database, "PLAIN")
    first, second = database.begin("ANN"), database.begin("BEN")
    first.insert(docs, ID=61, NAME="first", C="")
    second.insert(docs, ID=62, NAME="second", C="")
    first.lob_write(docs, {"ID": 61}, "C", (1, "first "))
    second.lob_write(docs, {"ID": 62}, "C", (1, "second "))
    first.insert(plain, ID=61, NAME="first")
    first.lob_write(docs, {"ID": 61}, "C", (7, "goes on"))
    database.clock.advance(2000)
    second.lob_write(docs, {"ID": 62}, "C", (8, "goes on"))
    second.commit()
    first.commit()


def _pieces_alone(database: OracleDatabase) -> None:
    """Change large objects whose earlier content isn't in the redo, and in ways that Debezium doesn't follow."""
    docs = table(database, "DOCS")
    transaction = database.begin()
    for number in range(1, 9):
        transaction.insert(docs, ID=number, NAME=f"row {number}", C="0123456789", B=b"0123456789")
    transaction.commit()
    changes: Sequence[Callable[[Transaction], None]] = (
        lambda one: one.lob_write(docs, {"ID": 1}, "C", (4, "abc")),
        lambda one: one.lob_write(docs, {"ID": 2}, "C", (1, "abc"), (5, "gap")),
        lambda one: one.lob_trim(docs, {"ID": 3}, "C", 4),
        lambda one: one.lob_erase(docs, {"ID": 4}, "B", 2, 3),
        lambda one: one.lob_select(docs, {"ID": 5}, "C"),
    )
    for change in changes:
        transaction = database.begin()
        change(transaction)
        transaction.commit()
    transaction = database.begin()
    transaction.insert(docs, ID=11, NAME="trimmed", C="0123456789", B=b"0123456789")
    transaction.lob_trim(docs, {"ID": 11}, "C", 4)
    transaction.lob_write(docs, {"ID": 11}, "C", (7, "gap"))
    transaction.insert(docs, ID=12, NAME="erased", C="0123456789", B=b"0123456789")
    transaction.lob_erase(docs, {"ID": 12}, "C", 3, 2)
    transaction.lob_erase(docs, {"ID": 12}, "B", 20, 9)
    transaction.insert(docs, ID=13, NAME="written twice", C=Apart("first" * 900))
    transaction.update(docs, {"ID": 13}, C=Apart("second"))
    transaction.commit()
    transaction = database.begin()
    transaction.update(docs, {"ID": 6}, ID=66, C=Apart("moved"))
    transaction.commit()


def _before_its_row(database: OracleDatabase) -> None:
    """Write into a large object before the row is there, as it happens with BASICFILE."""
    docs = table(database, "DOCS")
    transaction = database.begin()
    transaction.write(Operation.LOB_WRITE, docs, row_id=docs.unknown_row_id, part=Part("C", "early", 1, 5))
    transaction.insert(docs, ID=21, NAME="late", C="", B=b"")
    transaction.insert(docs, ID=22, NAME="later", C="c")
    transaction.commit()


def _quotes_and_rows(database: OracleDatabase) -> None:
    """Write a text with quotes, and change rows of a table without a key in turn."""
    strings, bare = table(database, "STRINGS"), table(database, "BARE")
    transaction = database.begin()
    transaction.insert(strings, ID=1, NAME="quotes", S=Apart("it's" * 1001))
    transaction.commit()
    transaction = database.begin()
    transaction.insert(bare, NAME="one", C="c")
    transaction.insert(bare, NAME="two", C="c")
    transaction.commit()
    transaction = database.begin()
    transaction.lob_write(bare, {"NAME": "one"}, "C", (1, "written"))
    transaction.update(bare, {"NAME": "two"}, NAME="changed")
    transaction.commit()


def _bare(database: OracleDatabase) -> None:
    bare = table(database, "BARE")
    for name in ("one", "two"):
        transaction = database.begin()
        transaction.insert(bare, NAME=name, C=Apart(name * 1000), B=Later(name.encode()))
        transaction.commit()
    transaction = database.begin()
    transaction.insert(bare, NAME="three", C=Apart("three"))
    transaction.insert(bare, NAME="four", C="four")
    transaction.delete(bare, {"NAME": "two"})
    transaction.update(bare, {"NAME": "one"}, B=Apart(b"b"))
    transaction.update(bare, {"NAME": "one"}, NAME="changed", C="c")
    transaction.commit()


def _xml(database: OracleDatabase) -> None:
    papers = table(database, "PAPERS")
    transaction = database.begin()
    transaction.insert(papers, ID=1, NAME="binary", X=Apart(XML))
    transaction.insert(papers, ID=2, NAME="long", X=Apart(LONG_XML, 500))
    transaction.insert(papers, ID=3, NAME="text", X=Apart(XML, is_binary=False))
    transaction.insert(papers, ID=4, NAME="nothing")
    transaction.commit()
    for number, changes in (
        (1, {"X": Apart(LONG_XML)}),
        (2, {"NAME": "only"}),
        (3, {"NAME": "both", "X": Apart("<b/>")}),
        (3, {"X": Apart("<c/>", is_binary=False)}),
        (2, {"X": Apart(None)}),
    ):
        transaction = database.begin()
        transaction.update(papers, {"ID": number}, **changes)
        transaction.commit()
    transaction = database.begin()
    transaction.update(papers, {"ID": 4}, NAME="a", X=Apart("<d/>"))
    transaction.update(papers, {"ID": 4}, NAME="b")
    transaction.delete(papers, {"ID": 1})
    transaction.commit()


def _strings(database: OracleDatabase) -> None:
    strings = table(database, "STRINGS")
    long = "y" * 5000
    transaction = database.begin()
    transaction.insert(strings, ID=1, NAME="short", S="s", T="t")
    transaction.insert(strings, ID=2, NAME="long", S=Apart(long, 3000), T=Apart(long[:2500]))
    transaction.insert(strings, ID=3, NAME="nothing")
    transaction.insert(strings, ID=4, NAME="one", S=Apart(long), T="t")
    transaction.commit()
    for number, changes in (
        (1, {"S": Apart(long)}),
        (2, {"NAME": "only"}),
        (2, {"S": "short"}),
        (3, {"NAME": "both", "S": Apart(long), "T": "t"}),
        (4, {"S": None}),
        (3, {"NAME": "null remains"}),
    ):
        transaction = database.begin()
        transaction.update(strings, {"ID": number}, **changes)
        transaction.commit()
    transaction = database.begin()
    transaction.delete(strings, {"ID": 1})
    transaction.delete(strings, {"ID": 4})
    transaction.commit()


_OPTIONS = {"lob.enabled": "true"}
_OBJECTS: Sequence[Step] = (_inserts, _updates, _twice, _in_place, _undone, _interleaved)
_TABLES = ("DOCS", "NEEDED", "PLAIN")
LARGE = Case("large_objects", _setup, _OBJECTS, _OPTIONS, tables=_TABLES)
_XML = Case("xml", _setup, [_xml], _OPTIONS, tables=("PAPERS",))
_STRINGS = Case("long_strings", _setup, [_strings], _OPTIONS, tables=("STRINGS",))
_BARE = Case("large_objects_bare", _setup, [_bare], _OPTIONS, tables=("BARE",))
_DIFFERENT: Sequence[Step] = (_pieces_alone, _before_its_row, _quotes_and_rows)
_OTHERS = ("STRINGS", "BARE")
DIFFERENCES = Case("large_objects_differences", _setup, _DIFFERENT, _OPTIONS, tables=(*_TABLES, *_OTHERS))
_RANDOM = Case("large_objects_random", _setup, [random_changes(1)], _OPTIONS, tables=(*_TABLES, "PAPERS", "STRINGS"))
_ALL = (LARGE, _XML, _STRINGS, _BARE)
LARGE_OBJECTS = (
    *_ALL,
    _RANDOM,
    *(replace(one, adapter="logminer_unbuffered") for one in (*_ALL, _RANDOM)),
    *(replace(one, name=f"{one.name}_off", options={}) for one in _ALL),
    *(
        replace(
            _BARE, name=f"large_objects_{mode.replace('-', '_')}", options={**_OPTIONS, "binary.handling.mode": mode}
        )
        for mode in ("hex", "base64", "base64-url-safe")
    ),
    Case(
        "large_values_schemas",
        _setup,
        [_interleaved, _xml, _strings],
        {**_OPTIONS, "key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"},
        tables=(*_TABLES, "PAPERS", "STRINGS"),
    ),
    replace(LARGE, name="large_objects_metadata", options={**_OPTIONS, "provide.transaction.metadata": "true"}),
)
