"""What statements do to Oracle's tables, one rule at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from floodmark.connectors.oracle.ddl.changes import Kind, TableChange
from floodmark.connectors.oracle.ddl.statements import apply
from floodmark.connectors.oracle.structures.described import described_column
from floodmark.connectors.oracle.structures.table import Column, Table, column_of
from floodmark.errors import DdlError

ID, V = Column("ID", "NUMBER", False, 9, 0), Column("V", "VARCHAR2", True, 10)
T = Table("D", "APP", "T", (ID, V), ("ID",), "T_PK", ("COMPUTED",))
TABLES = {("APP", "T"): T}


def changes(statement: str) -> list[TableChange]:
    return apply(statement, TABLES, "APP", "D")


def after(statement: str) -> Table:
    (change,) = changes(statement)
    assert change.kind in (Kind.CREATE, Kind.ALTER, Kind.COMMENT)
    assert change.table is not None
    return change.table


def columns(statement: str) -> list[tuple[str, str, int | None, int | None]]:
    return [(one.name, one.type, one.length, one.scale) for one in after(statement).columns]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX i ON t (v)",
        "CREATE OR REPLACE FORCE VIEW v AS SELECT * FROM t",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t",
        "CREATE PRIVATE TEMPORARY TABLE ora$ptt_t (a NUMBER) ON COMMIT DROP DEFINITION",
        "CREATE TABLE o OF app.person (PRIMARY KEY (id))",
        "CREATE TABLE x OF XMLTYPE XMLTYPE STORE AS BINARY XML",
        "CREATE OR REPLACE TYPE person AS OBJECT (id NUMBER)",
        "CREATE TABLESPACE ts DATAFILE 'x.dbf' SIZE 1M",
        "CREATE OR REPLACE PACKAGE BODY p IS c CONSTANT VARCHAR2(3) := 'it'; END;",
        "ALTER SYSTEM SWITCH LOGFILE",
        "ALTER TABLESPACE ts OFFLINE",
        "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA",
        "DROP VIEW t",
        "DROP USER app CASCADE",
        'DROP TABLE "BIN$aBc12==$0" PURGE',
        "PURGE RECYCLEBIN",
        "TRUNCATE CLUSTER c",
        "COMMENT ON COLUMN app.v.c IS 'of a view'",
        "COMMENT ON TABLE a_view IS 'x'",
        "COMMENT ON MATERIALIZED VIEW m IS 'x'",
        "FLASHBACK TABLE t TO SCN 12345",
        "FLASHBACK DATABASE TO SCN 1",
        'ALTER TABLE t RENAME TO "BIN$aBc12==$0"',
        'ALTER TABLE "BIN$aBc12==$0" RENAME CONSTRAINT t_pk TO "BIN$dEf34==$0"',
        "CREATE TABLE IF NOT EXISTS t (other NUMBER)",
        "GRANT SELECT ON t TO PUBLIC",
        "BEGIN NULL; END;",
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "",
        " ; ",
        "/* only a comment */",
    ],
)
def test_statements_that_change_no_table(statement: str) -> None:
    assert changes(statement) == []


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        ("CREATE TABLE n AS SELECT * FROM t", TableChange(Kind.CREATE, ("APP", "N"), reread=True)),
        ("CREATE TABLE n (a, b) AS SELECT id, v FROM t", TableChange(Kind.CREATE, ("APP", "N"), reread=True)),
        (
            "CREATE TABLE n NOLOGGING PARALLEL (DEGREE 4) AS (SELECT 1 a FROM dual)",
            TableChange(Kind.CREATE, ("APP", "N"), reread=True),
        ),
        ("CREATE TABLE b.n FOR EXCHANGE WITH TABLE t", TableChange(Kind.CREATE, ("B", "N"), reread=True)),
        (
            'CREATE TABLE "ET$1" ("A", "B") ORGANIZATION EXTERNAL (TYPE ORACLE_DATAPUMP LOCATION (\'x\'))',
            TableChange(Kind.CREATE, ("APP", "ET$1"), reread=True),
        ),
        ("FLASHBACK TABLE t TO BEFORE DROP", TableChange(Kind.CREATE, ("APP", "T"), reread=True)),
        (
            'FLASHBACK TABLE "BIN$a==$0" TO BEFORE DROP RENAME TO back',
            TableChange(Kind.CREATE, ("APP", "BACK"), reread=True),
        ),
        ('ALTER TABLE "BIN$a==$0" RENAME TO "T"', TableChange(Kind.CREATE, ("APP", "T"), reread=True)),
        ("ALTER TABLE unknown ADD (a NUMBER)", TableChange(Kind.ALTER, ("APP", "UNKNOWN"), reread=True)),
        (
            "ALTER TABLE b.unknown RENAME TO known",
            TableChange(Kind.ALTER, ("B", "KNOWN"), previous=("B", "UNKNOWN"), reread=True),
        ),
        (
            "RENAME unknown TO known",
            TableChange(Kind.ALTER, ("APP", "KNOWN"), previous=("APP", "UNKNOWN"), reread=True),
        ),
        ("DROP TABLE unknown", TableChange(Kind.DROP, ("APP", "UNKNOWN"))),
        ("TRUNCATE TABLE b.unknown", TableChange(Kind.TRUNCATE, ("B", "UNKNOWN"))),
        ("DROP TABLE t CASCADE CONSTRAINTS PURGE", TableChange(Kind.DROP, ("APP", "T"), T)),
        ('DROP TABLE "APP"."T" AS "BIN$aBcD12==$0" ;', TableChange(Kind.DROP, ("APP", "T"), T)),
        ("DROP TABLE IF EXISTS t", TableChange(Kind.DROP, ("APP", "T"), T)),
        ("DROP TABLE t;\0", TableChange(Kind.DROP, ("APP", "T"), T)),
        ("ALTER TABLE t CACHE;\0", TableChange(Kind.ALTER, ("APP", "T"), T)),
        ("truncate table app.t reuse storage", TableChange(Kind.TRUNCATE, ("APP", "T"), T)),
        ("RENAME t TO u", TableChange(Kind.ALTER, ("APP", "U"), replace(T, name="U"), ("APP", "T"))),
        ('ALTER TABLE t RENAME TO "u"', TableChange(Kind.ALTER, ("APP", "u"), replace(T, name="u"), ("APP", "T"))),
        ("ALTER TABLE t MOVE", TableChange(Kind.ALTER, ("APP", "T"), T)),
        ("COMMENT ON TABLE t IS 'it''s'", TableChange(Kind.COMMENT, ("APP", "T"), replace(T, comment="it's"))),
        ("COMMENT ON TABLE t IS ''", TableChange(Kind.COMMENT, ("APP", "T"), T)),
    ],
)
def test_changes(statement: str, change: TableChange) -> None:
    assert changes(statement) == [change]


@pytest.mark.parametrize(
    "clause",
    [
        "ADD SUPPLEMENTAL LOG GROUP g (id, v NO LOG) ALWAYS, SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
        "ADD CONSTRAINT c CHECK (v IN ('(', ')', ',')) ENABLE NOVALIDATE",
        "ADD PARTITION NUMBERED VALUES LESS THAN (10) ADD PARTITION p VALUES LESS THAN (20)",
        "ADD OVERFLOW TABLESPACE users",
        "ADD PERIOD FOR valid (a, b)",
        "DROP PERIOD FOR valid",
        "MODIFY PARTITION p ADD VALUES ('x')",
        "MODIFY DEFAULT ATTRIBUTES FOR PARTITION p TABLESPACE users",
        "MODIFY NESTED TABLE n RETURN AS VALUE",
        "MODIFY CONSTRAINT c DISABLE VALIDATE",
        "MODIFY UNIQUE (v) DISABLE CASCADE",
        "ENABLE NOVALIDATE PRIMARY KEY ENABLE VALIDATE CONSTRAINT c EXCEPTIONS INTO problems",
        "DISABLE UNIQUE (v) CASCADE DROP INDEX ENABLE CONSTRAINT c",
        "DISABLE TABLE LOCK",
        "DROP UNIQUE (v) CASCADE KEEP INDEX",
        "DROP UNUSED COLUMNS CHECKPOINT 250",
        "DROP COLUMNS CONTINUE",
        "DROP PARTITION p UPDATE INDEXES",
        "RENAME PARTITION p TO q",
        "SET INTERVAL (NUMTODSINTERVAL(1, 'DAY'))",
        "STORAGE (NEXT 1M) PCTFREE 10 LOGGING PARALLEL 2",
        "ILM ADD POLICY ROW STORE COMPRESS ADVANCED SEGMENT AFTER 30 DAYS OF NO MODIFICATION",
        "ANNOTATIONS (ADD shown 'Everyone')",
        "UPGRADE INCLUDING DATA",
        "DROP COLUMN computed",
        "MODIFY computed GENERATED ALWAYS AS (id * 3)",
    ],
)
def test_clauses_that_leave_columns_and_key(clause: str) -> None:
    found = after(f"ALTER TABLE t {clause}")
    assert (found.columns, found.key) == (T.columns, T.key)


def test_a_column_may_have_the_name_of_a_clause() -> None:
    assert columns("ALTER TABLE t ADD partition NUMBER(3)")[-1] == ("PARTITION", "NUMBER", 3, 0)
    assert columns("CREATE TABLE n (primary NUMBER, constraint NUMBER, type DATE)") == [
        ("PRIMARY", "NUMBER", None, None),
        ("CONSTRAINT", "NUMBER", None, None),
        ("TYPE", "DATE", None, None),
    ]


def test_clauses_follow_each_other() -> None:
    found = columns(
        "ALTER TABLE t ADD a NUMBER(5) DEFAULT 1 + 2 ADD (b DATE, c CLOB) LOB (c) STORE AS (CACHE) "
        "MODIFY v VARCHAR2(20) DEFAULT 'x' SET UNUSED (b) RENAME COLUMN a TO d ENABLE ROW MOVEMENT"
    )
    assert found == [
        ("ID", "NUMBER", 9, 0),
        ("V", "VARCHAR2", 20, None),
        ("D", "NUMBER", 5, 0),
        ("C", "CLOB", None, None),
    ]


def test_keys() -> None:
    assert after("ALTER TABLE t DROP PRIMARY KEY DROP COLUMN v").key == ()
    assert after("ALTER TABLE t DROP CONSTRAINT t_pk").key == ()
    assert after("ALTER TABLE t DROP CONSTRAINT other CASCADE").key == ("ID",)
    assert after("ALTER TABLE t RENAME CONSTRAINT t_pk TO other DROP CONSTRAINT other").key == ()
    assert after("ALTER TABLE t RENAME COLUMN id TO n").key == ("N",)
    assert after("ALTER TABLE t DROP COLUMN id").key == ()
    assert after("ALTER TABLE t DROP PRIMARY KEY ADD CONSTRAINT k PRIMARY KEY (v, id) RELY").key == ("V", "ID")
    assert after(
        "CREATE TABLE n (a NUMBER CONSTRAINT k PRIMARY KEY USING INDEX TABLESPACE x NOT NULL, b DATE)"
    ).key == ("A",)


def test_a_key_with_a_computed_column_is_none_of_events() -> None:
    found = after("CREATE TABLE n (a NUMBER, b NUMBER AS (a + 1), PRIMARY KEY (a, b))")
    assert (found.key, found.virtual) == ((), ("B",))
    assert [one.optional for one in found.columns] == [False]


def test_computed_columns() -> None:
    found = after("ALTER TABLE t RENAME COLUMN computed TO other")
    assert found.virtual == ("OTHER",)
    found = after("CREATE TABLE n (a NUMBER, b NUMBER GENERATED ALWAYS AS (a + 1) MATERIALIZED, c AS (a) VIRTUAL)")
    assert ([one.name for one in found.columns], found.virtual) == (["A", "B"], ("C",))


def test_constraints_that_are_off_let_null_in() -> None:
    statement = (
        "CREATE TABLE n (a NUMBER NOT NULL DISABLE, b NUMBER NOT NULL NOVALIDATE, c NUMBER CONSTRAINT x NOT NULL "
        "DEFERRABLE INITIALLY DEFERRED ENABLE, d NUMBER GENERATED BY DEFAULT ON NULL AS IDENTITY START WITH -5, "
        "e NUMBER DEFAULT ON NULL FOR INSERT AND UPDATE 0, f NUMBER NOT NULL NULL)"
    )
    assert [one.optional for one in after(statement).columns] == [True, True, False, False, False, True]


@pytest.mark.parametrize(
    ("written", "default"),
    [
        ("DEFAULT 1 NOT NULL", "1"),
        ("DEFAULT -1.5e3", "-1.5e3"),
        ("DEFAULT 'it''s, (so)' NOT NULL", "'it''s, (so)'"),
        ("DEFAULT nq'!it's!'", "nq'!it's!'"),
        ("DEFAULT (1 + 2) * -3 / 4", "(1 + 2) * -3 / 4"),
        ("DEFAULT 'a' || /* why */ 'b' NULL", "'a' || /* why */ 'b'"),
        (
            "DEFAULT CASE WHEN 1 IS NOT NULL THEN CASE 1 WHEN 1 THEN 2 END ELSE 0 END CHECK (a > 0)",
            "CASE WHEN 1 IS NOT NULL THEN CASE 1 WHEN 1 THEN 2 END ELSE 0 END",
        ),
        ("DEFAULT SYSTIMESTAMP AT TIME ZONE 'UTC'", "SYSTIMESTAMP AT TIME ZONE 'UTC'"),
        ("DEFAULT SYSDATE + INTERVAL '1 02' DAY (3) TO HOUR NOT NULL", "SYSDATE + INTERVAL '1 02' DAY (3) TO HOUR"),
        ("DEFAULT app.seq.NEXTVAL PRIMARY KEY", "app.seq.NEXTVAL"),
        ("DEFAULT DATE '2020-01-01'", "DATE '2020-01-01'"),
        ("DEFAULT NULL NULL", "NULL"),
        ("DEFAULT COALESCE(NULL, 1) INVISIBLE", "COALESCE(NULL, 1)"),
    ],
)
def test_defaults(written: str, default: str) -> None:
    assert after(f"CREATE TABLE n (a NUMBER {written}, b NUMBER)").columns[0].default == default
    assert after(f"ALTER TABLE t ADD a NUMBER {written} SET UNUSED (v)").columns[-1].default == default


def test_columns_in_every_spelling() -> None:
    statement = """create table "Mixed".n (  -- a name: "x"
        a number, "B" Number(5), "b" char(3 char) collate binary_ci, c varchar2(9) encrypt using 'AES256' no salt,
        d timestamp with local time zone, e "SYS"."XMLTYPE", f mdsys.sdo_geometry, g app.person, h urowid(10),
        i vector(3, float32), j national character varying(7), k interval day to second(3), l bool, "É" raw(2),
        m number(*, -2) annotations (shown), n clob domain app.d, supplemental log data (all) columns)"""
    (change,) = changes(statement)
    assert change.name == ("Mixed", "N")
    assert columns(statement) == [
        ("A", "NUMBER", None, None),
        ("B", "NUMBER", 5, 0),
        ("b", "CHAR", 3, None),
        ("C", "VARCHAR2", 9, None),
        ("D", "TIMESTAMP WITH LOCAL TIME ZONE", None, 6),
        ("E", "XMLTYPE", None, None),
        ("F", "SDO_GEOMETRY", None, None),
        ("G", "PERSON", None, None),
        ("H", "UROWID", None, None),
        ("I", "VECTOR", None, None),
        ("J", "NVARCHAR2", 7, None),
        ("K", "INTERVAL DAY TO SECOND", 2, 3),
        ("L", "BOOLEAN", None, None),
        ("É", "RAW", 2, None),
        ("M", "NUMBER", 38, -2),
        ("N", "CLOB", None, None),
    ]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("NUMBER", ("NUMBER", 0, 22, None, None)),
        ("NUMBER(5)", ("NUMBER", 0, 22, 5, 0)),
        ("NUMBER(*)", ("NUMBER", 0, 22, None, None)),
        ("INTEGER", ("NUMBER", 0, 22, None, 0)),
        ("REAL", ("FLOAT", 0, 22, 63, None)),
        ("VARCHAR2(9 CHAR)", ("VARCHAR2", 9, 36, None, None)),
        ("CHAR", ("CHAR", 1, 1, None, None)),
        ("RAW(9)", ("RAW", 0, 9, None, None)),
        ("DATE", ("DATE", 0, 7, None, None)),
        ("TIMESTAMP", ("TIMESTAMP(6)", 0, 11, None, 6)),
        ("TIMESTAMP(3) WITH TIME ZONE", ("TIMESTAMP(3) WITH TIME ZONE", 0, 13, None, 3)),
        ("INTERVAL YEAR(4) TO MONTH", ("INTERVAL YEAR(4) TO MONTH", 0, 5, 4, 0)),
        ("INTERVAL DAY TO SECOND(3)", ("INTERVAL DAY(2) TO SECOND(3)", 0, 11, 2, 3)),
        ("BINARY_DOUBLE", ("BINARY_DOUBLE", 0, 8, None, None)),
        ("CLOB", ("CLOB", 0, 4000, None, None)),
    ],
)
def test_a_column_is_the_same_by_statement_and_by_dictionary(
    text: str, row: tuple[str, int, int, int | None, int | None]
) -> None:
    data_type, char_length, data_length, precision, scale = row
    read = column_of("A", data_type, "Y", char_length, data_length, precision, scale)
    assert after(f"CREATE TABLE n (a {text})").columns == (replace(read, stated=True),)


def test_what_only_the_dictionary_says_stays() -> None:
    read = column_of("ID", "NUMBER", "N", 0, 22, 9, 0, '"APP"."ISEQ$$_1".nextval ', "a number", "YES")
    table = replace(T, columns=(read, V))
    (change,) = apply("ALTER TABLE t MODIFY id NUMBER(12)", {("APP", "T"): table}, "APP", "D")
    assert change.table is not None
    assert change.table.columns[0] == replace(read, length=12, stated=True)
    shown = described_column(change.table.columns[0], 1)
    assert shown["autoIncremented"] is True
    assert shown["comment"] is None
    assert shown["defaultValueExpression"] == '"APP"."ISEQ$$_1".nextval '


def test_a_structure_that_was_read_later_than_the_statement() -> None:
    assert columns("ALTER TABLE t ADD v VARCHAR2(5)") == [("ID", "NUMBER", 9, 0), ("V", "VARCHAR2", 5, None)]
    assert after("ALTER TABLE t RENAME COLUMN old TO v") == T
    assert after("ALTER TABLE t DROP (gone)") == T


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("ALTER TABLE t WOBBLE", "a clause of ALTER TABLE"),
        ("ALTER TABLE t ADD (a)", "types of all columns"),
        ("ALTER TABLE t ADD a", "a type"),
        ("ALTER TABLE t MODIFY (nothing NUMBER)", 'has no column "NOTHING"'),
        ("ALTER TABLE t RENAME COLUMN nothing TO other", 'has no column "NOTHING"'),
        ("ALTER TABLE t ADD PRIMARY KEY (nothing)", 'has no column "NOTHING"'),
        ("ALTER TABLE t DROP", "what is dropped"),
        ("ALTER TABLE t RENAME v TO w", "COLUMN, CONSTRAINT or TO"),
        ("CREATE TABLE n (a NUMBER, b VARCHAR2)", "a length"),
        ("CREATE TABLE n (a NUMBER(x))", "a number"),
        ("CREATE TABLE n (a NUMBER WOBBLY)", r"\)"),
        ("CREATE TABLE n (a NUMBER DEFAULT)", "a name"),
        ("CREATE TABLE n (a INTERVAL DAY)", "TO"),
        ("CREATE TABLE n (a NATIONAL NUMBER)", "CHARACTER"),
        ("CREATE TABLE n (a NUMBER CHECK (a > 0)", r"\)"),
        ("CREATE TABLE n (a NUMBER DEFAULT 'x)", "does not end"),
        ("CREATE TABLE n (a NUMBER /* b)", "does not end"),
        ("CREATE TABLE n (a NUMBER DEFAULT q'[x)", "does not end"),
        ("CREATE TABLE", "a name"),
        ("COMMENT ON TABLE t IS 5", "a text"),
        ("RENAME t", "TO"),
    ],
)
def test_statements_that_are_refused(statement: str, what: str) -> None:
    with pytest.raises(DdlError, match=what) as raised:
        changes(statement)
    assert statement in raised.value.what


def test_a_long_statement_is_shortened_in_errors() -> None:
    with pytest.raises(DdlError) as raised:
        changes("ALTER TABLE t WOBBLE " + "x" * 1000)
    assert len(raised.value.what) < 400


def test_long_statements_about_other_things_are_not_scanned() -> None:
    assert changes("CALL p('" + "x" * 10_000_000) == []
