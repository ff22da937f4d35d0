"""The stand-in for an Oracle server through Oracle's own driver, unmodified."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import oracledb
import pyarrow as pa
import pytest
import trustme

from tests.support.oracle.fronts.tns.server import TnsServer
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column

INDIA = timezone(timedelta(hours=5, minutes=30))
COLUMNS = {
    "ID": ("NUMBER(9)", Decimal(7)),
    "NAME": ("VARCHAR2(255)", "äЖ🐘"),
    "NATIONAL": ("NVARCHAR2(20)", "Ж'a\\🐘"),
    "FIXED": ("CHAR(5)", "ab"),
    "SCORE": ("NUMBER(6,2)", Decimal("-12.5")),
    "ANY": ("NUMBER", Decimal("123456789012345678901234567890.123")),
    "DAY": ("DATE", datetime(2026, 1, 2, 3, 4, 5)),
    "TIME": ("TIMESTAMP(6)", datetime(2026, 1, 2, 3, 4, 5, 123456)),
    "ZONED": ("TIMESTAMP(6) WITH TIME ZONE", datetime(2026, 1, 2, 3, 4, 5, 123456, INDIA)),
    "LOCAL": ("TIMESTAMP(6) WITH LOCAL TIME ZONE", datetime(2026, 1, 2, 3, 4, 5, 123456, INDIA)),
    "BYTES": ("RAW(20)", b"\x00\xff"),
    "FLOAT": ("BINARY_FLOAT", 2.5),
    "DOUBLE": ("BINARY_DOUBLE", -1e300),
    "TEXT": ("CLOB", "text " * 20_000),
    "BLOCK": ("BLOB", b"\x01\x02" * 50_000),
}


@pytest.fixture
def database() -> OracleDatabase:
    made = OracleDatabase()
    columns = [column(name, type_) for name, (type_, _) in COLUMNS.items()]
    table = made.create_table("S", "T", columns, ["ID"], logged=False)
    with made.step():
        transaction = made.begin()
        transaction.insert(table, **{name: value for name, (_, value) in COLUMNS.items()})
        transaction.insert(table, ID=8)
        transaction.commit()
    return made


@pytest.fixture
def server(database: OracleDatabase) -> Iterator[TnsServer]:
    with TnsServer(database) as serving:
        yield serving


def connect(server: TnsServer, password: str = "dbz") -> oracledb.Connection:
    return oracledb.connect(user="C##DBZUSER", password=password, dsn=f"127.0.0.1:{server.port}/FREE")


def test_values_of_all_types(server: TnsServer) -> None:
    expected = {name: value for name, (_, value) in COLUMNS.items()}
    # The driver makes naive times of zoned ones: those of the zone, and those of the session.
    expected["ZONED"] = datetime(2026, 1, 2, 3, 4, 5, 123456)
    expected["LOCAL"] = datetime(2026, 1, 1, 21, 34, 5, 123456)
    expected["FIXED"] = "ab   "
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("alter session set container=ORCLPDB1")
        connection.outputtypehandler = lambda cursor, metadata: (
            cursor.var(Decimal, arraysize=cursor.arraysize) if metadata.type_code is oracledb.DB_TYPE_NUMBER else None
        )
        cursor.execute('SELECT * FROM "S"."T" ORDER BY ID')
        first, second = cursor.fetchall()
        assert dict(zip(COLUMNS, first, strict=True)) == expected
        assert second == (8, *[None] * (len(COLUMNS) - 1))


def test_many_rows_and_changing_binds(server: TnsServer, database: OracleDatabase) -> None:
    table = database.create_table("S", "MANY", [column("ID", "NUMBER"), column("V", "VARCHAR2(100)")], ["ID"])
    with database.step():
        transaction = database.begin()
        for number in range(3000):
            transaction.insert(table, ID=number, V="x" * 90)
        transaction.commit()
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("alter session set container=ORCLPDB1")
        cursor.arraysize = 700
        for low in (0, 1000, 2999):
            cursor.execute("SELECT ID FROM S.MANY WHERE ID >= :1 ORDER BY ID", [low])
            assert [row[0] for row in cursor] == list(range(low, 3000))
        schema = pa.schema([("ID", pa.int64())])
        frame = connection.fetch_df_all("SELECT ID FROM S.MANY", requested_schema=schema)
        assert pa.table(frame)["ID"].to_pylist() == list(range(3000))


def test_errors_have_oracle_s_numbers(server: TnsServer) -> None:
    with pytest.raises(oracledb.DatabaseError, match="ORA-01017"):
        connect(server, password="wrong")
    with connect(server) as connection, connection.cursor() as cursor:
        with pytest.raises(oracledb.DatabaseError, match="ORA-00942"):
            cursor.execute("SELECT 1 FROM NOWHERE")
        with pytest.raises(oracledb.DatabaseError, match="ORA-08181"):
            cursor.execute("SELECT SCN_TO_TIMESTAMP(99999999) FROM DUAL")
        cursor.execute("SELECT CURRENT_SCN FROM V$DATABASE")
        assert cursor.fetchone() is not None


def test_transactions_end_as_the_client_says(server: TnsServer) -> None:
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("alter session set container=ORCLPDB1")
        cursor.execute("CREATE TABLE FLUSH (LAST_SCN NUMBER(19,0))")
        cursor.execute("INSERT INTO FLUSH VALUES (0)")
        connection.commit()
        for scn in (5, 6):
            cursor.execute(f"UPDATE FLUSH SET LAST_SCN = {scn}")
            assert cursor.rowcount == 1
            if scn == 5:
                connection.commit()
        connection.rollback()
        assert cursor.execute("SELECT LAST_SCN FROM FLUSH").fetchall() == [(5,)]


def test_a_server_that_goes_away(server: TnsServer) -> None:
    connection = connect(server)
    assert server.connections == 1
    server.cut_connections()
    with pytest.raises(oracledb.DatabaseError, match=r"DPY-(4011|1001)"), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM DUAL")
    assert connect(server).is_healthy()


def test_tls(database: OracleDatabase, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ewallet.pem")
    with TnsServer(database, context) as server:
        dsn = f"tcps://localhost:{server.port}/FREE"
        with (
            oracledb.connect(
                user="C##DBZUSER", password="dbz", dsn=dsn, wallet_location=str(tmp_path), ssl_server_dn_match=False
            ) as connection,
            connection.cursor() as cursor,
        ):
            assert cursor.execute("SELECT DUMMY FROM DUAL").fetchall() == [("X",)]
