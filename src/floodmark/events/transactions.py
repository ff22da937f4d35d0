"""Makes events of the transaction topic, and orders entries that Debezium keeps in a hash map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.config.common import CommonOptions
from floodmark.events.connect_schema import OPTIONAL_INT64, field_schema, schema_start, struct
from floodmark.events.json_text import Joiner

_PACKAGE = "io.debezium.connector.common"
_STRING = {"type": "string"}
_INT64 = {"type": "int64"}
_ID = field_schema(_STRING, False, "id")
KEY_SCHEMA = struct([_ID], False, f"{_PACKAGE}.TransactionMetadataKey", 1)
COLLECTION = struct(
    [field_schema(_STRING, False, "data_collection"), field_schema(_INT64, False, "event_count")],
    True,
    "event.collection",
    1,
)
VALUE_SCHEMA = struct(
    [
        field_schema(_STRING, False, "status"),
        _ID,
        field_schema(OPTIONAL_INT64, True, "event_count"),
        field_schema({"type": "array", "items": COLLECTION}, True, "data_collections"),
        field_schema(_INT64, False, "ts_ms"),
    ],
    False,
    f"{_PACKAGE}.TransactionMetadataValue",
    1,
)

_SMALLEST_MAP = 16


class TransactionTopic:
    """Makes the keys and values of the transaction topic.

    Args:
        options: the source's options.
    """

    def __init__(self, options: CommonOptions) -> None:
        self.topic = options.transaction_topic
        self._key_start = self._value_start = self._end = ""
        if options.schemas_enable:
            self._key_start = schema_start(KEY_SCHEMA)
            self._value_start = schema_start(VALUE_SCHEMA)
            self._end = "}"

    def columns(self, ids: pa.StringArray, values: pa.StringArray) -> dict[str, str | pa.Array]:
        """Return the columns ``topic``, ``key`` and ``value``.

        Args:
            ids: the transactions' ids, as JSON, shape (events,).
            values: the values without their schema.
        """
        rows = len(ids)
        return {
            "topic": self.topic,
            "key": Joiner().add(f'{self._key_start}{{"id":').add(ids).add(f"}}{self._end}").join(rows),
            "value": Joiner().add(self._value_start).add(values).add(self._end).join(rows),
        }


def hash_map_order(group: NDArray[np.int64], name: NDArray[np.int64], names: Sequence[str]) -> NDArray[np.int64]:
    """Return the order in which Java would list each group's names, if each group were a hash map of its own.

    Args:
        group: ascending, shape (entries,).
        name: index into ``names``; in a group each name comes once, in the order of insertion.
        names: the texts.
    """
    hashes = np.array([_spread_hash(text) for text in names], np.int64)
    sizes = np.bincount(group) if len(group) else np.zeros(0, np.int64)
    capacity = np.full(len(sizes), _SMALLEST_MAP, np.int64)
    # Java doubles a map's capacity when it is more than three quarters full.
    while (small := sizes * 4 > capacity * 3).any():
        capacity[small] *= 2
    bucket = hashes[name] & (capacity[group] - 1)
    return np.lexsort((np.arange(len(group)), bucket, group))


def _spread_hash(text: str) -> int:
    """Return ``String.hashCode`` as ``HashMap`` spreads it."""
    value = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value ^ value >> 16
