"""Properties that the targets of some tables get when they are made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator

from floodmark.config.model import patterns_in
from floodmark.config.patterns import Pattern

_RULE = re.compile(r"\s*(?P<table>.+):(?P<name>[^:=]+)=(?P<value>[^=]*)", re.DOTALL)
_OF_DELTA, _OWN = "delta.", "floodmark."
_ALLOWED = (
    "delta.autoOptimize.autoCompact",
    "delta.autoOptimize.optimizeWrite",
    "delta.checkpointInterval",
    "delta.dataSkippingNumIndexedCols",
    "delta.dataSkippingStatsColumns",
    "delta.deletedFileRetentionDuration",
    "delta.enableExpiredLogCleanup",
    "delta.logRetentionDuration",
    "delta.setTransactionRetentionDuration",
    "delta.targetFileSize",
    "delta.tuneFileSizesForRewrites",
)
"""Properties of Delta that change nothing in what a writer must do."""


@dataclass(frozen=True)
class PropertyRule:
    """A property, and the tables whose targets get it."""

    tables: tuple[Pattern, ...]
    name: str
    value: str


def _as_rules(value: object) -> object:
    if not isinstance(value, str):
        return value
    rules = []
    for item in filter(str.strip, value.split(";")):
        found = _RULE.fullmatch(item)
        if found is None:
            raise ValueError(f"'{item.strip()}' is not of the form <table>:<name>=<value>")
        name = found["name"].strip()
        if name.startswith(_OWN) or (name.startswith(_OF_DELTA) and name not in _ALLOWED):
            raise ValueError(f"'{name}' is not one that a mirror can set; of Delta's own it can {', '.join(_ALLOWED)}")
        rules.append(PropertyRule(patterns_in(found["table"].strip()), name, found["value"].strip()))
    return tuple(rules)


PropertyRules = Annotated[tuple[PropertyRule, ...], BeforeValidator(_as_rules)]


def properties_of(table: str, rules: Iterable[PropertyRule]) -> dict[str, str]:
    """Return the properties of a table's target; the last rule that gives one counts.

    Args:
        table: the source's name of it, ``schema.table``.
    """
    return {rule.name: rule.value for rule in rules if any(pattern.fullmatch(table) for pattern in rule.tables)}
