"""Structures of tables as JSON data, for segments and for files in ``state.dir``."""

from __future__ import annotations

from dataclasses import asdict

from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.json_data import Json, JsonObject


def table_json(table: Table) -> dict[str, Json]:
    """Return a structure as JSON data."""
    columns: list[Json] = [asdict(column) for column in table.columns]
    return {
        "database": table.database,
        "owner": table.owner,
        "name": table.name,
        "columns": columns,
        "key": list(table.key),
        "key_name": table.key_name,
        "virtual": list(table.virtual),
        "comment": table.comment,
        "is_exact": table.is_exact,
    }


def table_of(stored: JsonObject) -> Table:
    """Return the structure that ``table_json`` described."""
    return Table(
        stored.text("database"),
        stored.text("owner"),
        stored.text("name"),
        tuple(map(_column, stored.members("columns"))),
        stored.texts("key"),
        stored.optional_text("key_name"),
        stored.texts("virtual"),
        stored.optional_text("comment"),
        stored.flag("is_exact", True),
    )


def _column(stored: JsonObject) -> Column:
    length, scale = (None if stored.value(name) is None else stored.integer(name) for name in ("length", "scale"))
    return Column(
        stored.text("name"),
        stored.text("type"),
        stored.flag("optional"),
        length,
        scale,
        stored.optional_text("default"),
        stored.optional_text("comment"),
        stored.flag("stated"),
        stored.flag("identity"),
    )
