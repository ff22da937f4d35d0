"""The stand-in for an Oracle server: it evaluates what it is sent, and refuses what LogMiner refuses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.large_values import Apart, Later
from tests.support.oracle.model.raw_values import number, number_of
from tests.support.oracle.model.tables import Table, column
from tests.support.oracle.sql.session import Session

FORMATS = (
    "ALTER SESSION SET NLS_DATE_FORMAT = 'YYYY-MM-DD HH24:MI:SS' NLS_TIMESTAMP_FORMAT = 'YYYY-MM-DD HH24:MI:SS.FF9' "
    "NLS_TIMESTAMP_TZ_FORMAT = 'YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM'"
)
ONLINE = "DBMS_LOGMNR.DICT_FROM_ONLINE_CATALOG + DBMS_LOGMNR.NO_ROWID_IN_STMT"
COMMITTED = f"{ONLINE} + DBMS_LOGMNR.COMMITTED_DATA_ONLY"
DML = "OPERATION_CODE IN (1,2,3)"


@pytest.fixture
def database() -> OracleDatabase:
    return OracleDatabase()


@pytest.fixture
def table(database: OracleDatabase) -> Table:
    columns = [column("ID", "NUMBER(9)", nullable=False), column("NAME", "VARCHAR2(20)"), column("AT", "DATE")]
    return database.create_table("S", "T", columns, ["ID"], logged=False)


@pytest.fixture
def session(database: OracleDatabase) -> Session:
    made = Session(database, database.account)
    made.execute(FORMATS)
    return made


def mine(session: Session, options: str = ONLINE, start: int = 1, end: int | None = None, files: int = 1) -> None:
    """Begin to mine all that there is."""
    for number_ in range(1, files + 1):
        if f"/redo/redo{number_:02d}.log" not in session.logminer.files:
            session.execute(f"BEGIN DBMS_LOGMNR.ADD_LOGFILE(LOGFILENAME => '/redo/redo{number_:02d}.log'); END;")
    upto = session.database.clock.scn if end is None else end
    session.execute(
        f"BEGIN DBMS_LOGMNR.START_LOGMNR(startScn => '{start}', endScn => '{upto}', options => {options}); END;"
    )


def rows(session: Session, what: str, where: str = DML) -> list[Any]:
    found: Sequence[Sequence[Any]] = session.execute(f"SELECT {what} FROM V$LOGMNR_CONTENTS WHERE {where}").rows
    return [row[0] if len(row) == 1 else tuple(row) for row in found]


def refused(session: Session, statement: str, *binds: Any) -> int:
    with pytest.raises(OracleError) as caught:
        session.execute(statement, binds)
    return caught.value.code


def test_statements_have_the_session_s_formats(database: OracleDatabase, table: Table) -> None:
    with database.step():
        transaction = database.begin()
        transaction.insert(table, ID=1, NAME="O'Neil", AT=datetime(2026, 1, 2, 13, 4, 5))
        transaction.update(table, {"ID": 1}, NAME=None)
        transaction.delete(table, {"ID": 1})
        transaction.commit()
    session = Session(database, database.account)
    mine(session)
    assert "TO_DATE('02-JAN-26', 'DD-MON-RR')" in rows(session, "SQL_REDO")[0]
    session.execute(FORMATS)
    time = "TO_DATE('2026-01-02 13:04:05', 'YYYY-MM-DD HH24:MI:SS')"
    assert rows(session, "SQL_REDO") == [
        f"""insert into "S"."T"("ID","NAME","AT") values ('1','O''Neil',{time});""",
        f"""update "S"."T" set "NAME" = NULL where "ID" = '1' and "NAME" = 'O''Neil' and "AT" = {time};""",
        f"""delete from "S"."T" where "ID" = '1' and "NAME" IS NULL and "AT" = {time};""",
    ]


def test_what_is_undone_comes_as_inverse_rows(database: OracleDatabase, table: Table, session: Session) -> None:
    with database.step():
        kept, undone = database.begin(), database.begin()
        kept.insert(table, ID=1)
        kept.savepoint("s")
        kept.insert(table, ID=2)
        kept.update(table, {"ID": 1}, NAME="x")
        kept.rollback_to("s")
        undone.insert(table, ID=3)
        undone.rollback()
        kept.commit()
    mine(session)
    assert rows(session, "OPERATION, ROLLBACK") == [
        ("INSERT", 0),
        ("INSERT", 0),
        ("UPDATE", 0),
        ("UPDATE", 1),
        ("DELETE", 1),
        ("INSERT", 0),
        ("DELETE", 1),
    ]
    mine(session, COMMITTED)
    assert rows(session, "OPERATION, SEQUENCE#", "OPERATION_CODE <> 0") == [("START", 1), ("INSERT", 2), ("COMMIT", 3)]
    assert [row for _, row in table.rows_at(database.clock.scn)] == [{"ID": 1, "NAME": None, "AT": None}]


def test_committed_transactions_come_in_the_order_of_their_commits(
    database: OracleDatabase, table: Table, session: Session
) -> None:
    with database.step():
        first, second = database.begin(), database.begin()
        first.insert(table, ID=1)
        second.insert(table, ID=2)
        second.commit()
        first.commit()
        database.begin().insert(table, ID=3)
    mine(session, COMMITTED)
    ids = [text.split("'")[1] for text in rows(session, "SQL_REDO")]
    assert ids == ["2", "1"]
    scns = rows(session, "COMMIT_SCN, START_SCN")
    assert scns == sorted(scns)


def test_predicates_are_evaluated(database: OracleDatabase, table: Table, session: Session) -> None:
    other = database.create_table("S", "MLOG$_T", [column("ID", "NUMBER")], logged=False)
    with database.step():
        transaction = database.begin(user="JO")
        transaction.insert(table, ID=1)
        transaction.insert(other, ID=1)
        transaction.commit()
    mine(session)
    assert rows(session, "TABLE_NAME", f"{DML} AND TABLE_NAME NOT LIKE 'MLOG$%'") == ["T"]
    assert rows(session, "TABLE_NAME", f"{DML} AND REGEXP_LIKE(SEG_OWNER || '.' || TABLE_NAME, '^s.t$', 'i')") == ["T"]
    assert rows(session, "TABLE_NAME", f"{DML} AND USERNAME NOT IN ('JO')") == []
    markers = "(CASE WHEN OPERATION_CODE IN (6,7,36) THEN 1 ELSE CASE WHEN USERNAME = 'NO' THEN 1 ELSE 0 END END = 1)"
    assert rows(session, "OPERATION", f"OPERATION_CODE > 0 AND {markers}") == ["START", "COMMIT"]
    # NULL is an empty text in a concatenation.
    assert rows(session, "SEG_OWNER || '.' || TABLE_NAME", "OPERATION_CODE = 6") == ["."]
    with pytest.raises(OracleError, match="invalid identifier"):
        rows(session, "NOSUCH")


def test_binds_by_place_and_by_name(database: OracleDatabase, table: Table, session: Session) -> None:
    with database.step():
        transaction = database.begin()
        transaction.insert(table, ID=1, NAME="a")
        transaction.insert(table, ID=2, NAME="b")
        scn = transaction.commit()
    session.execute("alter session set container=ORCLPDB1")
    query = f'SELECT ID FROM "S"."T" AS OF SCN {scn} WHERE (NAME = %s AND ID >= %s)'
    assert session.execute(query % ("?", "?"), ["b", "1"]).rows == [[2]]
    assert session.execute(query % (":1", ":2"), ["b", 1]).rows == [[2]]
    assert session.execute(query % (":n", ":i"), {"i": 1, "n": "b"}).rows == [[2]]
    assert refused(session, query % ("?", "?"), "b") == 1008


def test_rows_as_of_earlier_numbers(database: OracleDatabase, table: Table, session: Session) -> None:
    seen = []
    for name in ("a", "b"):
        with database.step():
            transaction = database.begin()
            if name == "a":
                transaction.insert(table, ID=1, NAME=name)
            else:
                transaction.update(table, {"ID": 1}, NAME=name)
            seen.append(transaction.commit())
    session.execute("alter session set container=ORCLPDB1")
    found = [session.execute(f"SELECT NAME FROM S.T AS OF SCN {scn}").rows for scn in (seen[0] - 1, *seen)]
    assert found == [[], [["a"]], [["b"]]]
    assert refused(session, f"SELECT NAME FROM S.T AS OF SCN {database.clock.scn + 1}") == 8181
    database.ddl(table, "ALTER TABLE S.T ADD (X NUMBER)", columns=(*table.structure.columns, column("X", "NUMBER")))
    assert refused(session, f"SELECT NAME FROM S.T AS OF SCN {seen[1]}") == 1466
    database.settings.undo_scns = 10
    database.clock.advance(100)
    assert refused(session, f"SELECT NAME FROM S.T AS OF SCN {database.clock.scn - 50}") == 1555


def test_row_ids_have_an_order(database: OracleDatabase, table: Table, session: Session) -> None:
    with database.step():
        transaction = database.begin()
        places = [transaction.insert(table, ID=number_) for number_ in range(250)]
        transaction.commit()
    session.execute("alter session set container=ORCLPDB1")
    between = "SELECT ROWID, ID FROM S.T WHERE ROWID BETWEEN CHARTOROWID(:1) AND CHARTOROWID(:2)"
    assert session.execute(between, [places[60], places[220]]).rows == [
        [place, number_] for number_, place in enumerate(places[60:221], 60)
    ]


def test_what_logminer_refuses(database: OracleDatabase, table: Table, session: Session) -> None:
    start = "BEGIN DBMS_LOGMNR.START_LOGMNR(startScn => '{}', endScn => '{}', options => {}); END;"
    add = "BEGIN DBMS_LOGMNR.ADD_LOGFILE(LOGFILENAME => '{}'); END;"
    assert refused(session, "SELECT SCN FROM V$LOGMNR_CONTENTS") == 1306
    assert refused(session, "BEGIN DBMS_LOGMNR.END_LOGMNR(); END;") == 1307
    assert refused(session, start.format(1, 2, ONLINE)) == 1292
    assert refused(session, add.format("/redo/no.log")) == 1284
    session.execute(add.format("/redo/redo01.log"))
    assert refused(session, add.format("/redo/redo01.log")) == 1289
    assert refused(session, start.format(2, 1, ONLINE)) == 1281
    assert refused(session, start.format("x", 1, ONLINE)) == 1281
    assert refused(session, start.format(1, 2, "DBMS_LOGMNR.NO_SUCH")) == 6550
    assert refused(session, "BEGIN DBMS_LOGMNR.REMOVE_LOGFILE(LOGFILENAME => '/redo/x'); END;") == 1290
    session.execute("alter session set container=ORCLPDB1")
    assert refused(session, start.format(1, 2, ONLINE)) == 65040


def test_logs_that_are_missing_or_were_written_again(database: OracleDatabase, table: Table, session: Session) -> None:
    for number_ in range(1, 6):
        with database.step():
            transaction = database.begin()
            transaction.insert(table, ID=number_)
            transaction.commit()
            database.switch_log()
    logs = database.threads[1].logs
    assert [log.sequence for log in logs] == [15, 16, 17, 18, 19, 20]
    archived = [next(iter(log.archived.values())) for log in logs[:-1]]
    for name in (archived[0], archived[2]):
        session.execute(f"BEGIN DBMS_LOGMNR.ADD_LOGFILE(LOGFILENAME => '{name}'); END;")
    start = "BEGIN DBMS_LOGMNR.START_LOGMNR(startScn => '1', endScn => '{}', options => " + ONLINE + "); END;"
    assert refused(session, start.format(logs[2].next - 1)) == 1291
    session.execute(f"BEGIN DBMS_LOGMNR.ADD_LOGFILE(LOGFILENAME => '{archived[1]}'); END;")
    session.execute(start.format(logs[2].next - 1))
    assert len(rows(session, "SCN")) == 3
    database.delete_archived(1, 16)
    assert refused(session, "SELECT SCN FROM V$LOGMNR_CONTENTS") == 308
    again = Session(database, database.account)
    member = database.threads[1].member(logs[-1].group)
    again.execute(f"BEGIN DBMS_LOGMNR.ADD_LOGFILE(LOGFILENAME => '{member}'); END;")
    again.execute(start.replace("'1'", f"'{logs[-1].first}'").format(database.clock.scn))
    for _ in range(3):
        database.switch_log()
    assert refused(again, "SELECT SCN FROM V$LOGMNR_CONTENTS") == 310


def test_a_structure_that_the_dictionary_has_no_more(database: OracleDatabase, table: Table, session: Session) -> None:
    in_logs = "DBMS_LOGMNR.DICT_FROM_REDO_LOGS + DBMS_LOGMNR.DDL_DICT_TRACKING"
    with pytest.raises(OracleError, match="ORA-01371"):
        mine(session, in_logs)
    session.execute("BEGIN DBMS_LOGMNR_D.BUILD(OPTIONS => DBMS_LOGMNR_D.STORE_IN_REDO_LOGS); END;")
    with database.step():
        transaction = database.begin()
        transaction.insert(table, ID=-12, NAME="a", AT=None)
        transaction.commit()
        columns = (*table.structure.columns, column("X", "NUMBER"))
        database.ddl(table, "ALTER TABLE S.T ADD (X NUMBER)", columns=columns)
    mine(session, files=3)
    # What a dictionary is written with is in the log, too.
    changes = f"{DML} AND SEG_OWNER <> 'SYS'"
    what = "SQL_REDO, STATUS, INFO, TABLE_NAME"
    statement = """insert into "S"."T"("COL 1","COL 2","COL 3") values (HEXTORAW('3e5966'),HEXTORAW('61'),NULL);"""
    assert rows(session, what, changes) == [(statement, 2, "Dictionary Version Mismatch", "T")]
    database.drop_table(table)
    mine(session, files=3)
    assert rows(session, what, changes)[0][3] == f"OBJ# {table.object_id}"
    mine(session, in_logs, files=3)
    assert rows(session, what, changes)[0][1:] == (0, None, "T")
    assert rows(session, "SQL_REDO", "OPERATION_CODE = 5") == [
        "ALTER TABLE S.T ADD (X NUMBER);",
        'DROP TABLE "S"."T" PURGE;',
    ]


def test_dictionaries_are_only_written_where_they_can_be(database: OracleDatabase, session: Session) -> None:
    build = "BEGIN DBMS_LOGMNR_D.BUILD(OPTIONS => DBMS_LOGMNR_D.STORE_IN_REDO_LOGS); END;"
    database.settings.open_mode = "READ ONLY"
    assert refused(session, build) == 16000
    database.settings.log_mode = "NOARCHIVELOG"
    assert refused(session, build) == 1325
    database.accounts[session.user].denied.add("DBMS_LOGMNR_D")
    assert refused(session, build) == 942
    assert refused(session, "BEGIN DBMS_LOGMNR_D.BUILD('a.ora', 'LOGMINER'); END;") == 942
    database.accounts[session.user].denied.clear()
    assert refused(session, "BEGIN DBMS_LOGMNR_D.BUILD('a.ora', 'NOWHERE'); END;") == 29280
    session.execute("BEGIN DBMS_LOGMNR_D.BUILD('a.ora', 'LOGMINER'); END;")
    assert list(database.dictionary_files) == ["/dictionaries/a.ora"]


def test_long_statements_come_in_pieces(database: OracleDatabase, session: Session) -> None:
    table = database.create_table("S", "LONG", [column("A", "VARCHAR2(4000)"), column("B", "VARCHAR2(4000)")])
    with database.step():
        transaction = database.begin()
        transaction.insert(table, A="é" * 3000, B="x" * 3999)
        transaction.commit()
    mine(session)
    found = rows(session, "CSF, SQL_REDO, SCN, RS_ID, SSN")
    assert [row[0] for row in found] == [1, 1, 0]
    assert len({row[2:] for row in found}) == 1
    assert all(len(row[1].encode()) <= 4000 for row in found)
    whole = "".join(row[1] for row in found)
    assert whole == f"""insert into "S"."LONG"("A","B") values ('{"é" * 3000}','{"x" * 3999}');"""


LARGE = "OPERATION_CODE IN (1,2,3,9,10,11,29,68,70,71,91,92,93)"
UNNAMED = "A" * 18


@pytest.fixture
def documents(database: OracleDatabase) -> Table:
    columns = [column("ID", "NUMBER(9)"), *(column(name, kind) for name, kind in (("C", "CLOB"), ("B", "BLOB")))]
    others = [column("X", "XMLTYPE"), column("S", "VARCHAR2(8000)")]
    return database.create_table("S", "D", [*columns, *others], ["ID"], logged=False)


def test_large_values_come_apart(database: OracleDatabase, documents: Table, session: Session) -> None:
    with database.step():
        transaction = database.begin()
        place = transaction.insert(documents, ID=1, C=Apart("it's", 3), B=Later(b"\xff"), X=Apart("<a/>"), S=Apart("s"))
        transaction.commit()
    mine(session)
    found = rows(session, "OPERATION_CODE, ROW_ID, RS_ID, SQL_REDO", LARGE)
    assert [row[0] for row in found] == [1, 9, 10, 10, 68, 70, 71, 91, 92, 93, 3]
    assert [row[1] for row in found] == [UNNAMED] * 10 + [place]
    assert found[0][2] == found[1][2] == found[7][2] != found[2][2]
    texts = [row[3] for row in found]
    assert texts[0] == (
        """insert into "S"."D"("ID","C","B","S") values ('1',EMPTY_CLOB(),EMPTY_BLOB(),'LM_EMPTY_STRING');"""
    )
    assert texts[1].endswith("""select "C" into loc_c from "S"."D" where "ID" = '1' and "S" = 's' for update;""")
    assert texts[2:4] == [
        " buf_c := 'it'''; \n  dbms_lob.write(loc_c, 3, 1, buf_c);",
        " buf_c := 's'; \n  dbms_lob.write(loc_c, 1, 4, buf_c);",
    ]
    assert texts[4] == """XML DOC BEGIN:  select "X" from "S"."D" where "ID" = '1' and "S" = 's'"""
    assert texts[5:7] == ["XML_REDO := '<a/>'\n amount: 4", None]
    assert """ Stmt := 'update "S"."D" set "S" = :VAR where "ID" = ''1'' and "S" = ''s''';""" in texts[7]
    assert texts[8] == " VAR :=    's'; EXECUTE IMMEDIATE Stmt USING VAR;"
    assert texts[10] == """update "S"."D" set "B" = HEXTORAW('ff') where "ID" = '1' and "S" = 's';"""
    row = dict(documents.rows_at(database.clock.scn))[place]
    assert row == {"ID": 1, "C": "it's", "B": b"\xff", "X": "<a/>", "S": "s"}


def test_large_objects_are_changed_where_they_are(database: OracleDatabase, documents: Table, session: Session) -> None:
    with database.step():
        transaction = database.begin()
        place = transaction.insert(documents, ID=1, C="0123456789", B=b"0123")
        transaction.savepoint("a")
        transaction.lob_write(documents, place, "C", (3, "🐘"))
        transaction.lob_trim(documents, place, "C", 6)
        transaction.lob_erase(documents, place, "B", 9, 3)
        transaction.lob_write(documents, place, "B", (6, b"\xff"))
        changed = transaction.seen(documents, {})[place]
        transaction.rollback_to("a")
        transaction.commit()
    assert (changed["C"], changed["B"]) == ("01🐘45", b"01\0\0\0\xff")
    assert dict(documents.rows_at(database.clock.scn))[place]["C"] == "0123456789"
    mine(session)
    assert rows(session, "OPERATION_CODE, ROLLBACK", LARGE) == [
        *((1, 0), (9, 0), (10, 0), (9, 0), (11, 0), (9, 0), (29, 0), (9, 0), (10, 0)),
        *[(3, 1)] * 4,
    ]
    assert rows(session, "SQL_REDO", "OPERATION_CODE IN (11,29)") == [
        " dbms_lob.trim(loc_c, 6);",
        " e_len :=  9; \n  dbms_lob.erase(loc_b, e_len, 3);",
    ]
    mine(session, COMMITTED)
    assert rows(session, "OPERATION_CODE", LARGE) == [1]


def test_sessions_change_tables(database: OracleDatabase, session: Session) -> None:
    session.execute("alter session set container=ORCLPDB1")
    session.execute('CREATE TABLE "FLUSH" (LAST_SCN NUMBER(19,0))')
    assert session.execute('INSERT INTO "FLUSH" VALUES (0)').changed == 1
    assert Session(database, database.account).container == "CDB$ROOT"
    session.commit()
    assert session.execute('UPDATE "FLUSH" SET LAST_SCN = 7 WHERE LAST_SCN = ?', [0]).changed == 1
    session.rollback()
    assert session.execute('SELECT * FROM "FLUSH"').rows == [[Decimal(0)]]
    assert session.execute("SELECT COUNT(1) FROM USER_TABLES WHERE TABLE_NAME=?", ["FLUSH"]).rows[0][0] == 1
    assert session.execute('DELETE FROM "FLUSH"').changed == 1
    assert session.execute('SELECT COUNT(*) FROM "FLUSH"').rows[0][0] == 0


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT X FROM NOWHERE",
        "SELECT LENGTH2(DUMMY) FROM DUAL",
        "EXPLAIN PLAN FOR SELECT 1 FROM DUAL",
        "ALTER SYSTEM CHECKPOINT",
        "ALTER SESSION SET NO_SUCH = 1",
        "alter session set container=NOWHERE",
        "BEGIN DBMS_LOCK.SLEEP(1); END;",
        "BEGIN x := 1; END;",
        "SELECT ID FROM S.T AS OF TIMESTAMP SYSTIMESTAMP",
        "DROP TABLE S.T",
        "",
    ],
)
def test_what_is_not_understood_is_refused(session: Session, table: Table, statement: str) -> None:
    with pytest.raises(OracleError):
        session.execute(statement)


def test_what_an_account_may_not_read(database: OracleDatabase, session: Session) -> None:
    database.accounts[database.account].denied.add("V$LOG")
    assert refused(session, "SELECT 1 FROM V$LOG") == 942
    assert session.execute("SELECT COUNT(*) FROM V$LOGFILE").rows[0][0] == 3


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=10, min_value=-(10**20), max_value=10**20)


@given(DECIMALS, DECIMALS)
def test_numbers_in_oracle_s_form(one: Decimal, other: Decimal) -> None:
    assert number_of(number(one)) == one
    assert (number(one) < number(other)) == (one < other)
