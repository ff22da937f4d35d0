"""Decodes logical decoding messages (``pg_logical_emit_message``) and makes their events.

Source: PostgreSQL documentation, "Logical Replication Message Formats", Message.
"""

from __future__ import annotations

import binascii
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import offsets_of, slices, strings
from floodmark.codecs.base64_text import encode_base64
from floodmark.config.model import matches
from floodmark.connectors.postgres.decode.records import Changes
from floodmark.connectors.postgres.decode.tuples import terminated
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.source_block import SCHEMA as SOURCE_SCHEMA
from floodmark.connectors.postgres.source_block import table_piece
from floodmark.connectors.postgres.wire.frames import be_view
from floodmark.connectors.postgres.wire.messages import MESSAGE_PREFIX, OWN_PREFIX
from floodmark.errors import DecodeError
from floodmark.events.connect_schema import (
    OPTIONAL_INT64,
    TRANSACTION_BLOCK,
    ConnectSchema,
    field_schema,
    schema_start,
    struct,
)
from floodmark.events.json_text import Fragment, Joiner, string, value_bytes
from floodmark.transforms.other_records import RecordKind

NO_TABLE = table_piece("", "")
_PACKAGE = "io.debezium.connector.postgresql"
_PREFIX = field_schema({"type": "string"}, True, "prefix")


@dataclass(frozen=True)
class LogicalMessages:
    """Logical decoding messages.

    Attributes:
        prefix: shape (messages,).
        content: shape (messages,).
    """

    prefix: pa.StringArray
    content: pa.BinaryArray

    @classmethod
    def of(cls, changes: Changes) -> LogicalMessages:
        """Return the messages of changes, all of which must be messages.

        Raises:
            DecodeError: a message is cut off.
        """
        payload = changes.payload
        prefix, end = terminated(payload, changes.at + MESSAGE_PREFIX)
        try:
            length = be_view(payload, ">u4")[end + 1].astype(np.int64)
        except IndexError:
            raise DecodeError("A logical decoding message is cut off.") from None
        if (end + 5 + length != changes.ends).any():
            raise DecodeError("A logical decoding message is not as long as it says.")
        return cls(prefix, slices(payload, end + 5, length, None).view(pa.binary()))

    def own(self) -> NDArray[np.bool_]:
        """Return which are Floodmark's own, shape (messages,)."""
        return np.asarray(pc.equal(self.prefix, OWN_PREFIX))

    def wanted(self, options: PostgresOptions) -> NDArray[np.bool_]:
        """Return which become events, shape (messages,)."""
        coded = self.prefix.dictionary_encode()
        known = np.array([_included(options, prefix) for prefix in coded.dictionary.to_pylist()], bool)
        wanted: NDArray[np.bool_] = known[np.asarray(coded.indices)]
        return wanted

    def take(self, index: NDArray[np.int64]) -> LogicalMessages:
        """Return some of them."""
        at = pa.array(index)
        return LogicalMessages(self.prefix.take(at), self.content.take(at))


def _included(options: PostgresOptions, prefix: str) -> bool:
    if prefix == OWN_PREFIX:
        return False
    if options.message_prefix_include_list:
        return matches(options.message_prefix_include_list, prefix)
    return not matches(options.message_prefix_exclude_list, prefix)


class MessageEvents:
    """Makes the events of logical decoding messages.

    Args:
        options: the source's options.
    """

    def __init__(self, options: PostgresOptions) -> None:
        self.topic = f"{options.topic_prefix}.message"
        self._mode = options.binary_handling_mode
        self.kind = RecordKind("logical decoding messages", _key_schema(), _value_schema(self._mode == "bytes"))
        self._key_start = self._value_start = self._end = ""
        if options.schemas_enable:
            self._key_start = schema_start(self.kind.key)
            self._value_start = schema_start(self.kind.value)
            self._end = "}"

    def columns(
        self,
        messages: LogicalMessages,
        source: list[str | pa.StringArray],
        transaction: list[str | pa.StringArray] | None,
    ) -> dict[str, pa.Array]:
        """Return the columns ``key`` and ``value``.

        Args:
            messages: the events' messages.
            source: pieces of the source block's text.
            transaction: pieces of the transaction block's text; None if there is none.
        """
        rows = len(messages.prefix)
        prefix = string(messages.prefix)
        key = Joiner().add(self._key_start).add_struct(["prefix"], [prefix]).add(self._end).join(rows)
        joiner = Joiner().add(self._value_start).add(f'{{"op":"m","ts_ms":{time.time_ns() // 1_000_000},"source":')
        for piece in [*source, ',"transaction":', *(transaction or ["null"]), ',"message":']:
            joiner.add(piece)
        joiner.add_struct(["prefix", "content"], [prefix, self._content(messages.content)])
        return {"key": key, "value": joiner.add("}").add(self._end).join(rows)}

    def _content(self, content: pa.BinaryArray) -> Fragment:
        if self._mode != "hex":
            return Fragment(encode_base64(content, self._mode == "base64-url-safe"), quoted=True)
        offsets = offsets_of(content)
        digits = binascii.hexlify(value_bytes(content).data)
        return Fragment(strings((offsets - offsets[0]) * 2, digits), quoted=True)


def _key_schema() -> ConnectSchema:
    return struct([_PREFIX], False, f"{_PACKAGE}.MessageKey", 1)


def _value_schema(as_bytes: bool) -> ConnectSchema:
    content = field_schema({"type": "bytes" if as_bytes else "string"}, True, "content")
    message = struct([_PREFIX, content], False, f"{_PACKAGE}.Message", 1)
    return struct(
        [
            field_schema({"type": "string"}, False, "op"),
            field_schema(OPTIONAL_INT64, True, "ts_ms"),
            field_schema(SOURCE_SCHEMA, False, "source"),
            field_schema(TRANSACTION_BLOCK, True, "transaction"),
            field_schema(message, False, "message"),
        ],
        False,
        f"{_PACKAGE}.MessageValue",
        1,
    )
