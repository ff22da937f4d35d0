"""Character sets and collations by name."""

from __future__ import annotations

DEFAULT = "default"
"""The word that MariaDB accepts as a name: the enclosing object's character set, or the character set's collation."""

DEFAULT_COLLATIONS = {
    "armscii8": "armscii8_general_ci",
    "ascii": "ascii_general_ci",
    "big5": "big5_chinese_ci",
    "binary": "binary",
    "cp1250": "cp1250_general_ci",
    "cp1251": "cp1251_general_ci",
    "cp1256": "cp1256_general_ci",
    "cp1257": "cp1257_general_ci",
    "cp850": "cp850_general_ci",
    "cp852": "cp852_general_ci",
    "cp866": "cp866_general_ci",
    "cp932": "cp932_japanese_ci",
    "dec8": "dec8_swedish_ci",
    "eucjpms": "eucjpms_japanese_ci",
    "euckr": "euckr_korean_ci",
    "gb18030": "gb18030_chinese_ci",
    "gb2312": "gb2312_chinese_ci",
    "gbk": "gbk_chinese_ci",
    "geostd8": "geostd8_general_ci",
    "greek": "greek_general_ci",
    "hebrew": "hebrew_general_ci",
    "hp8": "hp8_english_ci",
    "keybcs2": "keybcs2_general_ci",
    "koi8r": "koi8r_general_ci",
    "koi8u": "koi8u_general_ci",
    "latin1": "latin1_swedish_ci",
    "latin2": "latin2_general_ci",
    "latin5": "latin5_turkish_ci",
    "latin7": "latin7_general_ci",
    "macce": "macce_general_ci",
    "macroman": "macroman_general_ci",
    "sjis": "sjis_japanese_ci",
    "swe7": "swe7_swedish_ci",
    "tis620": "tis620_thai_ci",
    "ucs2": "ucs2_general_ci",
    "ujis": "ujis_japanese_ci",
    "utf16": "utf16_general_ci",
    "utf16le": "utf16le_general_ci",
    "utf32": "utf32_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "utf8mb4": "utf8mb4_0900_ai_ci",
}
"""The collations of character sets without a declared one, in MySQL 8.0 and later."""

_WIDTHS = {
    "big5": 2,
    "cp932": 2,
    "eucjpms": 3,
    "euckr": 2,
    "gb18030": 4,
    "gb2312": 2,
    "gbk": 2,
    "sjis": 2,
    "ucs2": 2,
    "ujis": 3,
    "utf16": 4,
    "utf16le": 4,
    "utf32": 4,
    "utf8mb3": 3,
    "utf8mb4": 4,
}


def charset_name(name: str, utf8: str = "utf8mb3") -> str:
    """Return a character set's name as the servers print it.

    Args:
        utf8: what ``utf8`` means.
    """
    name = name.lower()
    return utf8 if name == "utf8" else name


def collation_name(name: str, utf8: str = "utf8mb3") -> str:
    """Return a collation's name as the servers print it.

    Args:
        utf8: what ``utf8`` means.
    """
    name = name.lower()
    return f"{utf8}_{name[5:]}" if name.startswith("utf8_") else name


def charset_of(collation: str) -> str | None:
    """Return the character set that a collation belongs to; None for MariaDB's that belong to several."""
    if collation.startswith("uca1400_"):
        return None
    return collation.partition("_")[0]


def max_bytes(charset: str | None) -> int:
    """Return the largest number of bytes that a character takes."""
    return _WIDTHS.get(charset or "", 1)


def binary_collation(charset: str) -> str:
    """Return the collation of a character set that compares bytes."""
    return "binary" if charset == "binary" else f"{charset}_bin"


_CODECS = {
    "ascii": "ascii",
    "big5": "big5",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp932": "cp932",
    "eucjpms": "euc_jp",
    "euckr": "euc_kr",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "sjis": "shift_jis",
    "tis620": "tis_620",
    "ujis": "euc_jp",
}


def decoded(text: bytes, charset: str) -> str:
    """Decode a literal of a statement that has a character set of its own."""
    return text.decode(python_codec(charset), "replace")


def encoded(text: str, charset: str) -> bytes:
    """Encode a text in a character set."""
    return text.encode(python_codec(charset), "replace")


def python_codec(collation: str) -> str:
    """Return Python's name of the encoding of a collation or character set; UTF-8 for those not listed."""
    return _CODECS.get(charset_of(collation) or "", "utf-8")
