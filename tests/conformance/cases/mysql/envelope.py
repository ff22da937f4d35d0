"""Cases of the envelope, of operations and of what a stream holds beside rows."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import both

TABLES = (
    "CREATE TABLE `rows` (id int PRIMARY KEY, v varchar(20))",
    "CREATE TABLE other (id int PRIMARY KEY, v varchar(20))",
    "CREATE TABLE nokey (v varchar(20))",
    "CREATE TABLE nothing (id int PRIMARY KEY)",
    "INSERT INTO `rows` VALUES (1, 'snapshot'), (2, 'snapshot'), (3, NULL)",
    "INSERT INTO other VALUES (1, 'only')",
    "INSERT INTO nokey VALUES ('a'), ('b')",
)
OPERATIONS = (
    "INSERT INTO `rows` VALUES (4, 'a'), (5, 'b')",
    "UPDATE `rows` SET v = 'u' WHERE id = 4",
    "UPDATE `rows` SET id = 40 WHERE id = 4",
    "INSERT INTO nokey VALUES ('c')",
    "UPDATE nokey SET v = 'd' WHERE v = 'c'",
    "DELETE FROM nokey WHERE v = 'd'",
    "DELETE FROM `rows` WHERE id = 40",
    "BEGIN",
    "INSERT INTO `rows` VALUES (6, 'c')",
    "INSERT INTO other VALUES (2, 'c')",
    "UPDATE `rows` SET id = 7 WHERE id = 6",
    "UPDATE `rows` SET v = 'z'",
    "DELETE FROM `rows`",
    "COMMIT",
    "TRUNCATE other",
)

CASES: tuple[Case, ...] = (*both("operations", TABLES, OPERATIONS),)
