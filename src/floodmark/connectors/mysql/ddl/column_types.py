"""Parses types of columns, as statements and ``COLUMN_TYPE`` of information_schema write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from floodmark.connectors.mysql.ddl.cursor import Cursor
from floodmark.connectors.mysql.ddl.tokens import BITS, WORD
from floodmark.connectors.mysql.structures.charsets import (
    DEFAULT,
    binary_collation,
    charset_of,
    decoded,
    max_bytes,
)
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.connectors.mysql.structures.table import Column
from floodmark.connectors.mysql.structures.type_names import (
    BLOBS,
    CHARACTERS,
    GEOMETRIES,
    INTEGERS,
    NAMED,
    SIZED,
    TEMPORAL,
    TEXTS,
)

_SYNONYMS = {
    "BOOL": "tinyint",
    "BOOLEAN": "tinyint",
    "INT1": "tinyint",
    "INT2": "smallint",
    "INT3": "mediumint",
    "MIDDLEINT": "mediumint",
    "INT4": "int",
    "INTEGER": "int",
    "INT8": "bigint",
    "SERIAL": "bigint",
    "DEC": "decimal",
    "NUMERIC": "decimal",
    "FIXED": "decimal",
    "FLOAT4": "float",
    "FLOAT8": "double",
    "CHARACTER": "char",
    "NCHAR": "char",
    "NVARCHAR": "varchar",
    "VARCHARACTER": "varchar",
    "LONG": "mediumtext",
}
_OF_OTHERS = {
    "oracle": {
        "VARCHAR2": "varchar",
        "NUMBER": "decimal",
        "RAW": "varbinary",
        "CLOB": "longtext",
        "BLOB": "longblob",
        "DATE": "datetime",
    },
    "maxdb": {"TIMESTAMP": "datetime"},
}
"""Types that have another meaning with MariaDB's ``sql_mode=ORACLE`` and ``MAXDB``."""
_SCHEMAS = ("mariadb_schema", "oracle_schema", "maxdb_schema")
"""Prefixes of a type that select whose names of types apply."""
_APPROXIMATE = frozenset({"float", "double"})
_SIZES = (255, 65535, 16777215)
_OTHERS = frozenset(
    {"bit", "decimal", "binary", "varbinary", "date", "year", "json", "vector", "inet4", "inet6", "uuid"}
)
_KNOWN = {*INTEGERS, *_APPROXIMATE, *CHARACTERS, *BLOBS, *TEMPORAL, *GEOMETRIES, *_OTHERS}
AS_BINARY = {"char": "binary", "varchar": "varbinary", **dict(zip(TEXTS, BLOBS, strict=True))}
_WITHOUT_LITERAL = {*TEXTS, *BLOBS, *GEOMETRIES, "json"}
_FLOAT_DIGITS = 24
_ROW_BYTES = 65532
_FEW_CHARACTERS = 40


@dataclass(frozen=True)
class Charset:
    """A character set with a collation."""

    charset: str
    collation: str


@dataclass
class ColumnType:
    """A type as it is declared, before the character set of its table is applied.

    Attributes:
        name: as ``DATA_TYPE`` has it.
        declared: as it is written, upper case.
        charset, collation: as declared for the column.
        binary: whether the collation is to be the one that compares bytes.
        coded: which of the values are bytes in the column's character set.
        serial: whether it is ``SERIAL``.
    """

    name: str
    declared: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    collation: str | None = None
    binary: bool = False
    values: tuple[str, ...] = ()
    coded: frozenset[int] = frozenset()
    serial: bool = False

    @property
    def of_characters(self) -> bool:
        """Whether its values have a character set."""
        return self.name in CHARACTERS

    @property
    def without_literal(self) -> bool:
        """Whether MySQL doesn't let it have a literal default."""
        return self.name in _WITHOUT_LITERAL

    def settle(self, default: Charset, server: Server, session: Session) -> None:
        """Set the character set that applies, and change the type as that requires."""
        if not self.of_characters:
            self.charset = self.collation = None
            self._grow()
            return
        chosen = choose_charset(self.charset, self.collation, default, server, session)
        if self.binary and self.collation is None:
            chosen = Charset(chosen.charset, binary_collation(chosen.charset))
        self.charset, self.collation = chosen.charset, chosen.collation
        if self.charset == "binary":
            self.name = AS_BINARY.get(self.name, self.name)
            self.charset = self.collation = None
        self._decode()
        self._grow()

    def _decode(self) -> None:
        charset = self.charset or "latin1"
        self.values = tuple(
            decoded(label.encode("latin-1"), charset) if number in self.coded else label
            for number, label in enumerate(self.values)
        )
        self.coded = frozenset()

    def _grow(self) -> None:
        """Choose the type that has room for the declared length."""
        if self.length is None:
            return
        size = self.length * max_bytes(self.charset)
        for name, short, sizes in (("text", ("char", "varchar"), TEXTS), ("blob", ("binary", "varbinary"), BLOBS)):
            if self.name == name or (self.name in short and size > _ROW_BYTES):
                self.name = _with_room(sizes, size)


