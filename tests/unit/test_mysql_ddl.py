from __future__ import annotations

from dataclasses import replace

import pytest

from floodmark.connectors.mysql.binlog.queries import Query
from floodmark.connectors.mysql.ddl import statements
from floodmark.connectors.mysql.ddl.column_types import Charset
from floodmark.connectors.mysql.ddl.schema import Applied, Schema
from floodmark.connectors.mysql.structures.session import Server, Session, session_of, statement_text
from floodmark.errors import DdlError

MYSQL, MARIADB = Server(), Server("mariadb", 101114)
SESSION = Session("db")
EMPTY = Schema({"db": Charset("utf8mb4", "utf8mb4_0900_ai_ci")})


def follow(*texts: str, schema: Schema = EMPTY, session: Session = SESSION, server: Server = MYSQL) -> Applied:
    applied = Applied(schema)
    for text in texts:
        applied = statements.apply(applied.schema, text, session, server)
    return applied


def names(applied: Applied, table: str) -> list[str]:
    return [column.name for column in applied.schema.tables["db", table].columns]


def test_a_change_tells_kind_table_and_structure() -> None:
    applied = follow("CREATE TABLE t (id INT PRIMARY KEY)")
    (change,) = applied.changes
    assert (change.kind, change.id, change.previous) == ("CREATE", ("db", "t"), None)
    assert change.table == applied.schema.tables["db", "t"]
    assert change.table.key == ("id",)


def test_a_schema_is_not_changed_in_place() -> None:
    first = follow("CREATE TABLE t (id INT)", "CREATE TABLE u (id INT)").schema
    second = statements.apply(first, "ALTER TABLE t ADD a INT", SESSION, MYSQL).schema
    assert len(first.tables["db", "t"].columns) == 1
    assert len(second.tables["db", "t"].columns) == 2
    assert second.tables["db", "u"] is first.tables["db", "u"]


def test_renames_in_a_chain_happen_one_after_the_other() -> None:
    applied = follow("CREATE TABLE a (x INT)", "CREATE TABLE b (y INT)", "RENAME TABLE a TO c, b TO a, c TO b")
    assert [(change.id[1], change.previous) for change in applied.changes] == [
        ("c", ("db", "a")),
        ("a", ("db", "b")),
        ("b", ("db", "c")),
    ]
    assert names(applied, "a") == ["y"]
    assert names(applied, "b") == ["x"]
    assert set(applied.schema.tables) == {("db", "a"), ("db", "b")}


def test_a_renaming_alter_tells_the_previous_name() -> None:
    (change,) = follow("CREATE TABLE a (x INT)", "ALTER TABLE a RENAME other.b, ADD y INT").changes
    assert (change.kind, change.id, change.previous) == ("ALTER", ("other", "b"), ("db", "a"))
    assert change.table is not None
    assert change.table.database == "other"


def test_dropping_several_tables_makes_a_change_for_each() -> None:
    applied = follow("CREATE TABLE a (x INT)", "CREATE TABLE b (x INT)", "DROP TABLE IF EXISTS a, b, c")
    assert [(change.kind, change.table, change.statement) for change in applied.changes] == [
        ("DROP", None, "DROP TABLE IF EXISTS `db`.`a`"),
        ("DROP", None, "DROP TABLE IF EXISTS `db`.`b`"),
        ("DROP", None, "DROP TABLE IF EXISTS `db`.`c`"),
    ]
    assert applied.unknown == (("db", "c"),)


def test_truncating_keeps_the_structure() -> None:
    applied = follow("CREATE TABLE a (x INT)", "TRUNCATE a")
    assert [(change.kind, change.id[1]) for change in applied.changes] == [("TRUNCATE", "a")]
    assert names(applied, "a") == ["x"]


def test_dropping_a_database_drops_its_tables() -> None:
    applied = follow("CREATE TABLE a (x INT)", "DROP DATABASE db")
    assert applied.schema == Schema()
    assert applied.database == "db"


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN",
        "SAVEPOINT `x`",
        "XA START 'a','',1",
        "GRANT ALL ON *.* TO 'x'@'%'",
        "CREATE USER x",
        "CREATE DEFINER=`a`@`b` TRIGGER t BEFORE INSERT ON x FOR EACH ROW SET @a = 'it''s'",
        "CREATE ALGORITHM=UNDEFINED SQL SECURITY DEFINER VIEW v AS SELECT 1",
        "CREATE TEMPORARY TABLE x (a INT)",
        "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `x`",
        "DROP VIEW v",
        "ALTER USER x ACCOUNT LOCK",
        "ANALYZE TABLE t",
        "SET @a = 1",
        "FLUSH TABLES",
        "INSERT INTO t VALUES ('unfinished",
        "/* nothing but a comment */",
        "# only this",
        "",
    ],
)
def test_what_does_not_matter_changes_nothing(text: str) -> None:
    applied = follow(text)
    assert applied.schema is EMPTY
    assert applied.changes == ()


