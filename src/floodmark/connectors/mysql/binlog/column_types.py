"""Numbers of column types in TABLE_MAP events.

Source: MySQL, ``include/field_types.h``; MariaDB, ``include/mysql_com.h``, for the compressed ones.
"""

from __future__ import annotations

DECIMAL, TINY, SHORT, LONG, FLOAT, DOUBLE, NULL, TIMESTAMP, LONGLONG, INT24, DATE, TIME, DATETIME, YEAR = range(14)
NEWDATE, VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2, TYPED_ARRAY = range(14, 21)
BLOB_COMPRESSED, VARCHAR_COMPRESSED = 140, 141
"""MariaDB's columns with the attribute COMPRESSED."""
VECTOR, JSON, NEWDECIMAL, ENUM, SET = 242, 245, 246, 247, 248
TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, VAR_STRING, STRING, GEOMETRY = range(249, 256)

BLOBS = frozenset((TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, GEOMETRY, JSON, VECTOR, BLOB_COMPRESSED))
"""Types whose metadata is the size of the length before each value, in bytes."""

METADATA_BYTES = {
    **dict.fromkeys((*BLOBS, FLOAT, DOUBLE, TIMESTAMP2, DATETIME2, TIME2), 1),
    **dict.fromkeys((VARCHAR, VAR_STRING, BIT, VARCHAR_COMPRESSED, STRING, NEWDECIMAL, ENUM, SET), 2),
}
"""Bytes of metadata per type in a TABLE_MAP event; the other types have none."""
