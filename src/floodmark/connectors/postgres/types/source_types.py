"""Describes a column's type as JDBC reports it: name, length and scale.

Debezium writes them into schemas (``column.propagate.source.type``), and truncates hashes to the length. The numbers
are those of PostgreSQL's JDBC driver, ``TypeInfoCache.getPrecision``, ``getDisplaySize`` and ``getScale``.
"""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from floodmark.changes.structure import SourceType
from floodmark.connectors.postgres.types.registry import ELEMENTS, below_domains
from floodmark.connectors.postgres.types.type_info import TypeInfo

UNLIMITED = 2147483647
BPCHAR, VARCHAR, NUMERIC = 1042, 1043, 1700
BIT, VARBIT, INTERVAL = 1560, 1562, 1186
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ = 1082, 1083, 1114, 1184, 1266
FLOAT4, FLOAT8 = 700, 701
TEXTS = {18, 19, 25, BPCHAR, VARCHAR}
"""Types that are text to JDBC. Only they and enums are masked."""

_FIXED = {16: 1, 18: 1, 21: 5, 23: 10, 26: 10, 20: 19, FLOAT4: 8, FLOAT8: 17, DATE: 13, INTERVAL: 49}
_TIME_LENGTHS = {TIME: 8, TIMETZ: 14, TIMESTAMP: 22, TIMESTAMPTZ: 28}
_LONGEST_NUMERIC = 131089
_MICROS = 6


def source_type(type_oid: int, modifier: int, types: Mapping[int, TypeInfo]) -> SourceType:
    """Return a column's type as JDBC reports it; an array has a ``_`` before its name, and its elements' length.

    Args:
        type_oid: the type.
        modifier: its modifier.
        types: the catalog's descriptions of the types that are not built in.
    """
    base, below = below_domains(type_oid, modifier, types)
    info = types.get(base)
    text = base in TEXTS or (info is not None and info.kind == "e")
    one = ELEMENTS.get(base, base)
    return SourceType(_name(type_oid, types), _length(one, below), _scale(one, below), text)


def _name(type_oid: int, types: Mapping[int, TypeInfo]) -> str:
    if type_oid in types:
        return types[type_oid].name
    known = psycopg.adapters.types.get(type_oid)
    if known is None:
        return str(type_oid)
    name = known.name.strip('"')
    return name if known.oid == type_oid else f"_{name}"


def _length(oid: int, modifier: int) -> int:
    if oid in _FIXED:
        return _FIXED[oid]
    if oid in _TIME_LENGTHS:
        # The decimal point and the digits; the driver counts two digits for a precision of 1.
        seconds = {-1: 7, 0: 0, 1: 3}.get(modifier, modifier + 1)
        return _TIME_LENGTHS[oid] + seconds
    if oid == NUMERIC:
        return _LONGEST_NUMERIC if modifier == -1 else (modifier - 4) >> 16 & 0xFFFF
    if modifier == -1:
        return UNLIMITED
    if oid in (BPCHAR, VARCHAR):
        return modifier - 4
    return modifier if oid in (BIT, VARBIT) else UNLIMITED


def _scale(oid: int, modifier: int) -> int:
    if oid == NUMERIC:
        return 0 if modifier == -1 else (modifier - 4) & 0xFFFF
    if oid in _TIME_LENGTHS:
        return _MICROS if modifier == -1 else modifier
    if oid == INTERVAL:
        return _MICROS if modifier == -1 else modifier & 0xFFFF
    return {FLOAT4: 8, FLOAT8: 17}.get(oid, 0)
