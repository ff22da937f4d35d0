"""Cases of filters, masks, propagated types, defaults and names."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import both

COLUMNS = (
    "CREATE TABLE cols (id int PRIMARY KEY, c char(10), vc varchar(30), t text, l varchar(30) CHARACTER SET latin1, "
    "b varbinary(20), bl blob, e enum('a','b'), s set('a','b'), j json, i int unsigned, d decimal(8,2), "
    "dt datetime(3), ts timestamp(3) NULL, ti time, y year, bi bit(9), f float, db double(9,3), lt longtext)",
    "INSERT INTO cols VALUES (1, 'char', 'véry long 😀 text', 'text', 'latin é', x'00ff10fb', x'0102030405', 'a', "
    "'a,b', '{\"k\": 1}', 7, 1.50, '2024-02-29 10:00:00.5', '2024-02-29 10:00:00.5', '10:00:00', 2024, 257, "
    "1.5, 2.5, 'long')",
    "INSERT INTO cols (id) VALUES (2)",
    "INSERT INTO cols (id, c, vc, t) VALUES (3, '', '', '')",
)
CHANGES = (
    "INSERT INTO cols SELECT id + 10, c, vc, t, l, b, bl, e, s, j, i, d, dt, ts, ti, y, bi, f, db, lt FROM cols",
    "UPDATE cols SET vc = CONCAT(COALESCE(vc, ''), '!') WHERE id IN (11, 12)",
    "UPDATE cols SET i = 8 WHERE id = 11",
    "DELETE FROM cols WHERE id = 11",
)
DEFAULTS = (
    "CREATE TABLE defaults (id int PRIMARY KEY, i int DEFAULT 5, iu int unsigned NOT NULL DEFAULT 4294967295, "
    "bu bigint unsigned DEFAULT 18446744073709551615, d decimal(8,2) DEFAULT 1.5, f float DEFAULT 1.5, "
    "db double NOT NULL DEFAULT 2.5, b bit DEFAULT b'1', b9 bit(9) DEFAULT b'100000001', bo boolean DEFAULT TRUE, "
    "c char(5) DEFAULT 'ab', vc varchar(20) NOT NULL DEFAULT 'it''s \"é\"', e varchar(5) DEFAULT '', "
    "en enum('a','b') DEFAULT 'b', s set('a','b') DEFAULT 'a,b', da date DEFAULT '2024-02-29', "
    "dt datetime(3) DEFAULT '2024-02-29 10:00:00.5', ts timestamp NULL DEFAULT '2024-02-29 10:00:00', "
    "now timestamp(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), ti time DEFAULT '10:00:00', "
    "y year DEFAULT 2024, vb varbinary(5) DEFAULT 'ab', n int DEFAULT NULL, x int DEFAULT (1 + 2), "
    "t text DEFAULT ('expr'), neg int DEFAULT -5, z int(5) zerofill DEFAULT 7)",
    "INSERT INTO defaults (id, now) VALUES (1, NULL)",
    "INSERT INTO defaults VALUES (2, NULL, 1, NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL, 'x', NULL, NULL, NULL, "
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
)
DEFAULT_CHANGES = (
    "INSERT INTO defaults (id, now) VALUES (3, NULL)",
    "INSERT INTO defaults VALUES (4, NULL, 1, NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL, 'x', NULL, NULL, NULL, "
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "ALTER TABLE defaults ADD late varchar(5) NOT NULL DEFAULT 'late', ADD lated datetime DEFAULT '2000-01-01'",
    "INSERT INTO defaults (id, now) VALUES (5, NULL)",
    "DELETE FROM defaults WHERE id = 1",
)
NAMES = (
    "CREATE TABLE `odd name` (id int PRIMARY KEY, `a b` int, `c-d` int, `1st` int, `é` int, `q``q` int, `Upper` int)",
    "CREATE TABLE `dash-ed.dot` (id int PRIMARY KEY, v int)",
    "CREATE TABLE `täble漢` (id int PRIMARY KEY)",
    "CREATE TABLE `Mixed` (`Id` int PRIMARY KEY)",
    "INSERT INTO `odd name` VALUES (1, 1, 1, 1, 1, 1, 1)",
    "INSERT INTO `dash-ed.dot` VALUES (1, 1)",
    "INSERT INTO `täble漢` VALUES (1)",
    "INSERT INTO `Mixed` VALUES (1)",
)
NAME_CHANGES = (
    "UPDATE `odd name` SET `a b` = 2",
    "UPDATE `dash-ed.dot` SET v = 2",
    "DELETE FROM `täble漢`",
    "UPDATE `Mixed` SET `Id` = 2",
)

NOTED = (
    "CREATE TABLE noted (id int PRIMARY KEY COMMENT 'the key', a varchar(5) COMMENT 'it has \"marks\" and é', "
    "b int DEFAULT 4, c decimal(6,2) COMMENT '') COMMENT 'its comment'",
    "INSERT INTO noted VALUES (1, 'a', 1, 1.5)",
)
NOTED_CHANGES = (
    "INSERT INTO noted VALUES (2, 'a', 1, 1.5)",
    "ALTER TABLE noted ADD d int COMMENT 'later'",
    "INSERT INTO noted VALUES (3, 'a', 1, 1.5, 7)",
)


def columns(name: str, options: dict[str, str], schemas: bool = False) -> tuple[Case, ...]:
    return both(name, COLUMNS, CHANGES, options, schemas)


CASES: tuple[Case, ...] = (
    *columns("column_exclude", {"column.exclude.list": r".*\.cols\.(c|vc|j|i|d)"}),
    *columns("column_include", {"column.include.list": r".*\.cols\.(id|vc|b|ts)"}, schemas=True),
    *columns("mask", {"column.mask.with.5.chars": r".*\.cols\..*[^d]"}, schemas=True),
    *columns("mask_none", {"column.mask.with.0.chars": r".*\.cols\.(vc|t|e|j)"}),
    *columns("hash", {"column.mask.hash.SHA-256.with.salt.pepper": r".*\.cols\.(c|vc|t|l|lt)"}),
    *columns("hash_v2", {"column.mask.hash.v2.MD5.with.salt.pepper": r".*\.cols\.(c|vc|t|l|lt)"}, schemas=True),
    *columns("truncate", {"column.truncate.to.4.chars": r".*\.cols\..*"}, schemas=True),
    *columns("propagate_columns", {"column.propagate.source.type": r".*\.cols\..*"}, schemas=True),
    *columns(
        "propagate_types", {"datatype.propagate.source.type": r".*\.(VARCHAR|INT UNSIGNED|DECIMAL)"}, schemas=True
    ),
    *both(
        "propagate_comments",
        NOTED,
        NOTED_CHANGES,
        {
            "include.schema.changes": "true",
            "include.schema.comments": "true",
            "column.propagate.source.type": r".*\.(id|a|c|d)",
        },
        schemas=True,
    ),
    *both("defaults", DEFAULTS, DEFAULT_CHANGES, schemas=True),
    *both(
        "defaults_modes",
        DEFAULTS,
        DEFAULT_CHANGES,
        {
            "decimal.handling.mode": "string",
            "time.precision.mode": "connect",
            "bigint.unsigned.handling.mode": "precise",
            "binary.handling.mode": "base64",
        },
        schemas=True,
    ),
    *both("names", NAMES, NAME_CHANGES),
    *both(
        "names_avro",
        NAMES,
        NAME_CHANGES,
        {"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"},
        schemas=True,
    ),
    *both(
        "names_unicode",
        NAMES,
        NAME_CHANGES,
        {"schema.name.adjustment.mode": "avro_unicode", "field.name.adjustment.mode": "avro_unicode"},
        schemas=True,
    ),
    *both(
        "topic_regex",
        (NAMES[0], NAMES[3], NAMES[4], NAMES[7]),
        NAME_CHANGES[:1],
        {
            "topic.naming.strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy",
            "topic.regex": "(.*)(odd|Mixed)(.*)",
            "topic.replacement": "$1all",
        },
        schemas=True,
    ),
)
