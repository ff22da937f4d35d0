"""Literals of DEFAULT clauses: in the form in which the servers keep them, whatever form they were written in."""

from __future__ import annotations

import pytest

from floodmark.connectors.mysql.binlog.queries import Query
from floodmark.connectors.mysql.ddl import statements
from floodmark.connectors.mysql.ddl.schema import Schema
from floodmark.connectors.mysql.structures.described import described_column
from floodmark.connectors.mysql.structures.session import Server, Session, session_of
from floodmark.connectors.mysql.structures.table import Column

MYSQL, MARIADB = Server(), Server("mariadb", 101114)
SESSION = Session("db")


def column(definition: str, server: Server = MYSQL, session: Session = SESSION) -> Column:
    applied = statements.apply(Schema(), f"CREATE TABLE t (a {definition})", session, server)
    (found,) = applied.schema.tables["db", "t"].columns
    return found


@pytest.mark.parametrize(
    ("definition", "kept"),
    [
        ("DATE DEFAULT '2020/01/02'", "2020-01-02"),
        ("DATE DEFAULT '2020.1.2'", "2020-01-02"),
        ("DATE DEFAULT '2020@1@2'", "2020-01-02"),
        ("DATE DEFAULT '20200102'", "2020-01-02"),
        ("DATE DEFAULT '200102'", "2020-01-02"),
        ("DATE DEFAULT 101", "2000-01-01"),
        ("DATE DEFAULT '70-1-2'", "1970-01-02"),
        ("DATE DEFAULT '1-1-1'", "0001-01-01"),
        ("DATE DEFAULT '2020-00-00'", "2020-00-00"),
        ("DATE DEFAULT DATE'2020/1/2'", "2020-01-02"),
        ("DATE DEFAULT TIMESTAMP'2020-01-02 03:04:05'", "2020-01-02"),
        ("DATETIME DEFAULT 20200102030405", "2020-01-02 03:04:05"),
        ("DATETIME DEFAULT 200102030405", "2020-01-02 03:04:05"),
        ("DATETIME DEFAULT '20200102030405'", "2020-01-02 03:04:05"),
        ("DATETIME DEFAULT '20200102T030405'", "2020-01-02 03:04:05"),
        ("DATETIME DEFAULT '2020-1-2T3:4:5'", "2020-01-02 03:04:05"),
        ("DATETIME DEFAULT '2020-1-2 3:4'", "2020-01-02 03:04:00"),
        ("DATETIME DEFAULT '2020/01/02 03-04-05'", "2020-01-02 03:04:05"),
        ("DATETIME(3) DEFAULT TIMESTAMP'2020/01/02 03.04.05'", "2020-01-02 03:04:05.000"),
        ("DATETIME(3) DEFAULT '20200102030405.1230'", "2020-01-02 03:04:05.123"),
        ("TIMESTAMP(2) DEFAULT '2020/01/02 3:4:5'", "2020-01-02 03:04:05.00"),
        ("TIME DEFAULT '10:11'", "10:11:00"),
        ("TIME DEFAULT '1011'", "00:10:11"),
        ("TIME DEFAULT '1 2:3:4'", "26:03:04"),
        ("TIME DEFAULT -10203", "-01:02:03"),
        ("TIME DEFAULT '-0'", "00:00:00"),
        ("TIME DEFAULT '2020-01-02 03:04:05'", "03:04:05"),
        ("TIME DEFAULT '2020/1/2 3:4:5'", "03:04:05"),
        ("TIME DEFAULT 20200102030405", "03:04:05"),
        ("YEAR DEFAULT 2020.6", "2021"),
        ("DATE DEFAULT 1e-7", "0000-00-00"),
        ("DATE DEFAULT -0", "0000-00-00"),
        ("DATE DEFAULT 2.0200102e7", "2020-01-02"),
        ("DATETIME DEFAULT 200102e0", "2020-01-02 00:00:00"),
        ("DATETIME DEFAULT 00700102030405e0", "1970-01-02 03:04:05"),
        ("DATETIME(3) DEFAULT 0.5", "0000-00-00 00:00:00.500"),
        ("DATETIME(3) DEFAULT 20200102.5", "2020-01-02 00:00:00.000"),
        ("DATETIME(1) DEFAULT 101.25", "2000-01-01 00:00:00.0"),
        ("TIME(2) DEFAULT 1e1", "00:00:10.00"),
        ("TIME(3) DEFAULT -5e-1", "-00:00:00.500"),
    ],
)
def test_times_are_kept_in_one_form(definition: str, kept: str) -> None:
    for server in (MYSQL, MARIADB):
        assert column(definition, server).default == kept


