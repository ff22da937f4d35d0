"""What Debezium's offset says of an incremental snapshot that isn't finished.

The tables that are left are a JSON text, the one being read first. The key that was delivered last, and the highest
one, are an ``Object[]`` in Java's serialization, as hexadecimal digits.

Source: Debezium's ``AbstractIncrementalSnapshotContext`` and ``DataCollection``; "Java Object Serialization
Specification", chapter 6; the serialized forms of ``Long``, ``BigDecimal``, ``BigInteger`` and ``UUID``.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from floodmark.debezium.java_objects import MAGIC, JavaDataError, JavaObject, read_object
from floodmark.errors import OffsetError
from floodmark.json_data import Json

KeyValue = int | Decimal | str | uuid.UUID | bytes
"""A value of a key's column."""

RUNNING = ("INCREMENTAL", "incremental")
"""An offset's ``snapshot`` after the rows of such a snapshot, whose position is one of the log."""
_FIELD = "incremental_snapshot_"
TABLES = f"{_FIELD}collections"
LAST_KEY = f"{_FIELD}primary_key"
HIGHEST_KEY = f"{_FIELD}maximum_key"
SIGNAL = f"{_FIELD}correlation_id"
_ID, _CONDITION, _SURROGATE = f"{TABLES}_id", f"{TABLES}_additional_condition", f"{TABLES}_surrogate_key"
_TABLE_SIGNAL = f"{TABLES}_correlation_id"
_INTEGERS = tuple(f"java.lang.{name}" for name in ("Byte", "Short", "Integer", "Long"))
_DECIMAL = "java.math.BigDecimal"
_BIG_INTEGER = "java.math.BigInteger"
_WRAPPED = "io.debezium.data.SpecialValueDecimal"
_UUID = "java.util.UUID"
_MASK = (1 << 64) - 1
_MOST_DIGITS = 1_700
"""Bytes, and digits after the point; a key's number with more is read anew."""


@dataclass(frozen=True)
class AskedTable:
    """A table that is to be read.

    Attributes:
        name: as Debezium writes it, such as ``public.orders`` or ``shop.orders``.
        condition: the SQL condition of its rows; empty: all.
        surrogate: the column to use instead of its key; None: the key.
        signal: the id of the signal that asked for it; None: not known.
    """

    name: str
    condition: str = ""
    surrogate: str | None = None
    signal: str | None = None


@dataclass(frozen=True)
class DebeziumSnapshot:
    """An incremental snapshot of Debezium.

    Attributes:
        tables: the tables that are left, the one being read first; each once for each request.
        signal: the id of the newest signal that asked for tables.
        last: the key of the first table that was delivered last, a value per column; None: none was. A column's value
            is None if it is null, or of a class that isn't known here.
        highest: the key up to which that table is read; None: it is not yet known.
    """

    tables: tuple[AskedTable, ...]
    signal: str
    last: tuple[KeyValue | None, ...] | None = None
    highest: tuple[KeyValue | None, ...] | None = None

    @classmethod
    def from_fields(cls, fields: Mapping[str, Json]) -> DebeziumSnapshot | None:
        """Return what an offset says; None: no incremental snapshot runs.

        Raises:
            OffsetError: it is damaged.
        """
        text = fields.get(TABLES)
        if text is None:
            return None
        try:
            items = json.loads(str(text))
            tables = tuple(map(_table, items)) if isinstance(items, list) else ()
        except ValueError:
            tables = ()
        if not tables and str(text).strip() != "[]":
            raise _damaged(TABLES, "it is not a list of tables")
        if not tables:
            return None
        return cls(tables, str(fields.get(SIGNAL) or ""), _key(fields, LAST_KEY), _key(fields, HIGHEST_KEY))

    def to_fields(self) -> dict[str, Json]:
        """Return the fields of an offset from which Debezium goes on."""
        tables = [
            {_ID: one.name, _CONDITION: one.condition or None, _SURROGATE: one.surrogate, _TABLE_SIGNAL: one.signal}
            for one in self.tables
        ]
        return {
            LAST_KEY: write_key(self.last),
            HIGHEST_KEY: write_key(self.highest),
            TABLES: json.dumps(tables, separators=(",", ":"), ensure_ascii=False),
            SIGNAL: self.signal,
        }


def _table(item: Any) -> AskedTable:
    match item:
        case {"incremental_snapshot_collections_id": str(name)}:
            condition, surrogate, signal = (item.get(field) for field in (_CONDITION, _SURROGATE, _TABLE_SIGNAL))
            if all(one is None or isinstance(one, str) for one in (condition, surrogate, signal)):
                return AskedTable(name, condition or "", surrogate or None, signal or None)
    raise ValueError


def _key(fields: Mapping[str, Json], field: str) -> tuple[KeyValue | None, ...] | None:
    text = fields.get(field)
    if text is None:
        return None
    try:
        found = read_object(bytes.fromhex(str(text)))
        if found is not None and not isinstance(found, list):
            raise JavaDataError("it holds no key")
        return None if found is None else tuple(map(_value, found))
    except (JavaDataError, ValueError, TypeError) as exc:
        raise _damaged(field, str(exc)) from None


def _damaged(field: str, problem: str) -> OffsetError:
    return OffsetError(
        f"What Debezium's offset says of its incremental snapshot is damaged ({field}: {problem}).",
        "Let Debezium finish the snapshot, or stop it with the signal stop-snapshot, and import the offset then.",
    )


