"""Signals' conditions: what is allowed is rendered from a tree, all else is refused by name."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from floodmark.connectors.mysql.snapshot.row_filters import MYSQL, query_sql, sql
from floodmark.connectors.oracle.snapshot.row_filters import ORACLE
from floodmark.connectors.oracle.snapshot.row_filters import sql as oracle_sql
from floodmark.connectors.postgres.snapshot.row_filters import POSTGRES, PostgresRenderer
from floodmark.connectors.predicates.dialect import Dialect
from floodmark.connectors.predicates.parser import TableColumns, parse_condition, parse_query
from floodmark.connectors.predicates.tokens import MOST_CHARACTERS, MOST_TOKENS
from floodmark.errors import ConditionError
from tests.support.conditions import generated_condition, hostile_condition

INPUTS = int(os.environ.get("FLOODMARK_FUZZ_INPUTS", "3000"))
ORDERS = TableColumns(
    (("public", "orders"), ("parts", "orders_1")),
    ("id", "status", "created_at", "Color", "user", "order", "secret", "date", "a`b", 'a"b'),
    {"secret"},
)
# Oracle has no names with double quotes, and names are in upper case unless they are quoted.
OF_ORACLE = replace(
    ORDERS,
    names=tuple((schema.upper(), name.upper()) for schema, name in ORDERS.names),
    columns=tuple(name if name == "Color" else name.upper() for name in ORDERS.columns if '"' not in name),
    hidden=frozenset(name.upper() for name in ORDERS.hidden),
)
POSTGRES_WRITER = PostgresRenderer({"Color": "my schema"})


def table_of(dialect: Dialect) -> TableColumns:
    """Return a table that a database may have."""
    return OF_ORACLE if dialect is ORACLE else ORDERS


def written(text: str, dialect: Dialect, table: TableColumns = ORDERS) -> str:
    """Return a condition as it is sent to the server."""
    tree = parse_condition(text, table, dialect)
    if dialect is POSTGRES:
        return POSTGRES_WRITER.sql(tree)
    return oracle_sql(tree) if dialect is ORACLE else sql(tree)


@pytest.mark.parametrize(
    ("text", "postgres", "mysql"),
    [
        (
            "id > 5 AND status = 'x'",
            """(("id" OPERATOR("pg_catalog".>) 5) AND ("status" OPERATOR("pg_catalog".=) 'x'))""",
            "((`id` > 5) AND (`status` = _utf8mb4 X'78'))",
        ),
        ("Id != -1", '("id" OPERATOR("pg_catalog".<>) (-1))', "(`id` <> (- 1))"),
        (
            "public.orders.id = 1 or not orders.id in (2, 3)",
            '(("id" OPERATOR("pg_catalog".=) 1) OR (NOT ("id" OPERATOR("pg_catalog".=) ANY (ARRAY[2, 3]))))',
            "((`id` = 1) OR (NOT (`id` IN (2, 3))))",
        ),
        (
            "status not in ('a', 'b')",
            """(NOT ("status" OPERATOR("pg_catalog".=) ANY ('{"a","b"}')))""",
            "(`status` NOT IN (_utf8mb4 X'61', _utf8mb4 X'62'))",
        ),
        (
            "id between 1 and 2 and status is not null",
            '((("id" OPERATOR("pg_catalog".>=) 1) AND ("id" OPERATOR("pg_catalog".<=) 2)) AND ("status" IS NOT NULL))',
            "((`id` BETWEEN 1 AND 2) AND (`status` IS NOT NULL))",
        ),
        (
            "status like 'a!%' escape '!' -- done",
            """("status" OPERATOR("pg_catalog".~~) pg_catalog.like_escape('a!%', '!'))""",
            "(`status` LIKE _utf8mb4 X'612125' ESCAPE _utf8mb4 X'21')",
        ),
        (
            "lower(status) = 'it''s' /* so */;",
            """(pg_catalog.lower("status") OPERATOR("pg_catalog".=) 'it''s')""",
            "(LOWER(`status`) = _utf8mb4 X'69742773')",
        ),
        (
            "id % 10 + 2 * 3 < 4",
            '((("id" OPERATOR("pg_catalog".%) 10) OPERATOR("pg_catalog".+) (2 OPERATOR("pg_catalog".*) 3)) '
            'OPERATOR("pg_catalog".<) 4)',
            "(((`id` % 10) + (2 * 3)) < 4)",
        ),
        (
            "created_at > current_timestamp and date >= date '2026-01-01'",
            '(("created_at" OPERATOR("pg_catalog".>) CURRENT_TIMESTAMP) AND '
            """("date" OPERATOR("pg_catalog".>=) ('2026-01-01'::pg_catalog.date)))""",
            "((`created_at` > CURRENT_TIMESTAMP()) AND (`date` >= CAST(_utf8mb4 X'323032362d30312d3031' AS DATE)))",
        ),
    ],
)
def test_what_is_allowed(text: str, postgres: str, mysql: str) -> None:
    assert written(text, POSTGRES) == postgres
    assert written(text, MYSQL) == mysql


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "created_at > now() - interval '1 day'",
            '("created_at" OPERATOR("pg_catalog".>) '
            """(pg_catalog.now() OPERATOR("pg_catalog".-) ('1 day'::pg_catalog.interval)))""",
        ),
        ("\"Color\" = 'x'", """("Color" OPERATOR("my schema".=) 'x')"""),
        ("\"user\" = 'a\\b'", """("user" OPERATOR("pg_catalog".=) E'a\\\\b')"""),
        ('"a""b" is null', '("a""b" IS NULL)'),
        ("id::text ilike 'x%'", """(CAST("id" AS pg_catalog.text) OPERATOR("pg_catalog".~~*) 'x%')"""),
        (
            "cast(id as numeric(10, 2)) = 1.5",
            '(CAST("id" AS pg_catalog.numeric(10, 2)) OPERATOR("pg_catalog".=) 1.5)',
        ),
        (
            "id is not distinct from 5",
            'COALESCE(("id" OPERATOR("pg_catalog".=) 5), ("id" IS NULL AND 5 IS NULL))',
        ),
        ("substring(status, 1, 2) = 'x'", """(pg_catalog.substr("status", 1, 2) OPERATOR("pg_catalog".=) 'x')"""),
        ("id /* a /* b */ c */ = 1", '("id" OPERATOR("pg_catalog".=) 1)'),
        ("status in ('a\"', 'b\\')", """("status" OPERATOR("pg_catalog".=) ANY (E'{"a\\\\"","b\\\\\\\\"}'))"""),
    ],
)
def test_what_is_postgresql_s_own(text: str, expected: str) -> None:
    assert written(text, POSTGRES) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("created_at > now() - interval 1 day", "(`created_at` > (NOW() - INTERVAL 1 DAY))"),
        ('COLOR = "x"', "(`Color` = _utf8mb4 X'78')"),
        (r"status = 'a\'b\\'", "(`status` = _utf8mb4 X'6127625c')"),
        ("`a``b` <=> null", "(`a``b` <=> NULL)"),
        ("id div 2 = 1 xor id mod 3 = 1 # odd", "(((`id` DIV 2) = 1) XOR ((`id` MOD 3) = 1))"),
        ("id = 5--1", "(`id` = (5 - (- 1)))"),
        ("id = x'0a' or id = 0xF", "((`id` = X'0a') OR (`id` = X'0F'))"),
        ("date_sub(created_at, interval 2 hour) < now()", "(DATE_SUB(`created_at`, INTERVAL 2 HOUR) < NOW())"),
        # In GBK the backslash would be half of a letter, and end the text before the comment.
        ("status = '縗\\' -- '", "(`status` = _utf8mb4 X'e7b89727202d2d20')"),
    ],
)
def test_what_is_mysql_s_own(text: str, expected: str) -> None:
    assert written(text, MYSQL) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id > 5 AND status = 'it''s'", """(("ID" > 5) AND ("STATUS" = 'it''s'))"""),
        ("Id != -1 or not ID in (2, 3)", '(("ID" <> (- 1)) OR (NOT ("ID" IN (2, 3))))'),
        ("""public.orders."ID" = 1 and "Color" = 'red'""", """(("ID" = 1) AND ("Color" = 'red'))"""),
        ("status not like 'a!%' escape '!'", """("STATUS" NOT LIKE 'a!%' ESCAPE '!')"""),
        ("id between 1 and 2 and status is not null", '(("ID" BETWEEN 1 AND 2) AND ("STATUS" IS NOT NULL))'),
        ("date >= date '2026-01-01'", """("DATE" >= DATE '2026-01-01')"""),
        ("mod(id, 2) = 1", '(mod("ID", 2) = 1)'),
        # Oracle reads backslashes as they are.
        (r"status = 'a\' or id = 1", r"""(("STATUS" = 'a\') OR ("ID" = 1))"""),
    ],
)
def test_what_is_oracle_s_own(text: str, expected: str) -> None:
    assert written(text, ORACLE, OF_ORACLE) == expected