@pytest.mark.parametrize(
    ("definition", "rounded", "cut"),
    [
        ("DATETIME DEFAULT '2020-12-31 23:59:59.5'", "2021-01-01 00:00:00", "2020-12-31 23:59:59"),
        ("DATETIME(1) DEFAULT 20200102030405.67", "2020-01-02 03:04:05.7", "2020-01-02 03:04:05.6"),
        ("DATETIME(3) DEFAULT '2020-01-02 03:04:05.9996'", "2020-01-02 03:04:06.000", "2020-01-02 03:04:05.999"),
        (
            "DATETIME(6) DEFAULT '2020-01-02 03:04:05.1234567'",
            "2020-01-02 03:04:05.123457",
            "2020-01-02 03:04:05.123456",
        ),
        ("DATE DEFAULT '2020-12-31 23:59:59.9'", "2021-01-01", "2020-12-31"),
        ("TIME DEFAULT '10:11:12.5'", "10:11:13", "10:11:12"),
        ("TIME DEFAULT '23:59:59.9'", "24:00:00", "23:59:59"),
        ("TIME DEFAULT '-00:00:00.6'", "-00:00:01", "00:00:00"),
        ("TIME(2) DEFAULT 1.01112345e5", "10:11:12.35", "10:11:12.34"),
        ("DATETIME(2) DEFAULT 2.0200102030405678e13", "2020-01-02 03:04:05.68", "2020-01-02 03:04:05.67"),
    ],
)
def test_seconds_are_rounded_or_cut_as_server_and_session_say(definition: str, rounded: str, cut: str) -> None:
    other = Session("db", other_fractions=True)
    assert [column(definition, MYSQL).default, column(definition, MARIADB, other).default] == [rounded, rounded]
    assert [column(definition, MYSQL, other).default, column(definition, MARIADB).default] == [cut, cut]


@pytest.mark.parametrize(("server", "bit"), [(MYSQL, 32), (MARIADB, 34)])
def test_the_session_says_what_becomes_of_fractions(server: Server, bit: int) -> None:
    for mode, expected in ((1 << bit, True), (1 << 66 - bit, False)):
        query = Query("?", b"", "db", thread=7, seconds=0, sql_mode=mode)
        assert session_of(query, {}, server).other_fractions is expected


@pytest.mark.parametrize("type_", ["TEXT", "BLOB", "TINYTEXT"])
def test_an_empty_default_of_a_text_counts_on_mariadb_alone(type_: str) -> None:
    found = [
        column(f"{type_} DEFAULT ''"),
        column(f"{type_} NOT NULL DEFAULT ''"),
        column(f"{type_} DEFAULT ''", MARIADB),
    ]
    assert [(one.default_kind, one.default) for one in found] == [("null", None), ("none", None), ("literal", "")]


@pytest.mark.parametrize(
    ("definition", "kept"),
    [
        ("VARCHAR(9) DEFAULT 1e2", "100"),
        ("VARCHAR(9) DEFAULT 007", "7"),
        ("VARCHAR(9) DEFAULT -.5", "-0.5"),
        ("VARCHAR(9) DEFAULT 5.50", "5.50"),
        ("VARCHAR(9) DEFAULT 1e-20", "1e-20"),
        ("VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 0xc3a4", "\u00e4"),
        ("VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT _latin1 0xe4", "\u00e4"),
        ("VARBINARY(9) DEFAULT _binary 0xe4", "0xE4"),
        ("DECIMAL(5,2) DEFAULT 0x10", "16.00"),
        ("YEAR DEFAULT 0x10", "2016"),
        ("DECIMAL(6,2) ZEROFILL DEFAULT 1.5", "0001.50"),
        ("DECIMAL(6,2) DEFAULT -0", "0.00"),
        ("DOUBLE ZEROFILL DEFAULT 5", "0000000000000000000005"),
        ("DOUBLE DEFAULT 100000000000000", "100000000000000"),
        ("DOUBLE DEFAULT 1e15", "1e15"),
        ("DOUBLE DEFAULT 0.000000000000001", "0.000000000000001"),
        ("DOUBLE DEFAULT -1.5e-16", "-1.5e-16"),
        ("BIT(4) DEFAULT 2.5", "b'11'"),
        ("DECIMAL(63,30) DEFAULT 9", "9." + "0" * 30),
        ("FLOAT(53) ZEROFILL DEFAULT 8.8", "00000000000000000008.8"),
        ("FLOAT(10) ZEROFILL DEFAULT 8.8", "0000000008.8"),
        ("FLOAT(7,3) ZEROFILL DEFAULT 8.8", "008.800"),
    ],
)
def test_numbers_and_bytes_are_kept_as_what_they_mean(definition: str, kept: str) -> None:
    assert column(definition).default == kept


