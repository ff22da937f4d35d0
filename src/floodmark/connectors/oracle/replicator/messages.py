"""Reads the protocol buffers that the server streams, many at once, as what its JSON documents say.

Each is a ``RedoResponse`` of its ``OraProtoBuf.proto``: the head is its own fields, and each entry a ``Payload``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import slices
from floodmark.codecs.binary import encode_hex
from floodmark.connectors.oracle.values.protocol_buffers import Fields, Numbers, read_fields

_SCN, _TIME, _XID, _DATABASE, _PAYLOAD, _C_SCN, _C_IDX = 2, 4, 6, 8, 9, 10, 11
_OPERATION, _SCHEMA, _ROW_ID, _STATEMENT, _NUMBER = 1, 2, 3, 6, 10
_OWNER, _TABLE = 1, 2
_OPERATIONS = ("begin", "commit", "c", "u", "d", "ddl", "chkpt")
_CODE = b"\x08\x05"
"""With what each begins: the code ``PAYLOAD``."""


def is_message(message: bytes) -> bool:
    """Return whether a message of the stream is a protocol buffer with what was changed."""
    return message.startswith(_CODE)


class Messages:
    """Messages of the stream.

    Args:
        messages: at least one.
        columns: of the heads.

    Attributes:
        heads: a row for each.

    Raises:
        DecodeError: they aren't protocol buffers.
    """

    def __init__(self, messages: Sequence[bytes], columns: pa.Schema) -> None:
        data = np.frombuffer(b"".join(messages), np.uint8)
        ends = np.fromiter(accumulate(map(len, messages)), np.int64, len(messages))
        fields = read_fields(data, np.concatenate(([0], ends[:-1])), ends)
        self._fields, self._entries = fields, fields.places(_PAYLOAD)
        known = {
            "scn": fields.numbers(_SCN),
            "c_scn": fields.numbers(_C_SCN),
            "c_idx": fields.numbers(_C_IDX),
            "tm": fields.numbers(_TIME),
            "xid": fields.texts(_XID),
            "db": fields.texts(_DATABASE),
            "payload": _payloads(fields, columns.field("payload").type),
        }
        rows = [known.get(one.name, pa.nulls(len(messages), one.type)) for one in columns]
        self.heads = pa.record_batch(rows, schema=columns)

    def texts(self, chosen: Numbers) -> pa.StringArray:
        """Return some of the entries, in hexadecimal digits."""
        places = self._entries[chosen]
        lengths = self._fields.value[places].view(np.int64)
        return encode_hex(slices(self._fields.data, self._fields.begin[places], lengths, None).view(pa.binary()))


def _payloads(fields: Fields, kind: pa.ListType) -> pa.ListArray:
    """Return the entries of each message."""
    entries = fields.within(_PAYLOAD)
    operation = _names(entries.numbers(_OPERATION).fill_null(0))
    schemas = entries.within(_SCHEMA)
    owner_of = np.full(entries.count, -1, np.int64)
    owner_of[entries.message[entries.places(_SCHEMA)]] = np.arange(schemas.count)
    of = pa.array(owner_of, mask=owner_of < 0)
    known = {
        "op": operation,
        "schema": pa.StructArray.from_arrays(
            [schemas.texts(_OWNER).take(of), schemas.texts(_TABLE).take(of)], fields=list(_field(kind, "schema").type)
        ),
        "rid": entries.texts(_ROW_ID),
        # What is 0 isn't written, as the first change's number; statements have none.
        "num": pc.if_else(pc.equal(operation, "ddl"), None, entries.numbers(_NUMBER).fill_null(0)),
        "sql": entries.texts(_STATEMENT),
    }
    rows = pa.StructArray.from_arrays([known[one.name] for one in kind.value_type], fields=list(kind.value_type))
    counts = np.bincount(fields.message[fields.places(_PAYLOAD)], minlength=fields.count)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), rows)


def _names(operations: pa.Int64Array) -> pa.StringArray:
    """Return the names that operations have in documents; what isn't known has its number."""
    known = np.minimum(operations.to_numpy().view(np.uint64), np.uint64(len(_OPERATIONS))).astype(np.int64)
    names = pa.array([*_OPERATIONS, None], pa.string()).take(pa.array(known))
    return pc.coalesce(names, operations.cast(pa.string()))


def _field(kind: pa.ListType, name: str) -> pa.Field:
    return kind.value_type.field(name)