def sized_like(type_: ColumnType, before: Column, charset: Charset) -> str:
    """Return the name of a text or blob type that is redefined in a statement that also converts the table.

    If it has no length, MySQL ignores its name and chooses the type that has room for what the column held.

    Args:
        before: the column as it was.
        charset: the character set to which the table is converted.
    """
    sizes = next((sizes for sizes in (TEXTS, BLOBS) if type_.name in sizes), None)
    if sizes is None or type_.length is not None:
        return type_.name
    size = _most_characters(before) * (max_bytes(charset.charset) if sizes is TEXTS else 1)
    return _with_room(sizes, size)


def _with_room(sizes: Sequence[str], size: int) -> str:
    """Return the smallest of the text or blob types that holds so many bytes."""
    return sizes[sum(size > limit for limit in _SIZES)]


def _most_characters(column: Column) -> int:
    """Return how many characters a column's values may have as text; an estimate if they are few."""
    if column.type in GEOMETRIES or column.type == "json":
        return 1 << 32
    for sizes in (TEXTS, BLOBS):
        if column.type in sizes:
            limits = (*_SIZES, (1 << 32) - 1)
            return limits[sizes.index(column.type)] // max_bytes(column.charset)
    if column.type in SIZED or column.type == "bit":
        return column.length or 1
    if column.type == "enum":
        return max(map(len, column.values))
    if column.type == "set":
        return len(",".join(column.values))
    return _FEW_CHARACTERS


def choose_charset(
    charset: str | None, collation: str | None, default: Charset, server: Server, session: Session
) -> Charset:
    """Return the character set and collation that a declaration of one, both or none of them results in."""
    if charset == DEFAULT:
        charset = default.charset
    if collation == DEFAULT:
        charset, collation = charset or default.charset, None
    if collation is None:
        if charset is None:
            return default
        if charset == "utf8mb4" and session.utf8mb4_collation:
            return Charset(charset, session.utf8mb4_collation)
        return Charset(charset, server.default_collation(charset))
    owner = charset_of(collation)
    if owner is None:
        owner = charset or default.charset
        collation = f"{owner}_{collation}"
    return Charset(owner, collation)


def parse_type(cursor: Cursor) -> ColumnType:
    """Parse the type that comes next."""
    found = _parse_name(cursor)
    _parse_digits(cursor, found)
    while True:
        if cursor.accept("UNSIGNED"):
            found.unsigned = True
        elif cursor.accept("ZEROFILL"):
            found.zerofill = found.unsigned = True
        elif cursor.accept("SIGNED"):
            if found.name in INTEGERS:
                found.declared += " SIGNED"
        elif not _parse_charset(cursor, found):
            break
    return found


def _parse_name(cursor: Cursor) -> ColumnType:
    names = cursor.session.type_names
    if cursor.server.mariadb and cursor.next.value.lower() in _SCHEMAS and cursor.ahead(1).value == ".":
        names = cursor.take().value.lower().removesuffix("_schema")
        cursor.take()
    token = cursor.next
    word = token.value.upper() if token.kind == WORD else ""
    if word == "NATIONAL" or word == "NCHAR" or word == "NVARCHAR":
        return _parse_national(cursor)
    if word == "LONG":
        return _parse_long(cursor)
    name = _SYNONYMS.get(word, word.lower())
    if word == "REAL":
        name = "float" if cursor.session.real_as_float else "double"
    name = _OF_OTHERS.get(names, {}).get(word, name)
    if name not in _KNOWN:
        cursor.fail("a type")
    cursor.at += 1
    declared = word
    if word == "DOUBLE" and cursor.accept("PRECISION"):
        declared = "DOUBLE PRECISION"
    if word in ("CHAR", "CHARACTER") and cursor.accept("VARYING"):
        name, declared = "varchar", f"{word} VARYING"
    if name in ("geometrycollection", "geomcollection"):
        name = "geometrycollection" if cursor.server.mariadb else "geomcollection"
    found = ColumnType(name, declared)
    if word == "SERIAL":
        found.serial = found.unsigned = True
        found.declared = "BIGINT"
    if name == "json" and cursor.server.mariadb:
        found.name, found.charset, found.collation = "longtext", "utf8mb4", "utf8mb4_bin"
    return found


