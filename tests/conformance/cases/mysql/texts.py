"""Cases of text, character sets, binary values, enums and sets."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import FLAVORS, both, by_column, streamed, table

WORDS = (
    "''",
    "'plain'",
    "'trailing  '",
    "'quote \" '' \\\\ / <&>'",
    "_utf8mb4 x'00011f7f0a0d0908'",
    "'é ß Ω ж 漢 😀'",
    "_utf8mb4 x'e280a8c285efbbbf'",
    "'{\"a\": 1}'",
)
TEXTS = {
    "c10": ("char(20)", *WORDS),
    "v50": ("varchar(50)", *WORDS),
    "v300": ("varchar(300)", *WORDS, "REPEAT('é', 300)"),
    "tt": ("tinytext", *WORDS, "REPEAT('x', 255)"),
    "t": ("text", *WORDS, "REPEAT('xy', 2000)"),
    "mt": ("mediumtext", *WORDS),
    "lt": ("longtext", *WORDS, "REPEAT('漢', 3000)"),
    "c0": ("char(0)", "''"),
    "v0": ("varchar(0)", "''"),
    "nc": ("nchar(5)", "'é'"),
    "ci": ("varchar(10) COLLATE utf8mb4_general_ci", "'Case'"),
    "bin": ("varchar(10) COLLATE utf8mb4_bin", "'Case'"),
}
BYTES = ("''", "x'00'", "x'00ff10fbefbe'", "'text'", "x'ffffffff'", "x'0000000000'")
BINARIES = {
    "b1": ("binary(1)", "x'00'", "x'ff'", "'a'"),
    "b8": ("binary(8)", *BYTES, "x'0102030405060708'", "'a  '"),
    "vb": ("varbinary(40)", *BYTES, "'a  '"),
    "vb300": ("varbinary(300)", *BYTES, "REPEAT(x'fe', 300)"),
    "tb": ("tinyblob", *BYTES),
    "b": ("blob", *BYTES, "REPEAT(x'00fe', 500)"),
    "mb": ("mediumblob", *BYTES),
    "lb": ("longblob", *BYTES, "REPEAT(x'ab', 3000)"),
    "cb": ("char(5) CHARACTER SET binary", "'ab'", "x'ff00'"),
    "tb2": ("text CHARACTER SET binary", "'ab'", "x'ff00'"),
}
SAMPLES = {
    "utf8mb4": "é漢😀",
    "utf8mb3": "é漢",
    "ucs2": "é漢",
    "utf16": "é漢😀",
    "utf16le": "é漢😀",
    "utf32": "é漢😀",
    "latin1": "é€ß",
    "latin2": "ěščř",
    "latin5": "ğış",
    "latin7": "ąčė",
    "ascii": "plain",
    "cp1250": "ěščř€",
    "cp1251": "жЩю",
    "cp1256": "سلام",
    "cp1257": "ąčė",
    "cp850": "é§ß",
    "cp852": "ěšč",
    "cp866": "жЩю",
    "koi8r": "жЩю",
    "koi8u": "їєґ",
    "greek": "Ωλξ",
    "hebrew": "שלום",
    "tis620": "สวัส",
    "macroman": "é∞ß",
    "gbk": "漢字中文",
    "gb2312": "汉字中文",
    "big5": "漢字中文",
    "sjis": "日本表ｱ",
    "cp932": "日本表ｱ①",
    "ujis": "日本表",
    "eucjpms": "日本表①",
    "euckr": "한국어",
}
RARE_SAMPLES = {
    "armscii8": "Հայ",
    "dec8": "éß",
    "geostd8": "ქარ",
    "hp8": "éß",
    "keybcs2": "ěšč",
    "macce": "ěšč",
    "swe7": "AB",
}
CHARSETS = {name: (f"varchar(20) CHARACTER SET {name}", f"'{text}'", "''", "'plain'") for name, text in SAMPLES.items()}
RARE_CHARSETS = {name: (f"varchar(20) CHARACTER SET {name}", f"'{text}'") for name, text in RARE_SAMPLES.items()}
LONG_CHARSETS = {
    f"{name}_{kind[:4]}": (f"{kind} CHARACTER SET {name}", f"'{SAMPLES[name]}'", f"REPEAT('{SAMPLES[name]}', 5)")
    for name in ("latin1", "ucs2", "utf32", "gbk", "sjis")
    for kind in ("char(60)", "text", "longtext")
}
LABELS = "'a', 'B b', 'it''s', 'quote\"', 'back\\\\slash', 'é漢😀', '(paren)', '', '9'"
ENUMS = {
    "e": (
        f"enum({LABELS})",
        "'a'",
        "'B b'",
        "'it''s'",
        "'quote\"'",
        "'back\\\\slash'",
        "'é漢😀'",
        "'(paren)'",
        "''",
        "9",
    ),
    "s": (f"set({LABELS})", "'a'", "'a,B b'", "'it''s,quote\"'", "''", "511", "'back\\\\slash'", "'é漢😀,9'", "0", "1"),
    "es": ("enum('x ', 'y')", "'x'", "'y'"),
    "el": ("enum('é', 'ü') CHARACTER SET latin1", "'é'", "'ü'"),
    "s64": (f"set({', '.join(repr(f's{n}') for n in range(64))})", "'s0'", "'s63'", "18446744073709551615", "'s8,s16'"),
    "e300": (f"enum({', '.join(repr(f'e{n}') for n in range(300))})", "'e0'", "'e299'", "256"),
}
COMMAS = {"e": ("enum('a,b', 'c', ',', 'd,')", "'a,b'", "'c'", "','", "'d,'")}
TABLES: dict[str, Mapping[str, tuple[str, ...]]] = {
    "texts": TEXTS,
    "binaries": BINARIES,
    "charsets": CHARSETS,
    "rare_charsets": RARE_CHARSETS,
    "gb18030": {"v": ("varchar(20) CHARACTER SET gb18030", "'漢字中文é😀'")},
    "long_charsets": LONG_CHARSETS,
    "enums": ENUMS,
    "commas": COMMAS,
}


def texts(
    name: str,
    only: tuple[str, ...],
    options: dict[str, str] | None = None,
    schemas: bool = False,
    setup: tuple[str, ...] = (),
    statements: tuple[str, ...] = (),
    flavors: tuple[str, ...] = FLAVORS,
) -> tuple[Case, ...]:
    created = chain.from_iterable(table(kind, *by_column(TABLES[kind])) for kind in only)
    changed = chain.from_iterable(streamed(kind, list(TABLES[kind])) for kind in only)
    return both(name, (*setup, *created), (*changed, *statements), options, schemas, flavors=flavors)


def binaries() -> tuple[Case, ...]:
    """Return a case for each mode besides the default one."""
    modes = ("base64", "base64-url-safe", "hex")
    cases = (
        texts(f"binaries_{mode.replace('-', '_')}", ("binaries",), {"binary.handling.mode": mode}, schemas=True)
        for mode in modes
    )
    return tuple(chain.from_iterable(cases))


INVALID = (
    "SET sql_mode = ''",
    "CREATE TABLE unknown_label (id int PRIMARY KEY, e enum('a', 'b'))",
    "INSERT INTO unknown_label VALUES (1, 'nothing')",
)

CASES: tuple[Case, ...] = (
    *texts("texts", only=("texts", "binaries")),
    *texts("texts_schemas", schemas=True, only=("texts", "enums", "commas")),
    *texts("charsets", only=("charsets", "long_charsets")),
    *texts("rare_charsets", only=("rare_charsets",)),
    *texts("gb18030", only=("gb18030",), flavors=("mysql",)),
    *texts(
        "enums",
        only=("enums", "commas"),
        setup=INVALID,
        statements=("INSERT INTO unknown_label VALUES (2, 'nothing')",),
    ),
    *binaries(),
)