@pytest.mark.parametrize(
    "before",
    [
        "--\n",
        "--\n-- Table structure for table `x`\n--\n\n",
        "-- x\r\n",
        "#\n",
        "# it's\n",
        "/* it's */",
        "/**/--\t\n",
        "\n\n",
    ],
)
def test_comments_before_a_statement(before: str) -> None:
    assert names(follow(f"{before}CREATE TABLE x (a INT)"), "x") == ["a"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("ALTER TABLE t ADD COLUMN a NOSUCHTYPE", "at character 28"),
        ("CREATE TABLE t (a INT", "found its end"),
        ("CREATE TABLE t (a INT) SELECT 1", "found 'SELECT 1'"),
        ("CREATE TABLE t (a INT DEFAULT 'x", "does not end"),
        ("CREATE TABLE t (a INT /* ", "character 23"),
        ("ALTER TABLE t FROBNICATE x", "a clause of ALTER TABLE"),
        ("RENAME TABLE a b", "Expected TO at character 16"),
    ],
)
def test_what_matters_and_is_not_understood_is_an_error_with_its_place(text: str, where: str) -> None:
    with pytest.raises(DdlError, match="The statement is: ") as error:
        follow(text)
    assert where in str(error.value)


def test_an_unknown_table_is_told() -> None:
    applied = follow("ALTER TABLE other.v ADD a INT")
    assert applied.unknown == (("other", "v"),)
    assert applied.changes == ()


def test_names_are_folded_as_the_server_folds_them() -> None:
    server = replace(MYSQL, fold_names=True)
    applied = follow("CREATE TABLE MyTable (Id INT)", "ALTER TABLE DB.MYTABLE ADD b INT", server=server)
    assert names(applied, "mytable") == ["Id", "b"]


def test_versioned_comments_depend_on_the_server() -> None:
    text = "CREATE TABLE t (a INT /*!50101 , b INT */ /*!80000 , c INT */ /*M!100100 , d INT */ /*!99999 , e INT */)"
    assert names(follow(text), "t") == ["a", "b", "c"]
    assert names(follow(text, server=MARIADB), "t") == ["a", "b", "d"]


def test_quoting_depends_on_the_session() -> None:
    ansi = Session("db", ansi_quotes=True)
    applied = follow('CREATE TABLE "t" ("a""b" VARCHAR(9) DEFAULT \'\\\\\')', session=ansi)
    assert names(applied, "t") == ['a"b']
    plain = Session("db", no_backslash_escapes=True)
    (column,) = follow("CREATE TABLE t (a VARCHAR(9) DEFAULT '\\')", session=plain).schema.tables["db", "t"].columns
    assert column.default == "\\"


def test_the_declared_type_and_default_are_kept() -> None:
    applied = follow("CREATE TABLE t (a INTEGER DEFAULT '05', b DOUBLE PRECISION, c DECIMAL(5,2) DEFAULT 1.5)")
    a, b, c = applied.schema.tables["db", "t"].columns
    assert (a.type, a.declared, a.default, a.written) == ("int", "INTEGER", "5", "05")
    assert (b.type, b.declared) == ("double", "DOUBLE PRECISION")
    assert (c.declared, c.default, c.written) == (None, "1.50", "1.5")


@pytest.mark.parametrize(
    ("definition", "default"),
    [
        ("INT(5) ZEROFILL DEFAULT 42", "00042"),
        ("BIT(4) DEFAULT b'0101'", "b'101'"),
        ("BIT(8) DEFAULT 0x0F", "b'1111'"),
        ("FLOAT DEFAULT 1e3", "1000"),
        ("YEAR DEFAULT '99'", "1999"),
        ("YEAR DEFAULT 0", "0000"),
        ("DATE DEFAULT 20200102", "2020-01-02"),
        ("DATETIME(3) DEFAULT '2020-1-2 3:4:5.6'", "2020-01-02 03:04:05.600"),
        ("TIME DEFAULT '-1 2:03'", "-26:03:00"),
        ("TIME DEFAULT 10203", "01:02:03"),
        ("ENUM('a','B') DEFAULT 'b'", "B"),
        ("SET('x','y') DEFAULT 'Y,x'", "x,y"),
        ("VARBINARY(3) DEFAULT x'00ff'", "0x00FF"),
        ("VARCHAR(9) DEFAULT X'4142'", "AB"),
        ("INT DEFAULT 'odd'", "odd"),
    ],
)
def test_literals_are_kept_as_the_server_keeps_them(definition: str, default: str) -> None:
    (column,) = follow(f"CREATE TABLE t (a {definition})").schema.tables["db", "t"].columns
    assert (column.default_kind, column.default) == ("literal", default)


def test_a_table_like_one_that_is_unknown_stays_unknown() -> None:
    assert follow("CREATE TABLE t LIKE nowhere").unknown == (("db", "nowhere"),)


