"""Describes what the catalog knows of a table and Relation messages don't contain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from floodmark.connectors.postgres.types.type_info import TypeInfo


class CatalogColumn(NamedTuple):
    """A column that a table has or had.

    Attributes:
        name: None if it was dropped.
        generated: whether it is a generated column, which the log lacks.
    """

    name: str | None
    type_oid: int
    generated: bool


@dataclass(frozen=True)
class CatalogStructure:
    """The part of a table's structure that only the catalog has.

    Attributes:
        key: columns of the primary key, else of a unique index over NOT NULL columns.
        unmarked_key: columns of the best key whose columns Relation messages don't mark.
        identity: columns of the index that is the replica identity.
        required: columns that are NOT NULL.
        defaults: the expressions of columns that have one.
        types: types that need a description, and those that they are made of, by OID.
    """

    key: tuple[str, ...] = ()
    unmarked_key: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[int, TypeInfo] = field(default_factory=dict)


@dataclass(frozen=True)
class CurrentStructure(CatalogStructure):
    """The structure that the catalog has now.

    Attributes:
        columns: all columns that the table ever had, in their order.
    """

    columns: tuple[CatalogColumn, ...] = ()