def test_the_schema_change_topic_tells_a_default_as_it_was_written() -> None:
    found = column("DATE DEFAULT '2020/01/02'")
    assert (found.default, found.written) == ("2020-01-02", "2020/01/02")
    assert described_column(found, 1)["defaultValueExpression"] == "2020/01/02"


@pytest.mark.parametrize(
    ("definition", "kept"),
    [
        ("DATETIME DEFAULT '2020-01-02 03:04:05+05:00'", "2020-01-02 00:04:05"),
        ("DATETIME(2) DEFAULT '20/1/2 03:04:05.678-05:30'", "2020-01-02 10:34:05.68"),
        ("DATE DEFAULT '2020-01-02 23:04:05-05:00'", "2020-01-03"),
        ("TIME DEFAULT '2020-01-02 23:04:05.6-05:30'", "06:34:06"),
        ("DATETIME DEFAULT '2020-01-02 23:04:05.6-05:30'", "2020-01-02 23:04:06"),
        ("DATETIME DEFAULT '2020-01-02+05:00'", "2020-01-02 05:00:00"),
        ("VARCHAR(40) DEFAULT '2020-01-02 03:04:05+05:00'", "2020-01-02 03:04:05+05:00"),
    ],
)
def test_a_time_with_an_offset_is_kept_in_the_time_zone_of_the_session(definition: str, kept: str) -> None:
    assert column(definition, session=Session("db", time_zone="+02:00")).default == kept


@pytest.mark.parametrize(
    ("session", "server", "kept"),
    [
        ("SYSTEM", "UTC", "2020-07-01 22:04:05"),
        ("SYSTEM", "CEST?", "2020-07-02 03:04:05+05:00"),
        ("Europe/Berlin", "UTC", "2020-07-02 00:04:05"),
        ("-05:30", "UTC", "2020-07-01 16:34:05"),
        ("../etc/passwd", "UTC", "2020-07-02 03:04:05+05:00"),
    ],
)
def test_time_zones_of_sessions(session: str, server: str, kept: str) -> None:
    text = "DATETIME DEFAULT '2020-07-02 03:04:05+05:00'"
    assert column(text, Server(time_zone=server), Session("db", time_zone=session)).default == kept


@pytest.mark.parametrize("text", ["-0", "-0.0"])
def test_zero_has_no_sign_in_texts(text: str) -> None:
    assert column(f"VARCHAR(9) DEFAULT {text}").default == text[1:]


def test_a_letter_between_date_and_time_is_for_mariadb_where_a_time_is_meant() -> None:
    assert column("TIME DEFAULT '2020-01-02T03:04:05'", MARIADB).default == "03:04:05"
    assert column("TIME DEFAULT '2020-01-02T03:04:05'", MYSQL).default == "00:20:20"


def test_labels_are_found_without_the_blanks_behind_them() -> None:
    assert column("SET(' ', 'a', 'b ') DEFAULT 'b ,a'").default == "a,b"


@pytest.mark.parametrize(
    ("definition", "kept"),
    [
        ("INET4 DEFAULT 0xFFFFFFFF", "255.255.255.255"),
        ("INET6 DEFAULT 0x00000000000000000000000000000000", "::"),
        ("INET6 DEFAULT '::0'", "::"),
        ("INET6 DEFAULT 'FFFF::ffff'", "ffff::ffff"),
        ("INET6(6) DEFAULT '::ffff:10.0.0.1'", "::ffff:10.0.0.1"),
        ("UUID DEFAULT 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
        ("UUID DEFAULT '123E4567e89b12d3a456426614174000'", "123e4567-e89b-12d3-a456-426614174000"),
    ],
)
def test_addresses_and_uuids_are_kept_as_mariadb_prints_them(definition: str, kept: str) -> None:
    assert column(definition, MARIADB).default == kept
