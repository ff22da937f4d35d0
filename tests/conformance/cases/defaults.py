"""Cases of column defaults: constants, functions, expressions; in schemas, for nulls, in the old rows of deletes."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.scalars import AS_XML, MOOD

COLUMNS: dict[str, str] = {
    "si": "smallint DEFAULT -7",
    "i": "integer DEFAULT 5",
    "i_expr": "integer DEFAULT (1 + 2)",
    "i_null": "integer DEFAULT NULL::integer",
    "bi": "bigint DEFAULT 9223372036854775807",
    "bi_quoted": "bigint DEFAULT '-9223372036854775808'",
    "ser": "serial",
    "re": "real DEFAULT 1.5",
    "re_neg": "real DEFAULT -1e-10",
    "dp": "double precision DEFAULT 1e20",
    "dp_nan": "double precision DEFAULT 'NaN'",
    "dp_random": "double precision DEFAULT random()",
    "nu": "numeric DEFAULT 1.50",
    "nu_10_2": "numeric(10,2) DEFAULT 1.5",
    "nu_10_2_more": "numeric(10,2) DEFAULT 1.555",
    "nu_8_0": "numeric(8,0) DEFAULT -12",
    "nu_nan": "numeric(8,3) DEFAULT 'NaN'",
    "nu_random": "numeric(8,3) DEFAULT round(1.5)",
    "mo": "money DEFAULT 12.34",
    "bo": "boolean DEFAULT true",
    "bo_false": "boolean DEFAULT false",
    "bo_expr": "boolean DEFAULT (1 = 1)",
    "ch": "char(5) DEFAULT 'ab'",
    "vc": "varchar(20) DEFAULT 'a \"quoted\" \\ text'",
    "te": "text DEFAULT 'plain'",
    "te_empty": "text DEFAULT ''",
    "te_call": "text DEFAULT upper('a')",
    "te_user": "text DEFAULT CURRENT_USER",
    "te_sum": "text DEFAULT ('a' || 'b')",
    "te_cast": "text DEFAULT now()::text",
    "te_emoji": "text DEFAULT 'é 😀'",
    "by": "bytea DEFAULT '\\x00ff'",
    "da": "date DEFAULT '2024-02-29'",
    "da_old": "date DEFAULT '1900-01-01'",
    "da_today": "date DEFAULT CURRENT_DATE",
    "da_now": "date DEFAULT now()",
    "ti": "time DEFAULT '13:14:15.123456'",
    "ti_3": "time(3) DEFAULT '13:14:15.123'",
    "ti_now": "time DEFAULT LOCALTIME",
    "tz": "timetz DEFAULT '13:14:15+02'",
    "ts": "timestamp DEFAULT '2024-02-29 13:14:15.123456'",
    "ts_3": "timestamp(3) DEFAULT '1969-02-28 13:14:15.1'",
    "ts_now": "timestamp DEFAULT now()",
    "ts_local": "timestamp DEFAULT LOCALTIMESTAMP",
    "ts_utc": "timestamp DEFAULT (now() AT TIME ZONE 'utc')",
    "tt": "timestamptz DEFAULT '2024-02-29 13:14:15.1+02'",
    "tt_2": "timestamptz(2) DEFAULT '2024-02-29 13:14:15.12+00'",
    "tt_0": "timestamptz(0) DEFAULT '2024-02-29 13:14:15+00'",
    "tt_now": "timestamptz DEFAULT CURRENT_TIMESTAMP",
    "tt_3_now": "timestamptz(3) DEFAULT now()",
    "tt_clock": "timestamptz DEFAULT clock_timestamp()",
    "iv": "interval DEFAULT '1 year 2 mons 3 days 04:05:06.789'",
    "iv_neg": "interval DEFAULT '-1 day'",
    "iv_call": "interval DEFAULT make_interval(days => 10)",
    "uu": "uuid DEFAULT 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
    "uu_call": "uuid DEFAULT gen_random_uuid()",
    "js": "json DEFAULT '{\"b\": [1,  2]}'",
    "jb": "jsonb DEFAULT '{\"b\": [1,  2]}'",
    "jb_call": "jsonb DEFAULT jsonb_build_object('a', 1)",
    "xm": "xml DEFAULT as_xml('<a/>')",
    "b1": "bit(1) DEFAULT B'1'",
    "b5": "bit(5) DEFAULT B'10110'",
    "vb": "varbit DEFAULT B'1011'",
    "ine": "inet DEFAULT '10.0.0.1'",
    "oi": "oid DEFAULT 5",
    "en": "mood DEFAULT 'very sad'",
    "en_cast": "mood DEFAULT ('so,' || ' so')::mood",
    "dom": "small DEFAULT 3",
    "ia": "int[] DEFAULT '{1,2}'",
    "na": "name DEFAULT 'n'",
    "rng": "int4range DEFAULT '[1,5)'",
}

SETUP = (
    MOOD,
    AS_XML,
    "CREATE DOMAIN small AS integer",
)


LOOSE_ONLY = {"i_null", "nu_nan"}
"""Columns that can't be NOT NULL with these defaults; Debezium stops at NaN."""


def create(table: str, suffix: str) -> str:
    """Return the statement that creates a table with all defaults."""
    body = ", ".join(f"{name} {kind}{suffix}" for name, kind in COLUMNS.items() if not (suffix and name in LOOSE_ONLY))
    return f"CREATE TABLE {table} (id bigserial PRIMARY KEY, k text, {body})"


def nulls(table: str, key: int) -> str:
    """Return the statement that inserts a row of nulls."""
    names = [name for name in COLUMNS if name != "ser"]
    return f"INSERT INTO {table} (id, {', '.join(names)}) VALUES ({key}, {', '.join(['NULL'] * len(names))})"


STATEMENTS = (
    nulls("loose", 101),
    "UPDATE loose SET k = 'x' WHERE id = 101",
    "UPDATE loose SET id = 102 WHERE id = 101",
    "DELETE FROM loose WHERE id = 102",
    "DELETE FROM strict WHERE id = 1",
    "ALTER TABLE loose ALTER i SET DEFAULT 6, ALTER te DROP DEFAULT, ALTER jb SET DEFAULT '[]',"
    " ALTER k SET DEFAULT 'k'",
    nulls("loose", 103),
    "DELETE FROM loose WHERE id = 103",
)


def default_case(name: str, options: dict[str, str], schemas: bool = True) -> Case:
    setup = (
        *SETUP,
        create("loose", ""),
        create("strict", " NOT NULL"),
        nulls("loose", 1),
        "INSERT INTO strict (id) VALUES (1)",
        # What functions made differs from run to run.
        "UPDATE strict SET dp_random = 0, te_user = '', te_cast = '', da_today = 'epoch', da_now = 'epoch', "
        "ti_now = '0:0',"
        " ts_now = 'epoch', ts_local = 'epoch', ts_utc = 'epoch', tt_now = 'epoch', tt_3_now = 'epoch',"
        " tt_clock = 'epoch', uu_call = '00000000-0000-0000-0000-000000000001'",
    )
    return Case(name, setup, STATEMENTS, options, schemas)


CASES = (
    default_case("defaults", {}),
    default_case(
        "defaults_strings",
        {
            "decimal.handling.mode": "string",
            "time.precision.mode": "isostring",
            "interval.handling.mode": "string",
            "binary.handling.mode": "hex",
        },
    ),
    default_case(
        "defaults_connect",
        {"decimal.handling.mode": "double", "time.precision.mode": "connect", "binary.handling.mode": "base64"},
    ),
    default_case("defaults_nanoseconds", {"time.precision.mode": "nanoseconds"}, schemas=False),
)
