"""Cases of numbers, bits, years and booleans."""

from __future__ import annotations

from itertools import chain

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.flavors import both, by_column, streamed, table

INTEGERS = {
    "ti": ("tinyint", "0", "-128", "127", "-1"),
    "tiu": ("tinyint unsigned", "0", "255", "128", "1"),
    "si": ("smallint", "0", "-32768", "32767", "-1"),
    "siu": ("smallint unsigned", "0", "65535", "32768", "1"),
    "mi": ("mediumint", "0", "-8388608", "8388607", "-1"),
    "miu": ("mediumint unsigned", "0", "16777215", "8388608", "1"),
    "i": ("int", "0", "-2147483648", "2147483647", "-1"),
    "iu": ("int unsigned", "0", "4294967295", "2147483648", "1"),
    "bi": ("bigint", "0", "-9223372036854775808", "9223372036854775807", "-1"),
    "biu": ("bigint unsigned", "0", "18446744073709551615", "9223372036854775808", "9223372036854775807"),
    "ti4": ("tinyint(4)", "0", "-128", "127"),
    "i11": ("int(11)", "0", "-5", "7"),
    "zi": ("int(6) zerofill", "0", "42", "999999"),
    "zb": ("bigint zerofill", "0", "42", "18446744073709551615"),
    "t1": ("tinyint(1)", "0", "1", "2", "-128", "127"),
    "t1u": ("tinyint(1) unsigned", "0", "1", "255"),
    "b": ("boolean", "TRUE", "FALSE", "5"),
    "y": ("year", "1901", "2155", "2000", "'69'", "'70'", "2024"),
    "y4": ("year(4)", "1901", "2155", "2000"),
}
BITS = {
    "b1": ("bit", "0", "1"),
    "b2": ("bit(2)", "0", "1", "2", "3"),
    "b7": ("bit(7)", "0", "1", "127", "b'1000000'"),
    "b8": ("bit(8)", "0", "1", "255", "128"),
    "b9": ("bit(9)", "0", "1", "511", "256", "255"),
    "b16": ("bit(16)", "0", "1", "65535", "256", "32768"),
    "b17": ("bit(17)", "0", "1", "131071", "65536", "256"),
    "b31": ("bit(31)", "0", "1", "2147483647", "65536"),
    "b63": ("bit(63)", "0", "1", "9223372036854775807", "4294967296"),
    "b64": ("bit(64)", "0", "1", "18446744073709551615", "9223372036854775808", "72057594037927936"),
}
DECIMALS = {
    "d": ("decimal", "0", "1", "-1", "9999999999", "-9999999999", "127", "128", "-128", "-129"),
    "d52": ("decimal(5,2)", "0", "1.5", "-1.5", "999.99", "-999.99", "0.01", "-0.01", "1.27", "1.28", "-1.28"),
    "d102u": ("decimal(10,2) unsigned", "0", "1.5", "99999999.99", "0.01"),
    "d1": ("decimal(1)", "0", "9", "-9"),
    "d90": ("decimal(9,0)", "0", "999999999", "-999999999"),
    "d99": ("decimal(9,9)", "0", "0.999999999", "-0.999999999", "0.000000001"),
    "d1810": ("decimal(18,10)", "0", "99999999.9999999999", "-99999999.9999999999", "1.1"),
    "d19": ("decimal(19)", "0", "9223372036854775807", "-9223372036854775808", "9999999999999999999"),
    "d3820": ("decimal(38,20)", "0", "123456789012345678.12345678901234567890", "-0.00000000000000000001"),
    "d650": ("decimal(65)", "0", f"{'9' * 65}", f"-{'9' * 65}", "1"),
    "d6530": ("decimal(65,30)", "0", f"{'9' * 35}.{'9' * 30}", f"-{'9' * 35}.{'9' * 30}", f"0.{'0' * 29}1"),
    "n": ("numeric(4,1)", "0", "1.25", "-999.9"),
}
FLOATS = {
    "f": (
        "float",
        *(
            "0",
            "-0e0",
            "1.5",
            "-1.5",
            "1e7",
            "9999999",
            "0.001",
            "0.00099",
            "16777216",
            "16777217",
            "0.1",
            "3.14159274",
        ),
        *("3.402823466e38", "-3.402823466e38", "1.5e-38", "123456.789", "1e-7", "33554434"),
    ),
    "d": (
        "double",
        *("0", "-0e0", "1.5", "-1.5", "1e7", "9999999", "0.001", "0.00099", "9007199254740993", "0.1", "1e23"),
        *("1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308", "123456.789", "1e-7"),
        *("1.2345678901234567e17", "4.9406564584124654e-324"),
    ),
    "fu": ("float unsigned", "0", "1.5", "0.1"),
    "du": ("double unsigned", "0", "1.5", "0.1"),
    "f73": ("float(7,3)", "0", "1.5", "1234.5678", "-9999.999"),
    "d104": ("double(10,4)", "0", "1.5", "1234.56789", "-999999.9999"),
    "f24": ("float(24)", "0", "0.1", "16777217"),
    "f53": ("float(53)", "0", "0.1", "16777217"),
    "r": ("real", "0", "0.1", "1e15"),
    "dp": ("double precision", "0", "0.1", "-1e-15"),
}
TABLES = {"integers": INTEGERS, "bits": BITS, "decimals": DECIMALS, "floats": FLOATS}

YEAR_ZERO = ("INSERT INTO years VALUES (1, 0)", "INSERT INTO years VALUES (2, '0')", "UPDATE years SET y = 2024")


def numbers(
    name: str, options: dict[str, str] | None = None, schemas: bool = False, only: tuple[str, ...] = tuple(TABLES)
) -> tuple[Case, ...]:
    setup = chain.from_iterable(table(kind, *by_column(TABLES[kind])) for kind in only)
    statements = chain.from_iterable(streamed(kind, list(TABLES[kind])) for kind in only)
    return both(name, tuple(setup), tuple(statements), options, schemas)


CASES: tuple[Case, ...] = (
    *numbers("numbers"),
    *numbers("numbers_schemas", schemas=True, only=("integers", "bits", "decimals", "floats")),
    *numbers(
        "numbers_double",
        {"decimal.handling.mode": "double", "bigint.unsigned.handling.mode": "precise"},
        only=("integers", "decimals"),
    ),
    *numbers("numbers_string", {"decimal.handling.mode": "string"}, only=("integers", "decimals")),
    # Debezium's MariaDB connector can't read the year 0 in a snapshot.
    *both("year_zero", ("CREATE TABLE years (id int PRIMARY KEY, y year)",), YEAR_ZERO),
    *both(
        "year_zero_snapshot",
        ("CREATE TABLE years (id int PRIMARY KEY, y year)", *YEAR_ZERO[:1]),
        YEAR_ZERO[1:],
        flavors=("mysql",),
    ),
    *numbers("bits_hex", {"binary.handling.mode": "hex"}, only=("bits",)),
)
