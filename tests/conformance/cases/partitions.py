"""Cases of the transform that decides on partitions."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.routing import chained
from tests.conformance.cases.transforms import EVERY_OPERATION, EXTRACT

ROUTING = "io.debezium.transforms.partitions.PartitionRouting"
COLUMNS = {
    "s": ("smallint", "-7", "32767", "0"),
    "l": ("bigint", "-9223372036854775808", "4294967296", "-1"),
    "t": ("text", "'a \"é\" 😀'", "''", "'some longer text, of more than thirty-two bytes: é😀'"),
    "c": ("varchar(40) DEFAULT 'default'", "'sixteen bytes !!'", "NULL", "'x'"),
    "b": ("boolean", "true", "false", "true"),
    "d": ("double precision", "1.5", "'NaN'", "-0.0"),
    "r": ("real", "0.1", "'-Infinity'", "3.4e38"),
    "n": ("numeric(12,2)", "-12.50", "0", "9999999999.99"),
    "w": ("numeric(38,3)", "-12345678901234567890123456789.123", "1", "18446744073709551.616"),
    "x": ("bytea", "'\\x00ff7f80'", "'\\x'", "'\\x0102030405060708090a0b0c0d0e0f1011ff'"),
    "u": ("uuid", "'123e4567-e89b-12d3-a456-426614174000'", "NULL", "'00000000-0000-0000-0000-000000000000'"),
    "da": ("date", "'2026-01-02'", "'1969-12-31'", "NULL"),
    "ts": ("timestamp(3)", "'2026-01-02 03:04:05.678'", "'1969-12-31'", "NULL"),
}
TYPED = (
    *(f"CREATE TABLE typed_{name} (id integer PRIMARY KEY, v {one[0]})" for name, one in COLUMNS.items()),
    *(f"ALTER TABLE typed_{name} REPLICA IDENTITY FULL" for name in COLUMNS),
)
VALUES = (
    *(
        f"INSERT INTO typed_{name} VALUES {', '.join(f'({row}, {one[row]})' for row in range(1, 4))}"
        for name, one in COLUMNS.items()
    ),
    *(f"INSERT INTO typed_{name} (id) VALUES (4)" for name in COLUMNS),
    *(f"DELETE FROM typed_{name} WHERE id < 3" for name in COLUMNS),
)
TABLES = (
    "CREATE TABLE routed (id integer PRIMARY KEY, t text)",
    "CREATE TABLE other (id integer PRIMARY KEY)",
    "INSERT INTO routed (id, t) VALUES (1, 'snapshot')",
)
STATEMENTS = (
    "INSERT INTO routed VALUES (2, 'a'), (3, NULL), (4, 'é😀')",
    "UPDATE routed SET id = -id, t = t || 'x' WHERE id < 4",
    "DELETE FROM routed",
    "INSERT INTO other VALUES (1)",
    "TRUNCATE routed",
)


def partitioned(
    name: str,
    fields: str,
    options: dict[str, str] | None = None,
    partitions: int = 999_983,
    others: dict[str, str] | None = None,
    typed: bool = False,
) -> Case:
    """Return a case of the transform.

    Args:
        name: behind ``partition_``.
        fields: those that decide.
        options: the transform's others.
        partitions: how many a topic has; many show what the hashes are.
        others: further options.
        typed: whether the tables have columns of many types.
    """
    own = {"partition.payload.fields": fields, "partition.topic.num": str(partitions), **(options or {})}
    given = {**EVERY_OPERATION, **chained(place={"type": ROUTING, **own}), **(others or {})}
    tables, statements = (TYPED, VALUES) if typed else (TABLES, STATEMENTS)
    return Case(f"partition_{name}", tables, statements, given)


MURMUR = {"partition.hash.function": "murmur"}
CASES = (
    partitioned("java", "change.v", typed=True),
    partitioned("murmur", "change.v", MURMUR, typed=True),
    partitioned("connect", "change.v", others={"time.precision.mode": "connect"}, typed=True),
    partitioned("several", "change.id, source.table ,op,change.missing,missing.id,change.t", partitions=7),
    partitioned("source", "source.schema,op", MURMUR, partitions=3),
    partitioned(
        "unwrapped",
        "change.id",
        partitions=5,
        others={
            "transforms": "place,unwrap",
            "transforms.unwrap.type": EXTRACT,
            "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
        },
    ),
)
