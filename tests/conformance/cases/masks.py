"""Cases of masked, hashed and truncated columns."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.identity import WIDE
from tests.conformance.cases.scalars import (
    AS_XML,
    ESCAPES,
    HIGH,
    MOOD,
    ORDINARY,
    SCALAR_COLUMNS,
    UNICODE,
    create_scalars,
    insert,
)

SALT = "CzQMA0cB5K"

SCALARS_SETUP = (
    MOOD,
    AS_XML,
    create_scalars("scalars", SCALAR_COLUMNS),
    *(insert("scalars", number, row) for number, row in enumerate((ORDINARY, {}, HIGH, ESCAPES, UNICODE), 1)),
)
SCALARS_STATEMENTS = (
    *(insert("scalars", number, row) for number, row in enumerate((ORDINARY, {}, HIGH, ESCAPES, UNICODE), 101)),
    "UPDATE scalars SET id = 201 WHERE id = 101",
    "DELETE FROM scalars WHERE id > 100",
)

TEXT_SETUP = (
    MOOD,
    "CREATE TABLE words (id varchar(10) PRIMARY KEY, t text, v varchar(10), w varchar(100), c char(5), m mood,"
    " r text NOT NULL, n integer, j jsonb)",
    "ALTER TABLE words ALTER t SET STORAGE EXTERNAL",
    "CREATE TABLE whole (id varchar(10) PRIMARY KEY, t text, v varchar(10))",
    "ALTER TABLE whole ALTER t SET STORAGE EXTERNAL",
    "ALTER TABLE whole REPLICA IDENTITY FULL",
    "INSERT INTO words VALUES ('k', 'text', 'short', 'long', 'c', 'happy', 'required', 1, '{}')",
    "INSERT INTO whole VALUES ('k', 'text', NULL)",
)
TEXT_STATEMENTS = (
    "INSERT INTO words VALUES ('a', '', 'äöü', '日本 😀', 'é', 'so, so', '', 2, '[1]')",
    "INSERT INTO words (id, r) VALUES ('b', 'x')",
    "UPDATE words SET t = 'other' WHERE id = 'a'",
    "UPDATE words SET id = 'c' WHERE id = 'a'",
    "DELETE FROM words WHERE id = 'c'",
    f"INSERT INTO words (id, t, r) VALUES ('d', {WIDE}, 'x')",
    "UPDATE words SET n = 1 WHERE id = 'd'",
    "DELETE FROM words WHERE id = 'd'",
    f"INSERT INTO whole VALUES ('a', {WIDE}, 'v')",
    "UPDATE whole SET v = 'w' WHERE id = 'a'",
    "UPDATE whole SET id = 'b' WHERE id = 'a'",
    "DELETE FROM whole",
)

CUT_STATEMENTS = (
    *TEXT_STATEMENTS,
    "INSERT INTO words (id, t, w, r) VALUES ('e', 'ab😀cd', 'abc😀d', E'\"\"\"\"')",
)

ALGORITHMS = ("MD5", "SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512", "SHA-512/256", "SHA3-256")
ALGORITHMS_SETUP = (
    f"CREATE TABLE hashed (id integer PRIMARY KEY, {', '.join(f'c{n} text' for n, _ in enumerate(ALGORITHMS))})",
    f"INSERT INTO hashed VALUES (1{', NULL' * len(ALGORITHMS)})",
    f"INSERT INTO hashed VALUES (2{', $$text$$' * len(ALGORITHMS)})",
)
ALGORITHMS_STATEMENTS = (
    f"INSERT INTO hashed VALUES (3{', $$äöü 😀$$' * len(ALGORITHMS)})",
    f"INSERT INTO hashed VALUES (4{', repeat($$0123456789$$, 7000)' * len(ALGORITHMS)})",
    "UPDATE hashed SET c0 = 'x' WHERE id = 4",
)

CASES = (
    Case(
        "mask_scalars",
        SCALARS_SETUP,
        SCALARS_STATEMENTS,
        {"column.mask.with.5.chars": r"public\.scalars\..*"},
        schemas=True,
    ),
    Case(
        "mask_words",
        TEXT_SETUP,
        TEXT_STATEMENTS,
        {"column.mask.with.12.chars": r".*\.(id|t|r|M)", "column.mask.with.0.chars": r"public\.words\.(v|j)"},
    ),
    Case(
        "hash_scalars",
        SCALARS_SETUP,
        SCALARS_STATEMENTS,
        {f"column.mask.hash.SHA-256.with.salt.{SALT}": r"public\.scalars\..*"},
        schemas=True,
    ),
    Case("hash_words", TEXT_SETUP, TEXT_STATEMENTS, {f"column.mask.hash.SHA-256.with.salt.{SALT}": r".*"}),
    Case(
        "hash_v2_words",
        TEXT_SETUP,
        TEXT_STATEMENTS,
        {
            f"column.mask.hash.v2.MD5.with.salt.{SALT}": r".*\.(t|v|w)",
            f"column.mask.hash.v2.SHA-512.with.salt.{SALT}.{SALT}": r".*\.(r|m|c)",
        },
        schemas=True,
    ),
    *(
        Case(
            f"hash_algorithms_{version}",
            ALGORITHMS_SETUP,
            ALGORITHMS_STATEMENTS,
            {
                f"column.mask.hash.{'v2.' if version == 'v2' else ''}{algorithm}.with.salt.{SALT}": rf".*\.c{number}"
                for number, algorithm in enumerate(ALGORITHMS)
            },
        )
        for version in ("v1", "v2")
    ),
    Case(
        "truncate_strings",
        SCALARS_SETUP,
        SCALARS_STATEMENTS,
        {
            "column.truncate.to.7.chars": r"public\.scalars\..*",
            "decimal.handling.mode": "string",
            "time.precision.mode": "isostring",
            "interval.handling.mode": "string",
            "binary.handling.mode": "hex",
        },
        schemas=True,
    ),
    Case(
        "truncate_scalars",
        SCALARS_SETUP,
        SCALARS_STATEMENTS,
        {"column.truncate.to.3.chars": r"public\.scalars\..*"},
        schemas=True,
    ),
    Case(
        "truncate_words",
        TEXT_SETUP,
        CUT_STATEMENTS,
        {
            "column.truncate.to.3.chars": r".*\.(id|t|m)",
            "column.truncate.to.10.chars": r".*\.(v|c|j)",
            "column.truncate.to.4.chars": r".*\.w",
            "column.truncate.to.0.chars": r".*\.r",
        },
        schemas=True,
    ),
)
