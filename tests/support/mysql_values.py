"""Random columns of MySQL and MariaDB: their types, as SQL and as structures, and literals of their values."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from floodmark.connectors.mysql.structures.table import Column

Literal = Callable[[random.Random], str]

CHARSETS = (
    *("armscii8", "ascii", "big5", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "cp932", "dec8"),
    *("eucjpms", "euckr", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1"),
    *("latin2", "latin5", "latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le"),
    *("utf32", "utf8mb3", "utf8mb4"),
)
LETTERS = "abc xyz_09'\"\\,;äöüßéčşđñ—€абвжЯαβγωאבגدسش漢字仮名かなカナ한글中文字元ԱԲგდก฿"


@dataclass(frozen=True)
class Sample:
    """A column and what its values are made of."""

    sql: str
    column: Column
    literal: Literal


def quoted(text: str) -> str:
    """Return a string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _one_of(*values: str) -> Literal:
    return lambda rng: rng.choice(values)


def _integer(bits: int, unsigned: bool) -> Literal:
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return lambda rng: str(rng.choice([low, high, 0, 1, max(low, -1), rng.randint(low, high), rng.randint(0, 100)]))


def _bits(size: int) -> Literal:
    return lambda rng: f"b'{rng.getrandbits(size):b}'"


def _set_bits(size: int) -> Literal:
    return lambda rng: str(rng.choice([0, 1, (1 << size) - 1, rng.getrandbits(size)]))


def _decimal(precision: int, scale: int) -> Literal:
    def literal(rng: random.Random) -> str:
        digits = rng.randint(1, precision)
        number = rng.choice([0, 10**precision - 1, rng.randrange(10**digits)])
        text = f"{number:0{scale + 1}}"
        return rng.choice(["", "-"]) + (f"{text[:-scale]}.{text[-scale:]}" if scale else text)

    return literal


def _float(single: bool) -> Literal:
    def literal(rng: random.Random) -> str:
        exponent = rng.randint(-30, 30) if single else rng.randint(-300, 300)
        return rng.choice(
            [repr(rng.uniform(-1, 1) * 10.0**exponent), "0", "-0e0", "16777217", "0.1", str(rng.randint(-99, 99))]
        )

    return literal


def _text(most: int) -> Literal:
    return lambda rng: quoted("".join(rng.choice(LETTERS) for _ in range(rng.randint(0, most))))


def _binary(most: int) -> Literal:
    return lambda rng: f"x'{rng.choice([b'', bytes(2), b'ab ', rng.randbytes(rng.randint(0, most))])[:most].hex()}'"


def _fraction(rng: random.Random, digits: int) -> str:
    return f".{rng.choice([0, 1, 10**digits - 1, rng.randrange(10**digits)]):0{digits}}" if digits else ""


def _clock(rng: random.Random, digits: int) -> str:
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}{_fraction(rng, digits)}"


def _date(rng: random.Random) -> str:
    year = rng.choice([1, 999, 1582, 1970, 2024, 9999, rng.randint(1000, 9999)])
    return rng.choice(
        [f"{year:04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}", "0000-00-00", "2024-00-00", "2024-02-00"]
    )


def _datetime(digits: int) -> Literal:
    return lambda rng: rng.choice(["'0000-00-00'", f"'{_date(rng)} {_clock(rng, digits)}'"])


def _timestamp(digits: int) -> Literal:
    def literal(rng: random.Random) -> str:
        date = f"{rng.randint(1971, 2037)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        return rng.choice(["'0000-00-00'", "'1970-01-01 00:00:01'", f"'{date} {_clock(rng, digits)}'"])

    return literal


def _time(digits: int) -> Literal:
    def literal(rng: random.Random) -> str:
        hours = rng.choice([0, 1, 23, 99, 100, 838, rng.randint(0, 837)])
        rest = "59:59" if hours == 838 else f"{rng.randint(0, 59):02}:{rng.randint(0, 59):02}{_fraction(rng, digits)}"
        return f"'{rng.choice(['', '-'])}{hours:02}:{rest}'"

    return literal


