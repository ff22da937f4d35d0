"""Debezium's offsets: which one belongs to a connector, and its fields.

Kafka Connect stores the offset of each partition of a source as a pair of JSON texts without schemas. The key is
``["<connector's name>", {"server": "<topic.prefix>"}]``, the value an object, or null for one that was removed.

Source: Kafka Connect's ``OffsetStorageWriter``; Debezium's ``AbstractPartition`` and the connectors' ``Partition``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from floodmark.errors import OffsetError
from floodmark.json_data import Json

STORE_CURE = "Give the offset store of the connector, after it was stopped."


@dataclass(frozen=True)
class StoredOffset:
    """A connector's offset.

    Attributes:
        name: the connector's name.
        partition: what it distinguishes sources by, ``server`` at least.
        fields: where the connector is.
    """

    name: str
    partition: dict[str, Json]
    fields: dict[str, Json]

    @property
    def server(self) -> str:
        """The connector's ``topic.prefix``."""
        return str(self.partition.get("server", ""))

    @property
    def key(self) -> bytes:
        """The key that Kafka Connect gives it."""
        return json.dumps([self.name, self.partition], separators=(",", ":"), ensure_ascii=False).encode()

    @property
    def value(self) -> bytes:
        """The value that Kafka Connect gives it."""
        return json.dumps(self.fields, separators=(",", ":"), ensure_ascii=False).encode()


class OffsetStore(Protocol):
    """Where a connector keeps its offsets."""

    @property
    def place(self) -> str:
        """Names it in texts, such as ``the file /data/offsets.dat``."""

    def read(self) -> Mapping[bytes, bytes | None]:
        """Return all values by their keys; None: the value was removed.

        Raises:
            OffsetError: it can't be read, or holds something else.
        """

    def write(self, key: bytes, value: bytes) -> str:
        """Set one value, and keep the others.

        Returns:
            Where the former content was copied to; empty if the store itself keeps it, or there was none.

        Raises:
            OffsetError: it can't be written.
        """


def find_offset(store: OffsetStore, server: str, name: str | None = None) -> StoredOffset:
    """Return the offset of a source.

    Args:
        store: where it is.
        server: the option ``topic.prefix``.
        name: the connector's name; None: any.

    Raises:
        OffsetError: there is none, or more than one.
    """
    found = stored_offsets(store)
    ours = [one for one in found if one.server == server and name in (None, one.name)]
    if len(ours) == 1:
        return ours[0]
    shown = "; ".join(f"connector '{one.name}', topic.prefix '{one.server}'" for one in ours or found)
    wanted = f"topic.prefix '{server}'" + ("" if name is None else f" and the name '{name}'")
    if ours:
        raise OffsetError(
            f"There is more than one offset with {wanted} in {store.place}: {shown}.",
            "Give the connector's name with --connector-name.",
        )
    holds = f"It holds: {shown}." if found else "It holds none at all."
    raise OffsetError(f"There is no offset with {wanted} in {store.place}. {holds}", STORE_CURE)


def stored_offsets(store: OffsetStore) -> list[StoredOffset]:
    """Return all offsets of Debezium's connectors in a store; those of other kinds of connectors are left out.

    Raises:
        OffsetError: the store can't be read, or is damaged.
    """
    found = []
    for key, value in store.read().items():
        if value is None:
            continue
        match _loaded(store, key):
            case [str(name), Mapping() as partition] if "server" in partition:
                fields = _loaded(store, value)
                if isinstance(fields, Mapping):
                    found.append(StoredOffset(name, dict(partition), dict(fields)))
                elif fields is not None:
                    raise _damaged(store, f"the offset of '{name}' is not an object")
    return sorted(found, key=lambda one: (one.name, one.server))


def _loaded(store: OffsetStore, text: bytes) -> Json:
    try:
        found: Json = json.loads(text)
    except ValueError:
        raise _damaged(store, "a key or value of it is not JSON") from None
    return found


def _damaged(store: OffsetStore, problem: str) -> OffsetError:
    return OffsetError(f"The offsets in {store.place} cannot be used: {problem}.", STORE_CURE)
