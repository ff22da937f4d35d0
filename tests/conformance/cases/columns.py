"""Cases of the columns that events have: filters, keys, types told in schemas."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.scalars import (
    AS_XML,
    MOOD,
    ORDINARY,
    PRECISION_COLUMNS,
    PRECISION_ROW,
    SCALAR_COLUMNS,
    create_scalars,
    insert,
)

FILTER_SETUP = (
    "CREATE TABLE t (id integer PRIMARY KEY, a text NOT NULL, b integer, secret text)",
    "CREATE TABLE u (id integer PRIMARY KEY, x text, y integer NOT NULL)",
    'CREATE TABLE "Odd" ("Id" integer PRIMARY KEY, "A" text, ab text)',
    "CREATE TABLE pair (n integer, x text, k integer, PRIMARY KEY (k, n))",
    "CREATE TABLE whole (id integer PRIMARY KEY, a text, noise integer)",
    "ALTER TABLE whole REPLICA IDENTITY FULL",
    "CREATE TABLE nokey (a text, b text)",
    "INSERT INTO t VALUES (1, 'a', 1, 's'), (2, 'b', NULL, NULL)",
)
FILTER_STATEMENTS = (
    "INSERT INTO whole VALUES (1, 'a', 1)",
    "INSERT INTO t VALUES (3, 'c', 3, 's')",
    "UPDATE t SET a = 'cc' WHERE id = 3",
    "UPDATE t SET secret = 'other' WHERE id = 3",
    "UPDATE t SET id = 4 WHERE id = 3",
    "DELETE FROM t WHERE id = 4",
    "INSERT INTO u VALUES (3, 'x', 3)",
    "UPDATE u SET id = 4",
    "DELETE FROM u",
    "INSERT INTO \"Odd\" VALUES (2, NULL, 'ab')",
    'UPDATE "Odd" SET "A" = \'B\' WHERE "Id" = 2',
    'DELETE FROM "Odd" WHERE "Id" = 2',
    "INSERT INTO pair VALUES (2, 'y', 2)",
    "UPDATE pair SET x = 'z' WHERE k = 2",
    "UPDATE pair SET n = 3 WHERE k = 2",
    "DELETE FROM pair WHERE k = 2",
    "UPDATE whole SET noise = 2",
    "UPDATE whole SET a = 'aa', noise = 3",
    "UPDATE whole SET id = 2",
    "DELETE FROM whole",
    "INSERT INTO nokey VALUES (NULL, 'b')",
)

INCLUDE = r"public\.t\.(id|a),PUBLIC\.whole\.A,public\.odd\.a,public\.pair\.x,ublic\.u\.id"
EXCLUDE = (
    r"public\.t\.(secret|B),.*\.noise,public\.odd\.id,public\.pair\.[xn],public\.u\.[ix].*,nokey\.a,public\.nokey\.b"
)

SKIP_SETUP = (
    "CREATE TABLE f (id integer PRIMARY KEY, a text, noise integer, m text, c varchar(20))",
    "ALTER TABLE f REPLICA IDENTITY FULL",
    "CREATE TABLE d (id integer PRIMARY KEY, a text, noise integer)",
    "CREATE TABLE n (a text, noise integer)",
    "ALTER TABLE n REPLICA IDENTITY FULL",
    "INSERT INTO f VALUES (1, 'a', 1, 'm', 'abcdef'), (2, NULL, NULL, NULL, NULL)",
    "INSERT INTO d VALUES (1, 'a', 1)",
    "INSERT INTO n VALUES ('a', 1)",
)
SKIP_STATEMENTS = (
    "UPDATE f SET noise = noise + 1",
    "UPDATE f SET a = a",
    "UPDATE f SET a = 'b' WHERE id = 1",
    "UPDATE f SET a = NULL WHERE id = 1",
    "UPDATE f SET a = 'x' WHERE id = 2",
    "UPDATE f SET m = 'masked'",
    "UPDATE f SET c = 'abcXYZ' WHERE id = 1",
    "UPDATE f SET c = 'aXc' WHERE id = 1",
    "UPDATE f SET id = 3 WHERE id = 1",
    "DELETE FROM f",
    "UPDATE d SET noise = 2",
    "UPDATE d SET a = a",
    "UPDATE n SET noise = 2",
    "UPDATE n SET a = 'b'",
)
SKIP_OPTIONS = {
    "skip.messages.without.change": "true",
    "column.exclude.list": r".*\.noise",
    "column.mask.with.3.chars": r"public\.f\.m",
    "column.truncate.to.3.chars": r"public\.f\.c",
}

KEYS_SETUP = (
    "CREATE TABLE plain (id integer PRIMARY KEY, a text)",
    "CREATE TABLE nokey (a integer, b text, c integer NOT NULL)",
    "CREATE TABLE nokey_full (a integer, b text, c integer NOT NULL)",
    "ALTER TABLE nokey_full REPLICA IDENTITY FULL",
    "CREATE TABLE other_full (id integer PRIMARY KEY, a text, b integer NOT NULL)",
    "ALTER TABLE other_full REPLICA IDENTITY FULL",
    "CREATE TABLE other (id integer PRIMARY KEY, a text, b integer NOT NULL)",
    'CREATE TABLE "Mixed" (id integer PRIMARY KEY, "Code" varchar(10), b text)',
    "INSERT INTO plain VALUES (1, 'a')",
    "INSERT INTO nokey VALUES (1, 'b', 2), (NULL, NULL, 3)",
    "INSERT INTO nokey_full VALUES (1, 'b', 2), (NULL, NULL, 3)",
    "INSERT INTO other_full VALUES (1, 'a', 1)",
    "INSERT INTO other VALUES (1, 'a', 1)",
    "INSERT INTO \"Mixed\" VALUES (1, 'x', 'y')",
)
KEYS_STATEMENTS = (
    "INSERT INTO plain VALUES (2, 'a')",
    "UPDATE plain SET id = 3 WHERE id = 2",
    "INSERT INTO nokey VALUES (4, 'b', 5)",
    "INSERT INTO nokey_full VALUES (4, 'b', 5)",
    "UPDATE nokey_full SET b = 'bb' WHERE a = 4",
    "UPDATE nokey_full SET a = 5 WHERE a = 4",
    "UPDATE nokey_full SET a = NULL WHERE a = 5",
    "UPDATE nokey_full SET a = 6 WHERE c = 5",
    "DELETE FROM nokey_full",
    "INSERT INTO other_full VALUES (2, NULL, 1)",
    "UPDATE other_full SET id = 3 WHERE id = 2",
    "UPDATE other_full SET a = 'x' WHERE id = 3",
    "UPDATE other_full SET b = 7, a = 'y' WHERE id = 3",
    "DELETE FROM other_full",
    "INSERT INTO other VALUES (2, 'c', 1)",
    "UPDATE other SET a = 'x' WHERE id = 2",
    "DELETE FROM other",
    "INSERT INTO \"Mixed\" VALUES (2, NULL, 'y')",
)
KEYS_OPTIONS = {"message.key.columns": r"public.nokey.*:c, a;(.*).other(_full)?:b,a ; PUBLIC\.mixed:code"}

TOLD_TYPES = {
    **SCALAR_COLUMNS,
    "c_serial": "serial",
    "c_smallserial": "smallserial",
    "c_bigserial": "bigserial",
    "c_domain": "code",
    "c_domain_open": "words",
}
TOLD_PRECISION = {name: value for name, value in PRECISION_ROW.items() if name != "name"}
TOLD_SETUP = (
    MOOD,
    AS_XML,
    "CREATE DOMAIN code AS varchar(7)",
    "CREATE DOMAIN words AS text",
    create_scalars("scalars", TOLD_TYPES),
    insert("scalars", 1, ORDINARY),
    create_scalars("p", PRECISION_COLUMNS),
    insert("p", 1, TOLD_PRECISION, PRECISION_COLUMNS),
)
TOLD_STATEMENTS = (
    insert("scalars", 101, ORDINARY),
    insert("p", 101, TOLD_PRECISION, PRECISION_COLUMNS),
    "UPDATE p SET id = 102 WHERE id = 101",
)

ARRAY_TYPES = (
    "varchar(7)[]",
    "varchar[]",
    "char(3)[]",
    "text[]",
    "numeric(6,2)[]",
    "numeric(8)[]",
    "numeric[]",
    "int4[]",
    "int8[]",
    "int2[]",
    "bool[]",
    "float4[]",
    "float8[]",
    "date[]",
    "time(3)[]",
    "timestamp(3)[]",
    "timestamptz[]",
    "timestamptz(0)[]",
    "uuid[]",
    "bytea[]",
    "jsonb[]",
    "mood[]",
)
ARRAY_NAMES = tuple(f"a{number}" for number in range(len(ARRAY_TYPES)))
ARRAYS_TOLD_SETUP = (
    MOOD,
    "CREATE DOMAIN few AS varchar(9)[]",
    "CREATE TABLE arrays (id integer PRIMARY KEY, "
    + ", ".join(f"{name} {kind}" for name, kind in zip(ARRAY_NAMES, ARRAY_TYPES, strict=True))
    + ", a_domain few, a_default varchar(5)[] DEFAULT '{x}')",
    "INSERT INTO arrays (id, a0, a4) VALUES (1, '{ab}', '{1.5}')",
)
ARRAYS_TOLD_STATEMENTS = (
    "INSERT INTO arrays (id, a0, a4) VALUES (2, '{ab}', '{1.5}')",
    "ALTER TABLE arrays ALTER a0 TYPE varchar(9)[], ADD later numeric(5,1)[]",
    "INSERT INTO arrays (id, a0, later) VALUES (3, '{ab}', '{1.5}')",
)
COMMENTS_SETUP = (
    "CREATE TABLE noted (id integer PRIMARY KEY, a varchar(5), b integer DEFAULT 4, c text[])",
    "CREATE TABLE plain (id integer PRIMARY KEY, a text)",
    "COMMENT ON TABLE noted IS 'its comment'",
    "COMMENT ON COLUMN noted.id IS 'the key'",
    "COMMENT ON COLUMN noted.a IS 'it has \"marks\" and é'",
    "COMMENT ON COLUMN noted.c IS ''",
    "INSERT INTO noted VALUES (1, 'a', 1, '{x}')",
    "INSERT INTO plain VALUES (1, 'a')",
)
COMMENTS_STATEMENTS = (
    "INSERT INTO noted VALUES (2, 'a', 1, '{x}')",
    "UPDATE noted SET id = 3 WHERE id = 2",
    "INSERT INTO plain VALUES (2, 'a')",
)
UNLOGGED_SETUP = (
    "CREATE UNLOGGED TABLE brief (id integer PRIMARY KEY, a text)",
    "CREATE TABLE kept (id integer PRIMARY KEY, a text)",
    "INSERT INTO brief VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO kept VALUES (1, 'a')",
)
UNLOGGED_STATEMENTS = (
    "INSERT INTO brief VALUES (3, 'c')",
    "INSERT INTO kept VALUES (2, 'b')",
)

IDENTITY_SETUP = (
    "CREATE TABLE one (id integer PRIMARY KEY, a text, b integer NOT NULL)",
    "CREATE TABLE two (id integer PRIMARY KEY, a text, b integer NOT NULL)",
    "CREATE UNIQUE INDEX two_b ON two (b)",
    "CREATE TABLE three (id integer PRIMARY KEY, a text)",
    "ALTER TABLE three REPLICA IDENTITY FULL",
    "CREATE TABLE four (id integer PRIMARY KEY, a text)",
    "INSERT INTO one VALUES (1, 'a', 1)",
)
IDENTITY_STATEMENTS = (
    "UPDATE one SET a = 'b'",
    "DELETE FROM one",
    "INSERT INTO three VALUES (1, 'a')",
    "UPDATE three SET a = 'b'",
    "DELETE FROM three",
    "INSERT INTO four VALUES (1, 'a')",
    "UPDATE four SET a = 'b'",
    "DELETE FROM four",
)

LARGE_KEY_SETUP = (
    "CREATE TABLE big (id integer, k text, v text, PRIMARY KEY (id, k))",
    "ALTER TABLE big ALTER k SET STORAGE EXTERNAL, ALTER v SET STORAGE EXTERNAL",
)
LARGE_KEY_STATEMENTS = (
    "INSERT INTO big VALUES (1, repeat('k', 1200), repeat('v', 1200))",
    "UPDATE big SET id = 2",
    "UPDATE big SET v = repeat('w', 1200)",
    "DELETE FROM big",
)

CASES = (
    Case("column_include", FILTER_SETUP, FILTER_STATEMENTS, {"column.include.list": INCLUDE}, schemas=True),
    Case("column_exclude", FILTER_SETUP, FILTER_STATEMENTS, {"column.exclude.list": EXCLUDE}, schemas=True),
    Case("skip_unchanged", SKIP_SETUP, SKIP_STATEMENTS, SKIP_OPTIONS),
    Case("message_keys", KEYS_SETUP, KEYS_STATEMENTS, KEYS_OPTIONS, schemas=True),
    Case(
        "propagate_columns",
        TOLD_SETUP,
        TOLD_STATEMENTS,
        {"column.propagate.source.type": r"public\.(scalars|p)\..*"},
        schemas=True,
    ),
    Case(
        "propagate_types",
        TOLD_SETUP,
        TOLD_STATEMENTS,
        {"datatype.propagate.source.type": r".*\.VARCHAR,public\.scalars\.FLOAT4,.*\.mood"},
        schemas=True,
    ),
    Case(
        "propagate_arrays",
        ARRAYS_TOLD_SETUP,
        ARRAYS_TOLD_STATEMENTS,
        {"column.propagate.source.type": ".*"},
        schemas=True,
    ),
    Case(
        "propagate_comments",
        COMMENTS_SETUP,
        COMMENTS_STATEMENTS,
        {"include.schema.comments": "true", "column.propagate.source.type": r".*\.(id|a|c)"},
        schemas=True,
    ),
    Case("unlogged", UNLOGGED_SETUP, UNLOGGED_STATEMENTS),
    Case("key_large", LARGE_KEY_SETUP, LARGE_KEY_STATEMENTS),
    Case(
        "identity_autoset",
        IDENTITY_SETUP,
        IDENTITY_STATEMENTS,
        {"replica.identity.autoset.values": "public.one:FULL,public.two:INDEX two_b,.*three:DEFAULT"},
    ),
)
