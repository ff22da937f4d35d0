"""Random options of connectors, about the tables of a scenario."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from tests.conformance.oracle.cases.case import END, SCHEMA
from tests.support.oracle.model.tables import Structure
from tests.support.oracle.model.types import CHARACTERS

USERS = ("APP", "ANN", "BEN")
CLIENTS = (None, "web", "job 1")
_MODES: Mapping[str, Sequence[str]] = {
    "decimal.handling.mode": ("string", "double"),
    "time.precision.mode": ("connect", "microseconds", "nanoseconds", "isostring", "adaptive_time_microseconds"),
    "binary.handling.mode": ("base64", "base64-url-safe", "hex"),
    "interval.handling.mode": ("string",),
    "tombstones.on.delete": ("false",),
    "skipped.operations": ("none", "u", "d", "c", "u,d", "t,u"),
    "provide.transaction.metadata": ("true",),
    "include.schema.changes": ("false",),
    "include.schema.comments": ("true",),
    "unavailable.value.placeholder": ("?", "hex:0102"),
    "legacy.decimal.handling.strategy": ("true",),
    "skip.messages.without.change": ("true",),
    "column.propagate.source.type": (rf"{SCHEMA}\..*",),
    "datatype.propagate.source.type": (r".+\.NUMBER", r".+\.VARCHAR2"),
}


def random_options(chance: random.Random, tables: Sequence[Structure]) -> dict[str, str]:
    """Return options: a few at a time, so that most have their say."""
    options = {name: chance.choice(values) for name, values in _MODES.items() if chance.random() < 0.2}
    if chance.random() < 0.2:
        options |= {f"{part}.converter.schemas.enable": "true" for part in ("key", "value")}
    large = any(one.type.base.endswith("LOB") for table in tables for one in table.columns)
    if chance.random() < (0.5 if large else 0.1):
        options["lob.enabled"] = "true"
    elif chance.random() < 0.2:
        options["log.mining.include.redo.sql"] = "true"
    if chance.random() < 0.4:
        options |= _columns(chance, tables)
    if chance.random() < 0.4:
        options |= _rows(chance, tables)
    if chance.random() < 0.15:
        options["snapshot.mode"] = chance.choice(["no_data", "always", "when_needed"])
    return options


def _columns(chance: random.Random, tables: Sequence[Structure]) -> dict[str, str]:
    """Return options about single columns, which no key has."""
    table = chance.choice(tables)
    others = [one for one in table.columns if one.name not in table.key]
    one = chance.choice(others)
    named = rf"{SCHEMA}\.{table.name}\.{one.name}"
    if one.type.base in CHARACTERS and chance.random() < 0.7:
        how = ["mask.with.3.chars", "mask.with.0.chars", "truncate.to.4.chars", "mask.hash.v2.SHA-256.with.salt.123"]
        return {f"column.{chance.choice(how)}": named}
    if chance.random() < 0.3 and table.key:
        names = "|".join([*table.key, one.name])
        rest = "|".join([END, *(other.name for other in tables if other is not table)])
        return {"column.include.list": rf"{SCHEMA}\.{table.name}\.({names}),{SCHEMA}\.({rest})\..*"}
    if chance.random() < 0.4 and not one.nullable:
        return {"message.key.columns": rf"{SCHEMA}\.{table.name}:{one.name}"}
    return {"column.exclude.list": named}


def _rows(chance: random.Random, tables: Sequence[Structure]) -> dict[str, str]:
    """Return options about whose changes of which tables are captured; the change that ends a case always is."""
    kind = chance.choice(["tables", "users", "clients"])
    # Otherwise Debezium announces tables that aren't captured, too.
    options = {"schema.history.internal.store.only.captured.tables.ddl": "true"}
    options |= {"log.mining.query.filter.mode": chance.choice(["none", "in", "regex"])}
    if kind == "tables":
        kept = [one.name for one in tables[:-1] or tables]
        options["table.include.list"] = ",".join(rf"{SCHEMA}\.{name}" for name in [*kept, END])
        return options
    if kind == "users":
        name = f"log.mining.username.{chance.choice(['include', 'exclude'])}.list"
        options[name] = ",".join(USERS[:2] if "include" in name else USERS[1:2])
    else:
        # Changes without a client are captured; filters in the query decide otherwise.
        options["log.mining.query.filter.mode"] = "none"
        name = f"log.mining.clientid.{chance.choice(['include', 'exclude'])}.list"
        options[name] = str(CLIENTS[1])
    # The filters in the query only have plain names.
    options["table.include.list"] = ",".join(rf"{SCHEMA}\.{name}" for name in [*(one.name for one in tables), END])
    return options