def _parse_national(cursor: Cursor) -> ColumnType:
    words = [cursor.take().value]
    if words == ["NATIONAL"]:
        words.append(cursor.take().value)
    if cursor.sees("VARYING") or (words == ["NCHAR"] and cursor.sees("VARCHAR")):
        words.append(cursor.take().value)
    varying = words[-1] in ("VARYING", "VARCHAR", "NVARCHAR", "VARCHARACTER")
    return ColumnType("varchar" if varying else "char", " ".join(words), charset="utf8mb3")


def _parse_long(cursor: Cursor) -> ColumnType:
    cursor.expect("LONG")
    if cursor.accept("VARBINARY"):
        return ColumnType("mediumblob", "LONG VARBINARY")
    words = ["LONG"]
    for names in (("VARCHAR",), ("VARCHARACTER",), ("CHAR", "VARYING"), ("CHARACTER", "VARYING")):
        if cursor.accept(*names):
            words += names
            break
    return ColumnType("mediumtext", " ".join(words))


def _parse_digits(cursor: Cursor, found: ColumnType) -> None:
    if found.name in ("enum", "set"):
        found.values, found.coded = _parse_labels(cursor)
    elif cursor.accept("("):
        found.length = cursor.size()
        if cursor.accept(","):
            found.scale = cursor.number()
        cursor.expect(")")
    if found.declared in ("BOOL", "BOOLEAN"):
        found.length = 1
    elif found.declared == "NUMBER" and found.length is None:
        found.name = "double"
    elif found.name == "decimal":
        found.length = 10 if found.length is None or found.length == 0 else found.length
        found.scale = found.scale or 0
    elif found.name == "bit":
        found.length = found.length or 1
    elif found.name in ("text", "blob") and found.length == 0 and cursor.server.mariadb:
        found.length = None
    elif found.name in TEMPORAL:
        found.length, found.scale = None, found.length
    elif found.name in GEOMETRIES or found.name in NAMED:
        found.length = found.scale = None
    elif found.name == "float" and found.length is not None and found.scale is None and found.length > _FLOAT_DIGITS:
        found.name = "double"


def _parse_labels(cursor: Cursor) -> tuple[tuple[str, ...], frozenset[int]]:
    """Parse labels; return them, and which of them are bytes, with a character for each byte."""
    cursor.expect("(")
    labels: list[str] = []
    coded: set[int] = set()
    while True:
        if cursor.next.kind == BITS:
            coded.add(len(labels))
            labels.append(bits_text(cursor.take().value))
        else:
            labels.append(cursor.string())
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(label.rstrip(" ") for label in labels), frozenset(coded)


def _parse_charset(cursor: Cursor, found: ColumnType) -> bool:
    if cursor.accept("BINARY"):
        found.binary = True
        found.declared += " BINARY"
    elif cursor.accept("CHARACTER", "SET") or cursor.accept("CHAR", "SET") or cursor.accept("CHARSET"):
        cursor.accept("=")
        found.charset = cursor.charset()
    elif cursor.accept("ASCII"):
        found.charset = "latin1"
    elif cursor.accept("UNICODE"):
        found.charset = "ucs2"
    elif cursor.accept("BYTE"):
        found.charset = "binary"
    elif found.of_characters and cursor.accept("COLLATE"):
        cursor.accept("=")
        found.collation = cursor.collation()
    else:
        return False
    return True


def bits_text(digits: str) -> str:
    """Return a text with a character for each byte of a hexadecimal or binary literal, given in hexadecimal digits."""
    return bytes.fromhex(digits).decode("latin-1")