def document(rng: random.Random, depth: int = 0) -> Any:
    """Return a value for JSON."""
    kind = rng.randrange(10 if depth < 4 else 7)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind <= 2:
        powers = [0, 15, 16, 31, 32, 63]
        return rng.choice([rng.randint(-10, 10), rng.choice([1, -1]) * (1 << rng.choice(powers)) - rng.randint(0, 1)])
    if kind == 3:
        return rng.choice(
            [rng.uniform(-1000, 1000), rng.uniform(-1, 1) * 10.0 ** rng.randint(-40, 40), 1.0, -0.0, 1e15]
        )
    if kind <= 6:
        length = rng.choice([0, 3, 10, 10, 127, 128, 300])
        return "".join(rng.choice(LETTERS + "\n\t\x01\x1f😀") for _ in range(length))
    if kind == 7:
        return [document(rng, depth + 1) for _ in range(rng.randint(0, 5))]
    return {rng.choice("abcdeé") * rng.randint(0, 4): document(rng, depth + 1) for _ in range(rng.randint(0, 5))}


def _json(rng: random.Random) -> str:
    return quoted(json.dumps(document(rng), ensure_ascii=False))


_MYSQL_JSON = _one_of(
    "json_array(cast(-1.50 as decimal(9,4)), cast('2015-01-15' as date), cast('-12:13:14.5' as time(1)))",
    "json_object('t', cast('2015-01-15 23:24:25.12' as datetime(6)), 'b', x'00ff', 'big', repeat('x', 70000))",
    "json_array(18446744073709551615, cast(12345678901234567890.123 as decimal(40,10)), cast(2020 as year))",
    "json_array(x'" + "ab" * 100 + "', b'101', true)",
    "'null'",
    "'{}'",
    "'[]'",
    "'\"text\"'",
    "'" + "[" * 100 + "]" * 100 + "'",
)


def _geometry(*texts: str) -> Literal:
    return lambda rng: f"st_geomfromtext({quoted(rng.choice(texts))}, {rng.choice([0, 4326])})"


_SHAPES = {
    "point": "POINT(1 2.5)",
    "linestring": "LINESTRING(0 0, 1 1, 2 2.5)",
    "polygon": "POLYGON((0 0, 0 3, 3 3, 3 0, 0 0))",
    "multipoint": "MULTIPOINT((0 0), (1 1))",
    "multilinestring": "MULTILINESTRING((0 0, 1 1), (2 2, 3 3))",
    "multipolygon": "MULTIPOLYGON(((0 0, 0 3, 3 3, 3 0, 0 0)))",
    "geometrycollection": "GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 1 1))",
}


def _uuid(rng: random.Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:12]}{rng.choice('147')}{digits[13:16]}{rng.choice('89ab')}{digits[17:]}"


def _column(kind: str, length: int | None = None, scale: int | None = None, **more: Any) -> Column:
    return Column("", kind, length, scale, **more)


def _labels(count: int) -> tuple[str, ...]:
    return ("a", "b b", "it's", "größe", *(f"label {i}" for i in range(4, count)))


