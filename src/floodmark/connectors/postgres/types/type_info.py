"""Describes types as PostgreSQL's catalog has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class TypeInfo:
    """The catalog's description of a type.

    Attributes:
        name: ``pg_type.typname``.
        kind: ``pg_type.typtype``: b(ase), c(omposite), d(omain), e(num), r(ange), m(ultirange).
        base: the type below a domain, else 0.
        base_modifier: the domain's type modifier.
        element: the element type of an array, else 0.
        labels: an enum's labels in their order.
    """

    name: str
    kind: str
    base: int = 0
    base_modifier: int = -1
    element: int = 0
    labels: tuple[str, ...] = ()


def type_from_list(data: Sequence[Any]) -> TypeInfo:
    """Return the type described by a list of its attributes, in field order."""
    name, kind, base, base_modifier, element, labels = data
    return TypeInfo(
        str(name), str(kind), int(base), int(base_modifier), int(element), tuple(str(label) for label in labels)
    )
