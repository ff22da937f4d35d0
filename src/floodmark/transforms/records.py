"""Records in the form that transforms take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import valid
from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment, Text
from floodmark.transforms.structs import NULL, Plain, Struct, Values, complete, taken

Part: TypeAlias = Struct | Plain
"""The keys or the values of some records."""


@dataclass(frozen=True)
class Header:
    """A header that records have.

    Attributes:
        name: its name.
        schema: its Connect schema.
        values: JSON of each record's, or of all.
    """

    name: str
    schema: ConnectSchema
    values: Values


@dataclass(frozen=True)
class Records:
    """Records of one kind; rows are of one version of a table.

    Attributes:
        origin: what they are, in words: ``rows of <schema>.<table>``, ``heartbeats``.
        rows: how many.
        topic: where they go.
        key: None: they have none.
        value: None: they are tombstones.
        headers: in their order.
        index: their numbers among the records that the transforms were given, shape (rows,).
        deleted: with tombstones, the values of the deletes that they follow.
        partition: their partitions in Kafka, int32, shape (rows,); None: a transform hasn't decided on them.
    """

    origin: str
    rows: int
    topic: Text
    key: Part | None
    value: Part | None
    headers: tuple[Header, ...]
    index: NDArray[np.int64]
    deleted: Struct | None = None
    partition: pa.Int32Array | None = None

    def take(self, at: NDArray[np.int64]) -> Records:
        """Return some of the records."""
        return replace(
            self,
            rows=len(at),
            topic=self.topic if isinstance(self.topic, str) else self.topic.take(pa.array(at)),
            key=None if self.key is None else self.key.take(at),
            value=None if self.value is None else self.value.take(at),
            headers=tuple(replace(header, values=taken(header.values, at)) for header in self.headers),
            index=self.index[at],
            deleted=None if self.deleted is None else self.deleted.take(at),
            partition=None if self.partition is None else self.partition.take(pa.array(at)),
        )

    def with_topics(self, rename: Callable[[str], str]) -> Records:
        """Return the records with other topics.

        Args:
            rename: returns the new name of a topic.
        """
        if isinstance(self.topic, str):
            return replace(self, topic=rename(self.topic))
        coded = self.topic.dictionary_encode()
        renamed = [rename(topic) for topic in coded.dictionary.to_pylist()]
        return replace(self, topic=pa.array(renamed, pa.string()).take(coded.indices))

    def header(self, name: str) -> Header | None:
        """Return the first header of a name; None if there is none."""
        return next((header for header in self.headers if header.name == name), None)


def is_null(part: Part | None) -> bool:
    """Return whether the keys or values of all records are null."""
    return part is None or (part.values is None if isinstance(part, Struct) else part.values == NULL)


def nulls(part: Part | None, rows: int) -> NDArray[np.bool_]:
    """Return which records' key or value is null, shape (rows,)."""
    if isinstance(part, Plain) and isinstance(part.values, Fragment):
        return ~valid(part.values.text)
    return np.full(rows, is_null(part))


def is_envelope(part: Part | None) -> bool:
    """Return whether values are Debezium's envelopes of rows."""
    return isinstance(part, Struct) and str(part.schema.get("name", "")).endswith(".Envelope")


def by_text(records: Records, values: Values) -> list[tuple[str | None, Records]]:
    """Return records in groups of those with the same value, with its JSON; None for null.

    Args:
        records: what to group.
        values: a value of each of them, or of all.
    """
    if isinstance(values, str):
        return [(values, records)]
    coded = complete(values, records.rows).dictionary_encode()
    texts = [None if text == NULL else text for text in coded.dictionary.to_pylist()]
    return [(texts[number], part) for number, part in _parts(records, coded.indices)]


def by_topic(records: Records) -> list[tuple[str, Records]]:
    """Return records in groups of those with the same topic, with that."""
    if isinstance(records.topic, str):
        return [(records.topic, records)]
    coded = records.topic.dictionary_encode()
    topics = coded.dictionary.to_pylist()
    parts = _parts(records, coded.indices)
    return [(topics[number], replace(part, topic=topics[number])) for number, part in parts]


def _parts(records: Records, codes: pa.Array) -> list[tuple[int, Records]]:
    """Return records in groups of those with the same code, with that, shape (rows,)."""
    code = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(code, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(code[order])) + 1)
    return [(int(code[group[0]]), records if len(groups) == 1 else records.take(group)) for group in groups]
