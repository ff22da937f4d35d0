"""Sizes of types: what the servers make of those that are not plain numbers."""

from __future__ import annotations

import pytest

from floodmark.connectors.mysql.ddl import statements
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.mysql.structures.table import Column
from floodmark.errors import DdlError

MYSQL, MARIADB = Server(), Server("mariadb", 101114)


def column(definition: str, server: Server = MYSQL) -> Column:
    applied = statements.apply(Schema(), f"CREATE TABLE t (a {definition})", Session("db"), server)
    (found,) = applied.schema.tables["db", "t"].columns
    return found


@pytest.mark.parametrize(
    ("definition", "type_", "length", "scale"),
    [
        ("DECIMAL(19.5)", "decimal", 19, 0),
        ("VARCHAR(5.)", "varchar", 5, None),
        ("CHAR(3.7)", "char", 3, None),
        ("VARCHAR(.5)", "varchar", 0, None),
        ("INT(1.5)", "int", 1, None),
        ("FLOAT(24.9)", "float", 24, None),
        ("FLOAT(25.1)", "double", 25, None),
        ("BLOB(70000.2)", "mediumblob", 70000, None),
    ],
)
def test_a_fraction_of_a_size_is_cut_off(definition: str, type_: str, length: int, scale: int | None) -> None:
    for server in (MYSQL, MARIADB):
        found = column(definition, server)
        assert (found.type, found.length, found.scale) == (type_, length, scale)


def test_digits_of_seconds_may_have_a_fraction_too() -> None:
    found = column("DATETIME(3.6)", MARIADB)
    assert (found.length, found.scale) == (None, 3)


@pytest.mark.parametrize("definition", ["DECIMAL(1e1)", "DECIMAL(10,2.5)", "VARCHAR('5')", "VARCHAR(x'10')", "BIT(.)"])
def test_what_no_server_takes_for_a_size_is_an_error(definition: str) -> None:
    with pytest.raises(DdlError, match="Expected a number"):
        column(definition)


@pytest.mark.parametrize(
    ("definition", "on_mysql", "on_mariadb"),
    [("TEXT(0)", "tinytext", "text"), ("BLOB(0)", "tinyblob", "blob"), ("TEXT(255)", "tinytext", "tinytext")],
)
def test_a_size_of_nothing_is_none_to_mariadb(definition: str, on_mysql: str, on_mariadb: str) -> None:
    assert column(f"{definition} CHARACTER SET latin1").type == on_mysql
    assert column(f"{definition} CHARACTER SET latin1", MARIADB).type == on_mariadb


def test_bits_of_no_width_are_one() -> None:
    assert column("BIT(0)", MARIADB).length == 1


def test_a_long_text_may_have_a_character_set() -> None:
    found = column("LONG CHAR SET latin1")
    assert (found.type, found.charset) == ("mediumtext", "latin1")
    assert column("LONG CHAR VARYING").type == "mediumtext"


@pytest.mark.parametrize(
    ("definition", "labels"),
    [("ENUM(0x9353, 'x', 0x41) CHARACTER SET sjis", ("\u9244", "x", "A")), ("SET(x'C3A4')", ("\u00e4",))],
)
def test_labels_that_are_bytes_are_in_the_character_set_of_their_column(
    definition: str, labels: tuple[str, ...]
) -> None:
    assert column(definition).values == labels
