"""The names of column types as ``DATA_TYPE`` has them, by kind."""

from __future__ import annotations

INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
TEXTS = ("tinytext", "text", "mediumtext", "longtext")
"""In order of size, like :data:`BLOBS`."""
BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
SIZED = frozenset({"char", "varchar", "binary", "varbinary"})
"""Types that are declared with a maximum length."""
NAMED = frozenset({"uuid", "inet4", "inet6"})
"""MariaDB's types whose values have a fixed width and a text form of their own."""
CHARACTERS = frozenset({"char", "varchar", "enum", "set", *TEXTS})
"""Types with a character set."""
TEMPORAL = frozenset({"time", "datetime", "timestamp"})
"""Types with fractions of seconds."""
GEOMETRIES = frozenset(
    {
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
        "geomcollection",
    }
)
