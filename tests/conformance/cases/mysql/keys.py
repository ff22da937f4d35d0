"""Cases of keys."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import both

TABLES = (
    "CREATE TABLE composite (x int, n varchar(5), v int, PRIMARY KEY (n, x))",
    "CREATE TABLE by_unique (a int NOT NULL, b varchar(5) NOT NULL, c int, UNIQUE KEY u (b, a))",
    "CREATE TABLE two_unique (a int NOT NULL, b int NOT NULL, UNIQUE KEY second (b), UNIQUE KEY first (a))",
    "CREATE TABLE nullable (a int NOT NULL, b int, UNIQUE KEY u (a, b))",
    "CREATE TABLE nullable_first (a int, b int NOT NULL, UNIQUE KEY u1 (a), UNIQUE KEY u2 (b))",
    "CREATE TABLE prefixed (a varchar(50) NOT NULL, v int, UNIQUE KEY u (a(3)))",
    "CREATE TABLE prefixed_primary (a varchar(50), v int, PRIMARY KEY (a(3)))",
    "CREATE TABLE nothing (a int, v int)",
    "INSERT INTO composite VALUES (1, 'a', 1)",
    "INSERT INTO by_unique VALUES (1, 'a', 1)",
    "INSERT INTO two_unique VALUES (1, 10)",
    "INSERT INTO nullable VALUES (1, NULL)",
    "INSERT INTO nullable_first VALUES (NULL, 1)",
    "INSERT INTO prefixed VALUES ('long text', 1)",
    "INSERT INTO prefixed_primary VALUES ('long text', 1)",
    "INSERT INTO nothing VALUES (1, 1)",
)
CHANGES = (
    "UPDATE composite SET v = 2",
    "UPDATE composite SET x = 2",
    "UPDATE composite SET n = 'b', v = 3",
    "DELETE FROM composite",
    "UPDATE by_unique SET c = 2",
    "UPDATE by_unique SET a = 2",
    "DELETE FROM by_unique",
    "UPDATE two_unique SET a = 2",
    "UPDATE two_unique SET b = 20",
    "UPDATE nullable SET b = 5",
    "UPDATE nullable_first SET a = 5, b = 2",
    "UPDATE prefixed SET a = 'lower'",
    "UPDATE prefixed_primary SET a = 'lower'",
    "UPDATE nothing SET a = 2",
    "DELETE FROM nothing",
)
KINDS = {
    "k_int": ("int unsigned", "4000000000", "1"),
    "k_big": ("bigint unsigned", "18446744073709551615", "2"),
    "k_dec": ("decimal(10,2)", "1.50", "-2.25"),
    "k_char": ("char(5)", "'a b'", "'é'"),
    "k_vc": ("varchar(20) CHARACTER SET latin1", "'é'", "'quote\"'"),
    "k_bin": ("binary(4)", "x'01ff'", "x'00'"),
    "k_vb": ("varbinary(10)", "x'00ff'", "''"),
    "k_date": ("date", "'2024-02-29'", "'1969-12-31'"),
    "k_dt": ("datetime(3)", "'2024-02-29 10:00:00.5'", "'1969-12-31 00:00:00'"),
    "k_ts": ("timestamp(6)", "'2024-02-29 10:00:00.123456'", "'2000-01-01 00:00:00.000001'"),
    "k_time": ("time(2)", "'10:00:00.25'", "'10:00:00'"),
    "k_enum": ("enum('a','b')", "'a'", "'b'"),
    "k_set": ("set('a','b')", "'a,b'", "''"),
    "k_bit": ("bit(9)", "257", "1"),
    "k_bool": ("tinyint(1)", "1", "0"),
    "k_year": ("year", "2024", "1999"),
    "k_double": ("double", "1.5", "1e-7"),
}
KIND_TABLES = tuple(f"CREATE TABLE {name} (k {given[0]} NOT NULL PRIMARY KEY, v int)" for name, given in KINDS.items())
KIND_ROWS = tuple(f"INSERT INTO {name} VALUES ({given[1]}, 1)" for name, given in KINDS.items())
KIND_CHANGES = (
    *(f"UPDATE {name} SET k = {given[2]}" for name, given in KINDS.items()),
    *(f"DELETE FROM {name}" for name in KINDS),
)
MESSAGE_KEYS = r"(.*)\.composite:v;message_keys\.nothing:a,v;.*\.by_unique:c"

CASES: tuple[Case, ...] = (
    *both("keys", TABLES, CHANGES),
    *both("keys_schemas", TABLES, CHANGES, schemas=True),
    *both("key_types", (*KIND_TABLES, *KIND_ROWS), KIND_CHANGES),
    *both("key_types_schemas", (*KIND_TABLES, *KIND_ROWS), KIND_CHANGES, schemas=True),
    *both(
        "key_types_modes",
        (*KIND_TABLES, *KIND_ROWS),
        KIND_CHANGES,
        {
            "time.precision.mode": "connect",
            "decimal.handling.mode": "string",
            "bigint.unsigned.handling.mode": "precise",
            "binary.handling.mode": "hex",
        },
        schemas=True,
    ),
    *both("message_keys", TABLES, CHANGES, {"message.key.columns": MESSAGE_KEYS}, schemas=True),
)
