"""Schemas of geometries, and the values of those that the log lacks."""

from __future__ import annotations

from floodmark.events.connect_schema import ConnectSchema

_NAMES = "io.debezium.data.geometry."
_WKB: ConnectSchema = {"type": "bytes", "optional": False, "field": "wkb"}
_SRID: ConnectSchema = {"type": "int32", "optional": True, "field": "srid"}

POINT: ConnectSchema = {
    "type": "struct",
    "fields": [
        {"type": "double", "optional": False, "field": "x"},
        {"type": "double", "optional": False, "field": "y"},
        {**_WKB, "optional": True},
        _SRID,
    ],
    "name": _NAMES + "Point",
    "version": 1,
    "doc": "Geometry (POINT)",
}

ZERO_POINT = '{"x":0.0,"y":0.0,"wkb":"AQEAAAAAAAAAAAAAAAAAAAAAAAAA","srid":null}'
EMPTY_GEOMETRY = '{"wkb":"AQcAAAAAAAAA","srid":null}'


def geometry_schema(name: str) -> ConnectSchema:
    """Return the schema of ``Geometry`` or ``Geography``."""
    return {"type": "struct", "fields": [_WKB, _SRID], "name": _NAMES + name, "version": 1, "doc": name}
