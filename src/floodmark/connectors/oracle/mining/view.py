"""The columns of ``V$LOGMNR_CONTENTS`` as they are fetched, and as the rest of the connector takes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.binary import encode_hex
from floodmark.connectors.oracle.mining.contents_query import COLUMNS, TRACKED

XID = "XID"
_NUMBERS = frozenset(
    (
        *("SCN", "OPERATION_CODE", "CSF", "ROLLBACK", "STATUS", "SSN", "THREAD#", "DATA_OBJ#", "DATA_OBJV#"),
        *("DATA_OBJD#", "START_SCN", "COMMIT_SCN", "SEQUENCE#"),
    )
)
_TIMES = frozenset(("TIMESTAMP", "START_TIMESTAMP", "COMMIT_TIMESTAMP"))


def _type(name: str) -> pa.DataType:
    if name in _NUMBERS:
        return pa.int64()
    if name in _TIMES:
        return pa.timestamp("s")
    return pa.binary() if name == XID else pa.string()


def _fields(names: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, _type(name)) for name in names])


FETCHED = _fields([*COLUMNS, *TRACKED])
"""What the driver is asked for: change numbers have more digits than its own choice, a double, can hold."""
ROWS = FETCHED.set(FETCHED.get_field_index(XID), pa.field(XID, pa.string()))
"""The rows of the view, with identifiers of transactions as hexadecimal digits."""


def rows_of_the_view(fetched: pa.Table, utc_offset_s: int = 0) -> pa.Table:
    """Return fetched rows with the columns of ``ROWS``, of one chunk each, and times in UTC.

    Args:
        fetched: with the columns of ``FETCHED``.
        utc_offset_s: how many seconds the database's clock is ahead of UTC.
    """
    columns = [_column(_one(fetched[field.name]), field, utc_offset_s) for field in ROWS]
    return pa.table(columns, schema=ROWS)


def _column(values: pa.Array, field: pa.Field, utc_offset_s: int) -> pa.Array:
    if field.name == XID:
        return encode_hex(values)
    if field.name in _TIMES and utc_offset_s:
        return pc.subtract(values, pa.scalar(utc_offset_s, pa.duration("s"))).cast(field.type)
    return values.cast(field.type)


def _one(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
