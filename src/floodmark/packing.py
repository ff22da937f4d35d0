"""Compresses long lists of tables for offsets: Spark keeps a hundred offsets, each several times."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from floodmark.json_data import Json, damaged_checkpoint

FEW = 100
"""Up to this many tables are stored as JSON that people can read."""
_LEVEL, _BEST_LEVEL = 9, 19


def table_number(database: str, table: str) -> int:
    """Return a stable 63-bit number for a table of MySQL or MariaDB, as the ids in their log keep changing."""
    digest = hashlib.blake2b(f"{database}\0{table}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def pack(data: Any, level: int = _LEVEL) -> str:
    """Return JSON data as compressed text: its size, and base 85 of zstd."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    compressed = pa.Codec("zstd", compression_level=level).compress(text, asbytes=True)
    return f"{len(text)}:{base64.b85encode(compressed).decode()}"


def unpack(packed: str) -> Any:
    """Return the JSON data that ``pack`` compressed.

    Raises:
        CheckpointError: the text is not what ``pack`` returned.
    """
    size, _, text = packed.partition(":")
    try:
        content = pa.Codec("zstd").decompress(base64.b85decode(text), int(size), asbytes=True)
        return json.loads(content.decode("utf-8", "surrogatepass"))
    except (ValueError, OSError, OverflowError, MemoryError, RecursionError) as exc:
        raise damaged_checkpoint(f"compressed data in it cannot be read ({exc})") from None


def pack_names(names: tuple[str, ...]) -> list[str] | str:
    """Return names of tables for an offset: a list of up to ``FEW`` names, else compressed text."""
    return list(names) if len(names) <= FEW else _packed_names(names)


def unpack_names(data: Json) -> tuple[str, ...]:
    """Return the names that were passed to ``pack_names``.

    Raises:
        CheckpointError: the data is not what ``pack_names`` returned.
    """
    return _unpacked_names(data) if isinstance(data, str) else _names(data)


# Almost all offsets of a query have the same names.
@lru_cache(maxsize=4)
def _packed_names(names: tuple[str, ...]) -> str:
    return pack(list(names), _BEST_LEVEL)


@lru_cache(maxsize=4)
def _unpacked_names(packed: str) -> tuple[str, ...]:
    return _names(unpack(packed))


def _names(data: Json) -> tuple[str, ...]:
    if not isinstance(data, list | tuple):
        raise damaged_checkpoint("it holds something else in place of a list of names")
    return tuple(_name(item) for item in data)


def _name(item: Json) -> str:
    if not isinstance(item, str):
        raise damaged_checkpoint(f"it holds {item!r} in place of a name")
    return item


def pack_numbers(tables: Iterable[tuple[str, int]]) -> list[int]:
    """Encode the numbers of tables as small numbers.

    A number that ``table_number`` returns for the table's name becomes 0, any other the difference from the previous
    one of these.

    Args:
        tables: full name (``<database or schema>.<table>``) and number of each.
    """
    result, before = [], 0
    for name, number in tables:
        if number == _number_of(name):
            result.append(0)
        else:
            result.append(number - before)
            before = number
    return result


def unpack_numbers(names: Iterable[str], numbers: Iterable[int]) -> list[int]:
    """Return the numbers that were passed to ``pack_numbers``."""
    result, before = [], 0
    for name, number in zip(names, numbers, strict=True):
        before += number
        result.append(before if number else _number_of(name))
    return result


def _number_of(name: str) -> int:
    database, _, table = name.partition(".")
    return table_number(database, table)