def test_names_that_oracle_does_not_have() -> None:
    with pytest.raises(ConditionError, match="no column"):
        written('"id" = 1', ORACLE, OF_ORACLE)


def test_names_without_quotes_are_oracle_s_upper_case() -> None:
    table = TableColumns((("S", "T"),), ("ID", "id", "Mixed"), set())
    assert written("id = 1 AND Id = 2 AND s.t.ID = 3", ORACLE, table) == '(("ID" = 1) AND ("ID" = 2) AND ("ID" = 3))'
    assert written('"id" = 1 AND mixed = 2', ORACLE, table) == '(("id" = 1) AND ("Mixed" = 2))'
    with pytest.raises(ConditionError, match="no column 'mixed'"):
        written('"mixed" = 1', ORACLE, table)


@pytest.mark.parametrize("text", ["true", "id is true", "id is distinct from 1", "id is not false"])
def test_what_oracle_does_not_have(text: str) -> None:
    with pytest.raises(ConditionError, match="Oracle doesn't know"):
        written(text, ORACLE, OF_ORACLE)


ALL, ONLY_POSTGRES, ONLY_MYSQL = (POSTGRES, MYSQL, ORACLE), (POSTGRES,), (MYSQL,)


@pytest.mark.parametrize(
    ("text", "reason", "dialects"),
    [
        ("1=1) UNION SELECT password FROM secrets --", "closing bracket", ALL),
        ("id=1; DROP TABLE orders", "more than one statement", ALL),
        ("id IN (SELECT id FROM secrets)", "subquery", ALL),
        ("EXISTS (SELECT 1 FROM secrets)", "subquery", ALL),
        ("id = (TABLE secrets)", "subquery", ALL),
        ("(id, status) = (1, 'a')", "row of several values", ALL),
        ("pg_sleep(10) IS NULL", "function 'pg_sleep'", ALL),
        ("pg_read_file('/etc/passwd') = 'x'", "function 'pg_read_file'", ALL),
        ("set_config('role', 'x', false) = 'x'", "function 'set_config'", ALL),
        ("nextval('s') > 0", "function 'nextval'", ALL),
        ("dblink('', '') IS NULL", "function 'dblink'", ALL),
        ("pg_catalog.pg_sleep(1) IS NULL", "its own table", ALL),
        ("orders.lower(status) = 'x'", "function 'orders.lower'", ALL),
        ("sleep(10) = 0", "function 'sleep'", ALL),
        ("benchmark(1000000000, md5('x')) = 0", "function 'benchmark'", ALL),
        ("load_file('/etc/passwd') = 'x'", "function 'load_file'", ALL),
        ("get_lock('x', 1) = 1", "function 'get_lock'", ALL),
        ("repeat('x', 1000000000) = ''", "function 'repeat'", ALL),
        ("@x := 1", "'@'", ALL),
        ("@@version = ''", "'@@'", ALL),
        ("id = 1 INTO OUTFILE '/tmp/x'", "'INTO'", ALL),
        ("id = 1 FOR UPDATE", "'FOR'", ALL),
        ("id = 1 LIMIT 1", "'LIMIT'", ALL),
        ("id = 1 PROCEDURE ANALYSE()", "'PROCEDURE'", ALL),
        ("id = 1 UNION SELECT 1", "'UNION'", ALL),
        ("status ~ '(a+)+$'", "'~'", ALL),
        ("status SIMILAR TO 'x'", "'SIMILAR'", ALL),
        ("status REGEXP 'x'", "'REGEXP'", ALL),
        ("status || 'x' = 'y'", r"'\|\|'", ALL),
        ("status -> 'x' = 'y'", "'->'", ALL),
        ("id OPERATOR(public.=) 1", "'OPERATOR'", ALL),
        ("status COLLATE evil = 'x'", "'COLLATE'", ALL),
        ("CASE WHEN id = 1 THEN true END", "'CASE'", ALL),
        ("id = ANY (ARRAY[1])", r"'\['", ALL),
        ("status = E'x\\'' OR true --'", "prefix 'E'", ALL),
        ("status = U&'\\0027'", "prefix 'U'", ALL),
        ("status = N'x'", "prefix 'N'", ALL),
        ("status = _latin1'x'", "prefix '_latin1'", ALL),
        ("status = $$x$$", "dollar", ALL),
        ("status = $1", "dollar", ALL),
        ("status = 'x", "doesn't end", ALL),
        ("id = 1 /* x", "doesn't end", ALL),
        ("id /*! + 1 */ = 1", "comment that the server reads", ONLY_MYSQL),
        ("id /*M! + 1 */ = 1", "comment that the server reads", ONLY_MYSQL),
        ("id /*+ x */ = 1", "comment that the server reads", ONLY_MYSQL),
        ("id = 1\0", "NUL", ALL),
        ("status = 'a\\0'", "NUL", ONLY_MYSQL),
        ("status = '\ud800'", "surrogate", ALL),
        ("secret = 'x'", "column 'secret'", ALL),
        ("orders = '(1)'", "no column 'orders'", ALL),
        ("ctid = '(0,1)'", "no column 'ctid'", ALL),
        ("others.id = 1", "its own table", ALL),
        ("user = 'postgres'", "'user'", ONLY_POSTGRES),
        ("current_user = 'postgres'", "'current_user'", ALL),
        ("id::regclass = 'x'", "cast to 'regclass'", ONLY_POSTGRES),
        ("id::public.evil = 'x'", "cast to 'public'", ONLY_POSTGRES),
        ("CAST(id AS json) = 'x'", "cast to 'json'", ALL),
        ("id = 1 = true", "after another comparison", ALL),
        ("id = 0x1", "blank between", ONLY_POSTGRES),
        ("id = 1e5x", "blank between", ALL),
        ("id =", "ends where", ALL),
        ("", "ends where", ALL),
        ("(" * 1000 + "id = 1" + ")" * 1000, "nested", ALL),
        ("NOT " * 100_000 + "true", "longer than", ALL),
        ("- " * 15_000 + "id = 1" + " OR id = 1" * 3000, "more than", ALL),
        ("id" + " + 1" * 1000 + " = 1", "in a row", ALL),
        ("x" * (MOST_CHARACTERS + 1), "longer than", ALL),
    ],
)
def test_what_is_refused_and_how(text: str, reason: str, dialects: tuple[Dialect, ...]) -> None:
    for dialect in dialects:
        with pytest.raises(ConditionError, match=f"(?i:{reason})" if dialect is ORACLE else reason):
            parse_condition(text, table_of(dialect), dialect)


