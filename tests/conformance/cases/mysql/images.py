"""Cases of what the log holds: row images, metadata, checksums, compression."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import both

TABLES = (
    "CREATE TABLE wide (id int PRIMARY KEY, v varchar(20) NOT NULL DEFAULT 'none', t text, b blob, j json, "
    "n int, d decimal(8,2) NOT NULL, dt datetime(3), e enum('a','b'), g point, bi bit(9))",
    "INSERT INTO wide VALUES (1, 'one', 'text', x'00ff', '{\"k\": 1, \"l\": [1, 2]}', 5, 1.50, '2024-02-29 10:00:00', "
    "'a', ST_GeomFromText('POINT(1 2)'), 257)",
    "CREATE TABLE nokey (a int, v varchar(20), t text)",
    "INSERT INTO nokey VALUES (1, 'one', 'text')",
    "CREATE TABLE by_unique (a int NOT NULL UNIQUE, v varchar(20), t text)",
    "INSERT INTO by_unique VALUES (1, 'one', 'text')",
)
CHANGES = (
    "INSERT INTO wide VALUES (2, 'two', 'text', x'00ff', '{\"k\": 2, \"l\": [1]}', 5, 1.50, '2024-02-29 10:00:00', "
    "'b', NULL, 1)",
    "INSERT INTO wide (id, d) VALUES (3, 1)",
    "UPDATE wide SET n = 6 WHERE id = 1",
    "UPDATE wide SET t = 'other' WHERE id = 1",
    "UPDATE wide SET b = x'01', v = 'eins' WHERE id = 1",
    "UPDATE wide SET id = 10 WHERE id = 1",
    "UPDATE wide SET t = NULL WHERE id = 2",
    "DELETE FROM wide WHERE id = 2",
    "UPDATE nokey SET a = 2",
    "UPDATE nokey SET t = 'other'",
    "DELETE FROM nokey",
    "UPDATE by_unique SET v = 'two'",
    "UPDATE by_unique SET a = 2",
    "DELETE FROM by_unique",
)
MANY = (
    "CREATE TABLE many (id int PRIMARY KEY, v varchar(200), w int unsigned)",
    "INSERT INTO many VALUES (0, 'snapshot', 0)",
)
BULK = (
    f"INSERT INTO many VALUES {', '.join(f'({n}, REPEAT({n}, 30), 4294967295)' for n in range(1, 30))}",
    "UPDATE many SET v = CONCAT(v, 'é') WHERE id BETWEEN 5 AND 15",
    "BEGIN",
    "DELETE FROM many WHERE id > 20",
    "INSERT INTO many VALUES (100, REPEAT('long', 50), 1)",
    "UPDATE many SET id = 101 WHERE id = 100",
    "COMMIT",
)
METADATA = {"provide.transaction.metadata": "true"}


CASES: tuple[Case, ...] = (
    *both("image_full", TABLES, CHANGES),
    *both("metadata_full", TABLES, CHANGES, settings={"binlog_row_metadata": "FULL"}),
    *both("compressed", MANY, BULK, METADATA, settings={"binlog_transaction_compression": "ON"}, flavors=("mysql",)),
    *both("many_rows", MANY, BULK, METADATA),
    *both("checksum_none", MANY, BULK, settings={"binlog_checksum": "NONE"}),
)