def _value(found: Any) -> KeyValue | None:
    """Return a value of a key; None if it is null or has no exact value here."""
    if isinstance(found, str | bytes):
        return found
    if not isinstance(found, JavaObject):
        return None
    value = found.fields.get
    if found.name in _INTEGERS:
        return int(value("value", 0))
    if found.name == _WRAPPED:
        return _value(value("decimalValue"))
    if found.name == _BIG_INTEGER:
        return _big_integer(found)
    if found.name == _DECIMAL:
        whole, scale = _big_integer(value("intVal")), int(value("scale", 0))
        if whole is None or abs(scale) > _MOST_DIGITS:
            return None
        return Decimal((int(whole < 0), tuple(map(int, str(abs(whole)))), -scale))
    if found.name == _UUID:
        most, least = (int(value(name, 0)) & _MASK for name in ("mostSigBits", "leastSigBits"))
        return uuid.UUID(int=most << 64 | least)
    return None


def _big_integer(found: Any) -> int | None:
    if not isinstance(found, JavaObject) or found.name != _BIG_INTEGER:
        return None
    magnitude, sign = found.fields.get("magnitude"), found.fields.get("signum")
    if not isinstance(magnitude, bytes) or len(magnitude) > _MOST_DIGITS:
        return None
    return int.from_bytes(magnitude, "big") * int(sign or 0)


def write_key(values: Sequence[KeyValue | None] | None) -> str:
    """Return a key as Debezium's offset has it; None is written as Java's null.

    Each object describes its class again, which Java allows: so nothing refers to anything before it.
    """
    if values is None:
        return (MAGIC + b"\x70").hex()
    array = b"\x75" + _class("[Ljava.lang.Object;", "90ce589f1073296c", 2, b"") + b"\x70"
    return (MAGIC + array + struct.pack(">i", len(values)) + b"".join(map(_written, values))).hex()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


def _class(name: str, number: str, flags: int, fields: bytes, count: int = 0) -> bytes:
    """Return a class without its parent."""
    return b"\x72" + _text(name) + bytes.fromhex(number) + bytes([flags]) + struct.pack(">H", count) + fields + b"\x78"


_NUMBER = _class("java.lang.Number", "86ac951d0b94e08b", 2, b"") + b"\x70"
_LONG = b"\x73" + _class("java.lang.Long", "3b8be490cc8f23df", 2, b"J" + _text("value"), 1) + _NUMBER
_BIG_DECIMAL_CLASS = (
    b"\x73"
    + _class(
        _DECIMAL,
        "54c71557f981284f",
        3,
        b"I" + _text("scale") + b"L" + _text("intVal") + b"\x74" + _text("Ljava/math/BigInteger;"),
        2,
    )
    + _NUMBER
)
_BIG_INTEGER_CLASS = (
    b"\x73"
    + _class(
        _BIG_INTEGER,
        "8cfc9f1fa93bfb1d",
        3,
        b"".join(
            b"I" + _text(name) for name in ("bitCount", "bitLength", "firstNonzeroByteNum", "lowestSetBit", "signum")
        )
        + b"["
        + _text("magnitude")
        + b"\x74"
        + _text("[B"),
        6,
    )
    + _NUMBER
)
_UUID_CLASS = (
    b"\x73"
    + _class(_UUID, "bc9903f7986d852f", 2, b"J" + _text("leastSigBits") + b"J" + _text("mostSigBits"), 2)
    + b"\x70"
)
_BYTES_CLASS = b"\x75" + _class("[B", "acf317f8060854e0", 2, b"") + b"\x70"


def _written(value: KeyValue | None) -> bytes:
    match value:
        case None:
            return b"\x70"
        case int() if -(1 << 63) <= value < 1 << 63:
            return _LONG + struct.pack(">q", value)
        case int():
            return _written(Decimal(value))
        case Decimal():
            sign, digits, exponent = value.as_tuple()
            assert isinstance(exponent, int), "a key's number is finite"
            whole = int("".join(map(str, digits)))
            size = (whole.bit_length() + 7) // 8
            signum = 0 if not whole else -1 if sign else 1
            inner = _BIG_INTEGER_CLASS + struct.pack(">5i", -1, -1, -2, -2, signum)
            inner += _written(whole.to_bytes(size, "big")) + b"\x78"
            return _BIG_DECIMAL_CLASS + struct.pack(">i", -exponent) + inner + b"\x78"
        case uuid.UUID():
            return _UUID_CLASS + struct.pack(">QQ", value.int & _MASK, value.int >> 64)
        case bytes():
            return _BYTES_CLASS + struct.pack(">i", len(value)) + value
        case str():
            return _java_string(value)


def _java_string(text: str) -> bytes:
    """Return a text in Java's modified UTF-8: characters beyond U+FFFF are two surrogates, U+0000 has two bytes."""
    units = text.encode("utf-16-be", "surrogatepass")
    parts = [chr(unit).encode("utf-8", "surrogatepass") for unit in struct.unpack(f">{len(units) // 2}H", units)]
    data = b"".join(parts).replace(b"\0", b"\xc0\x80")
    long = len(data) >= 1 << 16
    return (b"\x7c" if long else b"\x74") + struct.pack(">Q" if long else ">H", len(data)) + data
