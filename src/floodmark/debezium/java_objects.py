"""Reads and writes Java's object serialization, as far as Debezium's offsets use it.

Nothing is executed and no class is loaded: objects become plain descriptions. What is read is bounded by the size of
the data, and by the depth of objects within objects.

Source: "Java Object Serialization Specification", chapter 6 (object serialization stream protocol); the serialized
forms of ``HashMap``, ``Integer``, ``Long``, ``BigDecimal`` and ``BigInteger`` in Java's API documentation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

MAGIC = b"\xac\xed\x00\x05"
MAX_DEPTH = 64

_NULL, _REFERENCE, _CLASSDESC, _OBJECT, _STRING, _ARRAY = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75
_BLOCKDATA, _ENDBLOCKDATA, _BLOCKDATALONG, _LONGSTRING, _ENUM = 0x77, 0x78, 0x7A, 0x7C, 0x7E
_WRITE_METHOD, _SERIALIZABLE, _EXTERNALIZABLE, _BLOCK_DATA = 1, 2, 4, 8
_FIRST_HANDLE = 0x7E0000
_PRIMITIVES = {"B": ">b", "C": ">H", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?"}
"""The type codes of fields and array items, and how their values are written."""

BYTES = "[B"
MAP = "java.util.HashMap"


class JavaDataError(ValueError):
    """The data is not what Java's serialization writes, or uses a part of it that Debezium doesn't."""


@dataclass(frozen=True)
class ClassDescription:
    """A class as the stream describes it.

    Attributes:
        name: its name, such as ``java.util.HashMap``.
        flags: how its instances were written.
        fields: name and type code of each field, those of primitive types first.
        parent: the class that it extends, if that is serializable.
    """

    name: str
    flags: int
    fields: tuple[tuple[str, str], ...]
    parent: ClassDescription | None


@dataclass
class JavaObject:
    """An object.

    Attributes:
        of: its class.
        fields: the fields' values, by name, those of its parents included.
        extras: what its class wrote beside its fields: bytes and objects, in order.
    """

    of: ClassDescription
    fields: dict[str, Any] = field(default_factory=dict)
    extras: list[Any] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.of.name


def read_object(data: bytes) -> Any:
    """Return the object that data holds: None, a text, bytes (``byte[]``), a list (other arrays) or a ``JavaObject``.

    Raises:
        JavaDataError: the data is something else.
    """
    reader = _Reader(data)
    try:
        found = reader.begin()
    except (struct.error, IndexError, RecursionError, UnicodeDecodeError) as exc:
        raise JavaDataError(f"it ends too early, or is damaged ({exc})") from None
    if reader.at != len(data):
        raise JavaDataError(f"{len(data) - reader.at} bytes follow its object")
    return found


def read_bytes_map(data: bytes) -> dict[bytes | None, bytes | None]:
    """Return a ``HashMap<byte[], byte[]>``.

    Raises:
        JavaDataError: the data is something else.
    """
    found = read_object(data)
    if not isinstance(found, JavaObject) or found.name != MAP:
        raise JavaDataError(f"it holds {_kind(found)}, not a {MAP}")
    head, *items = found.extras or [b""]
    if not isinstance(head, bytes) or len(head) != 8 or struct.unpack(">i", head[4:])[0] * 2 != len(items):
        raise JavaDataError("its map has another number of entries than it says")
    for item in items:
        if item is not None and not isinstance(item, bytes):
            raise JavaDataError(f"its map holds {_kind(item)}, not byte[]")
    return dict(zip(items[::2], items[1::2], strict=True))


def write_bytes_map(items: Iterable[tuple[bytes | None, bytes | None]]) -> bytes:
    """Return a ``HashMap<byte[], byte[]>`` as Java writes it."""
    entries = list(items)
    buckets = 16
    while buckets * 3 // 4 < len(entries):
        buckets *= 2
    writer = _Writer()
    writer.out += bytes([_OBJECT, _CLASSDESC])
    writer.name(MAP)
    writer.out += bytes.fromhex("0507dac1c31660d1")
    writer.out += bytes([_WRITE_METHOD | _SERIALIZABLE])
    writer.out += struct.pack(">h", 2)
    for code, name in (("F", "loadFactor"), ("I", "threshold")):
        writer.out += code.encode()
        writer.name(name)
    writer.out += bytes([_ENDBLOCKDATA, _NULL])
    writer.handles += 2
    writer.out += struct.pack(">fi", 0.75, buckets * 3 // 4)
    writer.out += bytes([_BLOCKDATA, 8]) + struct.pack(">ii", buckets, len(entries))
    for pair in entries:
        for one in pair:
            writer.byte_array(one)
    writer.out.append(_ENDBLOCKDATA)
    return bytes(MAGIC + writer.out)


def _kind(found: Any) -> str:
    if found is None:
        return "null"
    return found.name if isinstance(found, JavaObject) else type(found).__name__


class _Writer:
    def __init__(self) -> None:
        self.out = bytearray()
        self.handles = 0
        self._bytes_class: int | None = None

    def name(self, text: str) -> None:
        data = text.encode()
        self.out += struct.pack(">H", len(data)) + data

    def byte_array(self, data: bytes | None) -> None:
        if data is None:
            self.out.append(_NULL)
            return
        self.out.append(_ARRAY)
        if self._bytes_class is None:
            self.out.append(_CLASSDESC)
            self.name(BYTES)
            self.out += bytes.fromhex("acf317f8060854e0") + bytes([_SERIALIZABLE, 0, 0, _ENDBLOCKDATA, _NULL])
            self._bytes_class = self.handles
            self.handles += 1
        else:
            self.out += bytes([_REFERENCE]) + struct.pack(">i", _FIRST_HANDLE + self._bytes_class)
        self.handles += 1
        self.out += struct.pack(">i", len(data)) + data


class _End:
    """The end of what a class wrote beside its fields."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        self._handles: list[Any] = []
        self._depth = 0
        self._contents: dict[int, Callable[[], Any]] = {
            _NULL: lambda: None,
            _REFERENCE: self._reference,
            _OBJECT: self._object,
            _STRING: lambda: self._remember(self._text(">H")),
            _LONGSTRING: lambda: self._remember(self._text(">Q")),
            _ARRAY: self._array,
            _BLOCKDATA: lambda: self._take(self._number(">B")),
            _BLOCKDATALONG: lambda: self._take(self._number(">i")),
            _ENDBLOCKDATA: _End,
            _ENUM: self._enum,
        }

    def begin(self) -> Any:
        if self._take(len(MAGIC)) != MAGIC:
            raise JavaDataError("it does not begin as Java's serialization does")
        return self._value()

    def _take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self._data):
            raise JavaDataError("it ends too early, or is damaged")
        self.at += count
        return self._data[self.at - count : self.at]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _text(self, length: str) -> str:
        # Java's modified UTF-8 writes characters beyond U+FFFF as two surrogates, and U+0000 in two bytes.
        text = self._take(self._number(length)).replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16")

    def _remember(self, value: Any) -> Any:
        self._handles.append(value)
        return value

    def _reference(self) -> Any:
        number = self._number(">i") - _FIRST_HANDLE
        if not 0 <= number < len(self._handles):
            raise JavaDataError("it refers to an object that it doesn't hold")
        return self._handles[number]

    def _value(self) -> Any:
        """Return an object, or what stands in its place: an end, or bytes that a class wrote."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise JavaDataError("its objects are nested too deeply")
        kind = self._number(">B")
        read = self._contents.get(kind)
        if read is None:
            raise JavaDataError(f"it holds an unknown kind of object ({kind:#04x})")
        found = read()
        self._depth -= 1
        return found

    def _member(self) -> Any:
        found = self._value()
        if isinstance(found, _End):
            raise JavaDataError("a value is missing in it")
        return found

    def _class(self) -> ClassDescription | None:
        kind = self._number(">B")
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            known = self._reference()
            if not isinstance(known, ClassDescription):
                raise JavaDataError("it refers to something that is no class")
            return known
        self._depth += 1
        if kind != _CLASSDESC or self._depth > MAX_DEPTH:
            raise JavaDataError("it describes a class in a way that is not known here")
        name = self._text(">H")
        self._take(8)
        # The class gets its number before its own parts do.
        place = len(self._handles)
        self._handles.append(None)
        flags = self._number(">B")
        fields = []
        for _ in range(self._number(">H")):
            code = chr(self._number(">B"))
            own = self._text(">H")
            if code in "L[":
                self._member()
            elif code not in _PRIMITIVES:
                raise JavaDataError(f"it has a field of an unknown type ({code!r})")
            fields.append((own, code))
        self._extras()
        found = ClassDescription(name, flags, tuple(fields), self._class())
        self._depth -= 1
        self._handles[place] = found
        return found

    def _extras(self) -> list[Any]:
        found = []
        while not isinstance(one := self._value(), _End):
            found.append(one)
        return found

    def _known_class(self) -> ClassDescription:
        found = self._class()
        if found is None:
            raise JavaDataError("it holds an object without a class")
        return found

    def _object(self) -> JavaObject:
        of = self._known_class()
        made: JavaObject = self._remember(JavaObject(of))
        chain: list[ClassDescription] = []
        above: ClassDescription | None = of
        while above is not None:
            chain.insert(0, above)
            above = above.parent
        for one in chain:
            if one.flags & _SERIALIZABLE:
                for name, code in one.fields:
                    made.fields[name] = self._member() if code in "L[" else self._number(_PRIMITIVES[code])
                if one.flags & _WRITE_METHOD:
                    made.extras += self._extras()
            elif one.flags & _EXTERNALIZABLE and one.flags & _BLOCK_DATA:
                made.extras += self._extras()
            else:
                raise JavaDataError(f"it holds a {one.name} in a form that is not known here")
        return made

    def _array(self) -> bytes | list[Any]:
        of = self._known_class()
        place = len(self._handles)
        self._handles.append(None)
        count = self._number(">i")
        code = of.name[1:2]
        found: bytes | list[Any]
        if of.name == BYTES:
            found = self._take(count)
        elif code in _PRIMITIVES and count >= 0:
            form = _PRIMITIVES[code]
            whole = self._take(count * struct.calcsize(form))
            found = list(struct.unpack(f">{count}{form[1:]}", whole))
        elif code in ("L", "[") and 0 <= count <= len(self._data):
            found = [self._member() for _ in range(count)]
        else:
            raise JavaDataError("it holds an array of an unknown kind")
        self._handles[place] = found
        return found

    def _enum(self) -> str:
        self._known_class()
        place = len(self._handles)
        self._handles.append(None)
        name = self._member()
        if not isinstance(name, str):
            raise JavaDataError("it holds an enum constant without a name")
        self._handles[place] = name
        return name
