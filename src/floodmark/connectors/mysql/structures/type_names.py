"""The names of column types as ``DATA_TYPE`` has them, by kind."""

from __future__ import annotations

INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
TEXTS = ("tinytext", "text", "mediumtext", "longtext")
"""By size, as :data:`BLOBS` are."""
BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
SIZED = frozenset({"char", "varchar", "binary", "varbinary"})
"""Those that are declared with how long a value may be."""
NAMED = frozenset({"uuid", "inet4", "inet6"})
"""MariaDB's, whose values are numbers of fixed width with a text of their own."""
CHARACTERS = frozenset({"char", "varchar", "enum", "set", *TEXTS})
"""Those with a character set."""
TEMPORAL = frozenset({"time", "datetime", "timestamp"})
"""Those with fractions of seconds."""
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