@pytest.mark.parametrize(
    ("text", "postgres", "mysql"),
    [
        ("SELECT * FROM orders", "SELECT * FROM ONLY t", "SELECT * FROM t"),
        (
            "select id, o.status from public.orders as o where o.id < 5 order by id desc, status limit 7; -- end",
            'SELECT * FROM ONLY t WHERE ("id" OPERATOR("pg_catalog".<) 5) ORDER BY "id" DESC, "status" LIMIT 7',
            "SELECT * FROM t WHERE (`id` < 5) ORDER BY `id` DESC, `status` LIMIT 7",
        ),
        ("id < 5", 'SELECT * FROM ONLY t WHERE ("id" OPERATOR("pg_catalog".<) 5)', "SELECT * FROM t WHERE (`id` < 5)"),
    ],
)
def test_statements_of_blocking_snapshots(text: str, postgres: str, mysql: str) -> None:
    assert POSTGRES_WRITER.query(parse_query(text, ORDERS, POSTGRES), "t") == postgres
    assert query_sql(parse_query(text, ORDERS, MYSQL), "t") == mysql


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * FROM secrets", "table 'secrets'"),
        ("SELECT * FROM other.orders", "table 'other.orders'"),
        ("SELECT * FROM orders, secrets", "','"),
        ("SELECT * FROM orders JOIN secrets ON true", "'JOIN'"),
        ("SELECT * FROM orders UNION SELECT * FROM secrets", "'UNION'"),
        ("SELECT * FROM (SELECT 1) AS orders", "a name"),
        ("SELECT * INTO x FROM orders", "'INTO'"),
        ("SELECT pg_sleep(1) FROM orders", "FROM"),
        ("SELECT secret AS id FROM orders", "FROM"),
        ("SELECT * FROM orders o WHERE orders.id = 1", "its own table"),
        ("SELECT * FROM orders ORDER BY secret", "column 'secret'"),
        ("SELECT * FROM orders ORDER BY (SELECT 1)", "a name"),
        ("SELECT * FROM orders LIMIT (SELECT 1)", "LIMIT"),
        ("SELECT * FROM orders FOR UPDATE", "'FOR'"),
        ("SELECT * FROM orders; DROP TABLE orders", "more than one statement"),
        ("SELECT * FROM orders TABLESAMPLE SYSTEM (1)", "AND, OR or the end"),
        ("WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x", "subquery"),
        ("DELETE FROM orders", "no column 'DELETE'"),
    ],
)
def test_statements_that_are_refused(text: str, reason: str) -> None:
    for dialect in ALL:
        with pytest.raises(ConditionError, match=f"(?i){reason}"):
            parse_query(text, table_of(dialect), dialect)