def _samples() -> list[Sample]:
    found: list[Sample] = []

    def add(sql: str, column: Column, literal: Literal) -> None:
        found.append(Sample(sql, column, literal))

    for kind, bits in (("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32), ("bigint", 64)):
        add(kind, _column(kind), _integer(bits, False))
        add(f"{kind} unsigned", _column(kind, unsigned=True), _integer(bits, True))
    add("int(7) zerofill", _column("int", 7, unsigned=True, zerofill=True), _integer(32, True))
    add("tinyint(1)", _column("tinyint", 1), _one_of("0", "1"))
    for precision, scale in ((10, 2), (5, 0), (9, 9), (18, 9), (65, 30), (38, 0), (20, 1), (3, 3), (1, 0), (30, 15)):
        add(f"decimal({precision},{scale})", _column("decimal", precision, scale), _decimal(precision, scale))
    zerofilled = _column("decimal", 8, 3, unsigned=True, zerofill=True)
    add("decimal(8,3) zerofill", zerofilled, lambda rng: str(rng.randrange(1000) / 8))
    add("float", _column("float"), _float(True))
    add("float(7,3)", _column("float", 7, 3), lambda rng: str(rng.uniform(-999, 999)))
    add("double", _column("double"), _float(False))
    add("double(10,4)", _column("double", 10, 4), lambda rng: str(rng.uniform(-999, 999)))
    for bits in (1, 7, 8, 9, 33, 64):
        add(f"bit({bits})", _column("bit", bits), _bits(bits))
    add("year", _column("year", 4), _one_of("0", "1901", "1970", "2024", "2155"))
    add("date", _column("date"), lambda rng: f"'{_date(rng)}'")
    for digits in range(7):
        add(f"datetime({digits})", _column("datetime", None, digits), _datetime(digits))
        add(f"timestamp({digits}) null", _column("timestamp", None, digits), _timestamp(digits))
        add(f"time({digits})", _column("time", None, digits), _time(digits))
    for size in (2, 300):
        chosen = _one_of("''", *(quoted(label) for label in _labels(size)[:6]), str(size))
        add(f"enum({','.join(map(quoted, _labels(size)))})", _column("enum", values=_labels(size)), chosen)
    for size in (3, 9, 64):
        labels = _labels(max(size, 4))[:size]
        add(f"set({','.join(map(quoted, labels))})", _column("set", values=labels), _set_bits(size))
    for charset in CHARSETS:
        add(f"varchar(30) character set {charset}", _column("varchar", 30, charset=charset), _text(30))
    for charset in ("utf8mb4", "latin1", "ucs2", "gbk"):
        add(f"char(20) character set {charset}", _column("char", 20, charset=charset), _text(20))
        add(f"varchar(300) character set {charset}", _column("varchar", 300, charset=charset), _text(300))
        add(f"text character set {charset}", _column("text", charset=charset), _text(600))
    for kind in ("tinytext", "mediumtext", "longtext"):
        add(f"{kind} character set utf8mb4", _column(kind, charset="utf8mb4"), _text(40))
    for kind in ("tinyblob", "blob", "mediumblob", "longblob"):
        add(kind, _column(kind), _binary(100))
    add("binary(10)", _column("binary", 10), _binary(10))
    add("binary(255)", _column("binary", 255), _binary(255))
    add("varbinary(40)", _column("varbinary", 40), _binary(40))
    add("varbinary(400)", _column("varbinary", 400), _binary(400))
    for kind, text in _SHAPES.items():
        add(kind, _column(kind), _geometry(text))
    add("geometry", _column("geometry"), _geometry(*_SHAPES.values()))
    return found


COMMON = _samples()
OWN: dict[str, list[Sample]] = {
    "mysql": [
        Sample("json", _column("json"), _json),
        Sample("json", _column("json"), _MYSQL_JSON),
        Sample("vector(3)", _column("vector", 3), _one_of("string_to_vector('[1,2.5,-3e10]')")),
        Sample("varchar(20) character set gb18030", _column("varchar", 20, charset="gb18030"), _text(20)),
    ],
    "mariadb": [
        Sample("json", _column("longtext", charset="utf8mb4"), _json),
        Sample("uuid", _column("uuid"), lambda rng: quoted(str(rng.choice([_uuid(rng), "0" * 32])))),
        Sample("inet4", _column("inet4"), _one_of("'0.0.0.0'", "'10.1.2.3'", "'192.168.7.0'")),
        Sample(
            "inet6",
            _column("inet6"),
            _one_of(
                "'::'",
                "'::1'",
                "'2001:db8::ff00:42:8329'",
                "'::ffff:1.2.3.4'",
                "'::1.2.3.4'",
                "'fe80::'",
                "'1:0:0:2::'",
                "'1:0:2:3:4:5:6:7'",
            ),
        ),
        Sample(
            "varchar(5000) compressed character set utf8mb4",
            _column("varchar", 5000, charset="utf8mb4"),
            lambda rng: quoted(rng.choice(["", "short", "long text " * 100])),
        ),
        Sample("blob compressed", _column("blob"), lambda rng: f"x'{rng.choice(['', '00', '00ff' * 500])}'"),
        Sample(
            "text compressed character set latin1",
            _column("text", charset="latin1"),
            lambda rng: quoted("é" * rng.randint(0, 300)),
        ),
    ],
}


def samples(flavor: str) -> list[Sample]:
    """Return all kinds of columns of a server, named ``c0`` and so on."""
    every: Sequence[Sample] = COMMON + OWN[flavor]
    return [replace(sample, column=replace(sample.column, name=f"c{i}")) for i, sample in enumerate(every)]
