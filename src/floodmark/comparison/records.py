"""Records of a topic as what is compared of them: which change, what it says, and when it is delivered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.comparison.positions import CONNECTORS, NAMES, UNKNOWN, Order, Positions
from floodmark.errors import ComparisonError
from floodmark.transforms.structs import read_lines
from floodmark.verification.hashes import Hashes, column_hashes, row_hashes

Mask = NDArray[np.bool_]
PAYLOAD = ',"payload":'
"""What separates a schema from what it describes, in records of the JSON converter with schemas."""
_SCHEMA = '{"schema":'
_PROCESSED = r'(,"ts_(ms|us|ns)":\d+)+\}$'
"""When an event was processed, at its end."""
_SOURCE = r'"source":\{"version":"[^"]*","connector":"([^"]*)","name":"[^"]*"'
"""Where a source block names its version and the topics' prefix; quotes within values have a backslash."""
_SEQUENCE = r'"sequence":"\[[^,]*,'
"""The commit before a transaction, which a connector doesn't know at its start."""
_CONNECTOR = r'"source":\{"version":"[^"]*","connector":"(?P<connector>[^"]*)","name":"(?P<name>[^"]*)"'
NO_KEY = np.uint64(0)
_WITH_TOMBSTONE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Records:
    """Records of a topic, each array of shape (records,).

    Attributes:
        change: tells the change from others, by its place in the log, its key and its operation.
        content: a hash of what its events say, without what may differ.
        key: a hash of the key; ``NO_KEY`` without one.
        order: of its transaction among the others; ``UNKNOWN`` for what isn't an event of a row, ``UNSETTLED`` where
            ``settled`` finds it.
        transaction: the transaction's number; only where an order may be unsettled.
        is_read: whether a snapshot has read it.
        is_tombstone: whether it is one; then only the key counts.
        partition, offset: its place in the topic.
    """

    change: Hashes
    content: Hashes
    key: Hashes
    order: Order
    transaction: NDArray[np.int64]
    is_read: Mask
    is_tombstone: Mask
    partition: NDArray[np.int32]
    offset: NDArray[np.int64]

    @classmethod
    def concat(cls, parts: list[Records]) -> Records:
        """Return records together.

        Args:
            parts: at least one.
        """
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))

    def take(self, chosen: NDArray[np.int64] | Mask) -> Records:
        """Return some of the records."""
        return Records(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    @cached_property
    def is_change(self) -> Mask:
        """Whether each is an event of a change that comes from the log."""
        found: Mask = (self.order != UNKNOWN) & ~self.is_read
        return found

    def with_tombstones(self) -> Records:
        """Return the records with contents that say whether a tombstone follows: the next record of the key."""
        order = np.lexsort((self.offset, self.partition, self.key))
        key, partition = self.key[order], self.partition[order]
        followed = np.zeros(len(order), bool)
        same = (key[1:] == key[:-1]) & (partition[1:] == partition[:-1])
        followed[order[:-1]] = same & self.is_tombstone[order[1:]]
        content = np.where(followed, self.content ^ _WITH_TOMBSTONE, self.content)
        return Records(self.change, content, *(getattr(self, name) for name in [*self.__dataclass_fields__][2:]))


class Reading:
    """Makes `Records` of one topic's keys and values.

    Args:
        topic: its name, for errors.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.connector = ""
        self.positions: Positions | None = None
        self._prefix = ""

    def read(
        self, keys: pa.Array, values: pa.Array, partition: NDArray[np.int32], offset: NDArray[np.int64]
    ) -> Records:
        """Return records.

        Args:
            keys: binaries; null: a record has no key.
            values: binaries; null: a tombstone.
            partition: numbers, shape (records,).
            offset: the same.

        Raises:
            ComparisonError: they aren't JSON, or of a connector that isn't known.
        """
        try:
            texts, key = values.cast(pa.string()), _payload(keys.cast(pa.string()))[1]
        except pa.ArrowInvalid:
            raise self._not_json() from None
        tombstone = np.asarray(texts.is_null().to_numpy(zero_copy_only=False))
        schema, payload = _payload(texts.fill_null("null"))
        self._look_at(payload)
        rows = len(texts)
        order, transaction, read = np.full(rows, UNKNOWN, np.int64), np.zeros(rows, np.int64), np.zeros(rows, bool)
        columns: dict[str, pa.Array | pa.ChunkedArray] = {"key": key}
        if self.positions is not None:
            places = self._places(payload, self.positions)
            order = np.where(tombstone, UNKNOWN, self.positions.order(places))
            if self.positions.transaction is not None:
                transaction = pc.fill_null(places[self.positions.transaction], UNKNOWN).to_numpy()
            read = pc.fill_null(pc.equal(places["op"], "r"), False).to_numpy()
            columns |= {name: places[name] for name in ("op", *self.positions.fields)}
        found = pa.table(columns)
        content = pa.table({"schema": self._without_prefix(schema), "payload": _comparable(payload)})
        return Records(
            row_hashes(found, found.column_names),
            row_hashes(content, content.column_names),
            np.where(np.asarray(keys.is_null().to_numpy(zero_copy_only=False)), NO_KEY, column_hashes(found, "key")),
            order,
            transaction,
            read,
            tombstone,
            partition,
            offset,
        )

    def none(self) -> Records:
        """Return the records of an empty topic."""
        nothing = pa.array([], pa.binary())
        return self.read(nothing, nothing, np.zeros(0, np.int32), np.zeros(0, np.int64))

    def _look_at(self, payload: pa.StringArray) -> None:
        """Find which connector it is, by the first event that says so."""
        if self.positions is not None:
            return
        found = pc.extract_regex(payload, _CONNECTOR).drop_null()
        if not len(found):
            return
        first = found[0].as_py()
        if first["connector"] not in CONNECTORS:
            raise ComparisonError(
                f"The topic '{self._topic}' has events of the connector '{first['connector']}'.",
                f"Events of these can be compared: {', '.join(NAMES)}.",
            )
        self.connector, self._prefix = first["connector"], first["name"]
        self.positions = CONNECTORS[self.connector]

    def _places(self, payload: pa.StringArray, positions: Positions) -> pa.Table:
        """Return operations and the fields of source blocks, as columns."""
        source = pa.struct(list(positions.schema))
        objects = pc.if_else(pc.starts_with(payload, "{"), payload, "{}")
        lines = pc.binary_join_element_wise(objects, "\n", "")
        try:
            found = read_lines(lines, pa.schema([("op", pa.string()), ("source", source)]))
        except pa.ArrowInvalid:
            raise self._not_json() from None
        if found.num_rows != len(payload):
            raise self._not_json()
        blocks = found["source"].combine_chunks()
        names = [field.name for field in source]
        return pa.table({"op": found["op"], **{name: pc.struct_field(blocks, name) for name in names}})

    def _without_prefix(self, schema: pa.StringArray) -> pa.StringArray:
        """Return schemas whose names don't have the topics' prefix; there are few."""
        coded = schema.dictionary_encode()
        return pc.replace_substring(coded.dictionary, f'"{self._prefix}.', '".').take(coded.indices)

    def _not_json(self) -> ComparisonError:
        return ComparisonError(
            f"Records of the topic '{self._topic}' are not JSON.",
            "Let both write with org.apache.kafka.connect.json.JsonConverter, with or without schemas, to compare.",
        )


def _payload(texts: pa.StringArray) -> tuple[pa.StringArray, pa.StringArray]:
    """Return the schemas of texts, empty where there is none, and what they describe."""
    wrapped = pc.fill_null(pc.starts_with(texts, _SCHEMA), False)
    if not pc.any(wrapped).as_py():
        return pa.repeat(pa.scalar(""), len(texts)), texts
    parts = pc.split_pattern(texts, PAYLOAD, max_splits=1)
    wrapped = pc.and_(wrapped, pc.equal(pc.list_value_length(parts), 2))
    both = pc.filter(parts, wrapped)
    inner = pc.utf8_slice_codeunits(pc.list_element(both, 1), 0, -1)
    schemas = pc.replace_with_mask(pa.repeat(pa.scalar(""), len(texts)), wrapped, pc.list_element(both, 0))
    return schemas, pc.replace_with_mask(texts, wrapped, inner)


def _comparable(payload: pa.StringArray) -> pa.StringArray:
    """Return events without their source's version and name, when they were processed, and what came before."""
    without = pc.replace_substring_regex(payload, _PROCESSED, "}")
    without = pc.replace_substring_regex(without, _SOURCE, r'"source":{"connector":"\1"', max_replacements=1)
    return pc.replace_substring_regex(without, _SEQUENCE, '"sequence":"[', max_replacements=1)