@pytest.mark.parametrize("dialect", ALL, ids=["postgres", "mysql", "oracle"])
def test_generated_conditions_are_accepted_and_keep_nothing_of_their_text(dialect: Dialect) -> None:
    random_ = random.Random(7)
    for _ in range(INPUTS):
        text = generated_condition(random_, dialect, table_of(dialect))
        found = written(text, dialect, table_of(dialect))
        assert_one_condition(found, dialect)


@pytest.mark.parametrize("dialect", ALL, ids=["postgres", "mysql", "oracle"])
def test_hostile_conditions_are_refused_or_harmless(dialect: Dialect) -> None:
    random_ = random.Random(11)
    accepted = 0
    for _ in range(INPUTS):
        text = hostile_condition(random_, dialect, table_of(dialect))
        try:
            found = written(text, dialect, table_of(dialect))
        except ConditionError:
            continue
        accepted += 1
        assert_one_condition(found, dialect)
    assert INPUTS // 50 < accepted < INPUTS


def assert_one_condition(text: str, dialect: Dialect) -> None:
    """Prove that rendered SQL has no more than what the renderers write: balanced, and of known words."""
    depth, at, words = 0, 0, []
    while at < len(text):
        letter = text[at]
        if letter in "'\"`":
            # Within quotes: ends at the next one that isn't doubled; a backslash is doubled after E.
            end = at + 1
            escapes = letter == "'" and text[at - 1 : at] == "E"
            while text[end] != letter or text[end + 1 : end + 2] == letter:
                end += 2 if text[end] == letter or (escapes and text[end] == "\\") else 1
            at = end + 1
            continue
        assert letter not in ";#$@\\\0", text
        assert text[at : at + 2] not in ("--", "/*"), text
        depth += {"(": 1, ")": -1}.get(letter, 0)
        assert depth >= 0, text
        end = at
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        if end > at:
            words.append(text[at:end].upper())
        at = max(end, at + 1)
    assert depth == 0, text
    bad = {
        "SELECT",
        "FROM",
        "UNION",
        "INTO",
        "TABLE",
        "FOR",
        "PROCEDURE",
        "PG_SLEEP",
        "SLEEP",
        "BENCHMARK",
        "LOAD_FILE",
    }
    assert not bad.intersection(words) - ({"FROM"} if "EXTRACT" in words else set()), text


def test_limits() -> None:
    many = ", ".join(["1"] * (MOST_TOKENS // 2 - 10))
    assert written(f"id IN ({many})", POSTGRES).count("1") == MOST_TOKENS // 2 - 10
