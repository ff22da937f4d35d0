"""Columns by which the targets of some tables are clustered or partitioned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator

from floodmark.config.model import patterns_in
from floodmark.config.patterns import Pattern

_RULE = re.compile(r"\s*(?P<table>.+):(?P<columns>[^:]+)", re.DOTALL)
_MOST = 4
"""How many columns Delta clusters by; more of them make no sense for partitions, either."""


@dataclass(frozen=True)
class ColumnRule:
    """Columns, and the tables whose targets have them for a purpose."""

    tables: tuple[Pattern, ...]
    columns: tuple[str, ...]


def _as_rules(value: object) -> object:
    if not isinstance(value, str):
        return value
    rules = []
    for item in filter(str.strip, value.split(";")):
        found = _RULE.fullmatch(item)
        columns = tuple(name.strip() for name in found["columns"].split(",")) if found is not None else ()
        if found is None or not all(columns):
            raise ValueError(f"'{item.strip()}' is not of the form <table>:<column>,<column>")
        if len(columns) > _MOST or len(set(columns)) < len(columns):
            raise ValueError(f"'{item.strip()}' must have up to {_MOST} different columns")
        rules.append(ColumnRule(patterns_in(found["table"].strip()), columns))
    return tuple(rules)


ColumnRules = Annotated[tuple[ColumnRule, ...], BeforeValidator(_as_rules)]


def columns_of(table: str, rules: Iterable[ColumnRule]) -> Sequence[str]:
    """Return the columns of the last rule that matches a table; none without such a rule.

    Args:
        table: the source's name of it, ``schema.table``.
    """
    found: Sequence[str] = ()
    for rule in rules:
        if any(pattern.fullmatch(table) for pattern in rule.tables):
            found = rule.columns
    return found