def test_the_server_collation_makes_databases() -> None:
    session = Session("db", collation="latin1_german1_ci")
    applied = follow("CREATE DATABASE x", "CREATE TABLE x.t (a CHAR(3))", session=session)
    assert applied.schema.databases["x"] == Charset("latin1", "latin1_german1_ci")
    assert applied.schema.tables["x", "t"].columns[0].collation == "latin1_german1_ci"


def test_the_session_is_what_its_query_says() -> None:
    collations = {8: "latin1_swedish_ci", 45: "utf8mb4_general_ci", 255: "utf8mb4_0900_ai_ci"}
    query = Query(
        "?",
        "ALTER TABLE \u00e9".encode("latin-1"),
        "db",
        thread=7,
        seconds=0,
        sql_mode=1 << 2 | 1 << 20 | 1,
        client_charset=8,
        server_collation=255,
        utf8mb4_collation=45,
        explicit_timestamps=False,
        flags=1 << 24,
    )
    assert statement_text(query, collations) == "ALTER TABLE \u00e9"
    found = session_of(query, collations, MYSQL)
    assert found == Session("db", True, True, True, "", "utf8mb4_0900_ai_ci", "utf8mb4_general_ci", False)
    assert session_of(query, collations, MARIADB).explicit_timestamps


def test_oracle_s_names_of_types_are_mariadb_s() -> None:
    session = Session("db", type_names="oracle")
    text = "CREATE TABLE t (a VARCHAR2(10), b NUMBER(5,2), c NUMBER, d RAW(5), e DATE)"
    columns = follow(text, session=session, server=MARIADB).schema.tables["db", "t"].columns
    assert [column.type for column in columns] == ["varchar", "decimal", "double", "varbinary", "datetime"]


def test_names_of_types_behind_whose_they_are() -> None:
    text = "CREATE TABLE t (a mariadb_schema.DATE, b oracle_schema.DATE, c maxdb_schema.TIMESTAMP(3), d TIMESTAMP)"
    columns = follow(text, session=Session("db", type_names="maxdb"), server=MARIADB).schema.tables["db", "t"].columns
    assert [(column.type, column.scale) for column in columns] == [
        ("date", None),
        ("datetime", None),
        ("datetime", 3),
        ("datetime", None),
    ]


def test_brackets_quote_names_in_mariadb_s_mode_of_another_database() -> None:
    session = session_of(Query("?", b"", "db", thread=7, seconds=0, sql_mode=1 << 10), {}, MARIADB)
    found = statements.apply(Schema(), "CREATE TABLE [t[1]]] ([a b] INT, `c` INT)", session, MARIADB).schema
    assert [column.name for column in found.tables["db", "t[1]"].columns] == ["a b", "c"]
    with pytest.raises(DdlError):
        statements.apply(Schema(), "CREATE TABLE [t] (a INT)", SESSION, MARIADB)


def test_a_character_that_names_cannot_have_is_a_question_mark() -> None:
    text = "CREATE TABLE `t\U00010300` (a\U00010301b INT, c INT COMMENT '\U00010302', KEY (a\U00010301b))"
    found = statements.apply(Schema(), text, SESSION, MYSQL).schema.tables["db", "t?"]
    assert [column.name for column in found.columns] == ["a?b", "c"]
    assert (found.columns[1].comment, found.indexes[0].columns) == ("\U00010302", ("a?b",))


def test_the_session_says_which_character_set_utf8_is() -> None:
    text = "CREATE TABLE t (a CHAR(3) CHARSET utf8, b CHAR(3) COLLATE utf8_bin, c NCHAR(3)) CHARSET utf8"
    for mode, expected in ((0, "utf8mb3"), (1 << 33, "utf8mb4")):
        session = session_of(Query("?", b"", "db", thread=7, seconds=0, sql_mode=mode), {}, MYSQL)
        found = statements.apply(Schema(), text, session, MYSQL).schema.tables["db", "t"]
        assert [found.charset, *(column.charset for column in found.columns)] == [expected] * 3 + ["utf8mb3"]
        assert found.columns[1].collation == f"{expected}_bin"


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("CREATE OR REPLACE TABLE t (a INT, UNIQUE (a(3)))", "DROP TABLE IF EXISTS `db`.`t`"),
        ("/*M! */ create or replace table `x``y`.`t` SELECT 1", "DROP TABLE IF EXISTS `x``y`.`t`"),
        ("SET STATEMENT max_statement_time=1 FOR CREATE OR REPLACE TABLE u (a INT)", "DROP TABLE IF EXISTS `db`.`u`"),
        ("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", None),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", None),
        ("CREATE TABLE t (a INT)", None),
        ("DROP TABLE missing, t", None),
        ("RENAME TABLE a TO b", None),
    ],
)
def test_what_a_failed_statement_has_done(text: str, done: str | None) -> None:
    assert statements.done_by_failed(text, SESSION, MARIADB) == (done or text)
