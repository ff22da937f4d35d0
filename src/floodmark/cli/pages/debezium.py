"""Renders the page of Debezium's options: ``docs/debezium-options.md``.

Run ``python -m floodmark.cli.pages.debezium docs/debezium-options.md`` after a change to a model or to
``floodmark.config.debezium``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from pydantic.fields import FieldInfo

from floodmark.config.debezium import find
from floodmark.config.model import NO_EFFECT, OWN, SAME, Options
from floodmark.connectors.mysql.options import MariadbOptions, MysqlOptions
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.postgres.options import PostgresOptions

DIFFERS = {
    "<converter>.<option>": "`<converter>.type` is an entry point, not a Java class",
    "column.mask.hash.<algorithm>.with.salt.<salt>": "a salt with letters is given by `column.mask.salt.<name>`",
    "column.mask.hash.v2.<algorithm>.with.salt.<salt>": "a salt with letters is given by `column.mask.salt.<name>`",
    "connector.class": "names the database if `connector` is not given; see [Coming from Debezium](from-debezium.md)",
    "converters": "Python's, by entry point",
    "database.sslmode": "as in libpq",
    "extended.headers.enabled": "the headers are not there",
    "header.converter.schemas.enable": "false if not given",
    "key.converter": "JSON, and [Avro](avro.md) in Confluent's wire format",
    "key.converter.<option>": "those of the [converter to Avro](avro.md#options)",
    "key.converter.schemas.enable": "false if not given, and it must equal `value.converter.schemas.enable`",
    "offset.mismatch.strategy": "`no_validation` does not go on behind a gap: it is `trust_offset`",
    "plugin.name": "only `pgoutput`, which is the default",
    "predicates.<option>": "for the [predicates that there are](transforms.md#predicates)",
    "retriable.restart.connector.wait.ms": "if not given, `errors.retry.delay.*` say how long to wait",
    "signal.consumer.<option>": "names of librdkafka",
    "signal.enabled.channels": "`jmx` has no effect",
    "snapshot.max.threads": "if not given, as many as Spark has cores",
    "skip.messages.without.change": "never leaves out a change of the key",
    "snapshot.mode": "`always`, and a snapshot that is begun again: see [Differences](differences.md)",
    "transforms.<option>": "for the [transforms that there are](transforms.md)",
    "value.converter": "JSON, [CloudEvents](cloud-events.md) in JSON, and [Avro](avro.md) in Confluent's wire format",
    "value.converter.<option>": "those of the [converter to Avro](avro.md#options)",
    "value.converter.schemas.enable": "false if not given, and it must equal `key.converter.schemas.enable`",
}
"""How options that work differ from Debezium's."""
DIFFERS_OF_MYSQL = {
    **{
        name: text
        for name, text in DIFFERS.items()
        if name not in ("database.sslmode", "offset.mismatch.strategy", "plugin.name", "snapshot.max.threads")
    },
    "database.server.id": "if not given, it is made from `topic.prefix` and `state.dir`",
    "database.ssl.keystore": "a PEM or PKCS 12 file, not JKS",
    "database.ssl.truststore": "a PEM or PKCS 12 file, not JKS",
    "event.deserialization.failure.handling.mode": "`fail`: as `errors.tables` says",
    "inconsistent.schema.handling.mode": "`fail`: as `errors.tables` says",
    "schema.history.internal": "if not given, it is in `state.dir`; so it is with the classes that are not Kafka's",
    "schema.history.internal.consumer.<option>": "names of librdkafka",
    "schema.history.internal.producer.<option>": "names of librdkafka",
    "schema.history.internal.store.only.captured.databases.ddl": "for the schema change topic; the history holds all",
    "schema.history.internal.store.only.captured.tables.ddl": "for the schema change topic; the history holds all",
    "snapshot.locking.mode": "`custom` is refused; a lock is taken only where it is needed, and with `extended`",
    "snapshot.max.threads": "if not given, two at most",
}
"""The same for MySQL and MariaDB."""
DIFFERS_OF_ORACLE = {
    **{
        name: text
        for name, text in DIFFERS.items()
        if name not in ("database.sslmode", "offset.mismatch.strategy", "plugin.name")
    },
    "database.connection.adapter": "only `logminer`",
    "log.mining.session.max.ms": "it is for the connection, which ends LogMiner's session, too",
    "snapshot.locking.mode": "`custom` is refused",
}
"""The same for Oracle."""
NAMED_OTHERWISE = ("connector", "schemas.enable")
"""Options that replace Debezium options with other names."""
OF_OTHER_DATABASES = (
    "connect.timeout.ms",
    "database.initial.statements",
    "log.mining.transaction.snapshot.boundary.mode",
)
"""Options of Oracle that Debezium has for other databases only, or under another name."""
WITHOUT_MEANING = ("snapshot.locking.mode.custom.name",)
"""Options of all connectors that have no effect for MySQL and MariaDB."""
INTRODUCTION = """# Debezium's options

Every option of Debezium 3.6 for PostgreSQL, MySQL, MariaDB and Oracle, and those that [3.7](debezium-3.7.md) adds, and
what becomes of it here. What the options
mean is in [Options](options.md).

- *works*: the same name, values and meaning. Events differ only where [Differences](differences.md) says so.
- *differs*: it works, with the difference that is named.
- *no effect*: it is accepted, so that a configuration can be taken over, and a line of the log (level `info`) says
  why it does nothing.
- *refused*: an error, since events would not be what was asked for.
- –: Debezium's connector for that database does not have it; here it is unknown, or an option of Floodmark's own.

Options of other databases, Debezium 1.x's former names, and whatever is in neither this list nor
[Options](options.md), are unknown: an error that names the option to use instead, or the nearest one.

This page is generated from the option models.

| option | PostgreSQL | MySQL, MariaDB | Oracle | |
| --- | --- | --- | --- | --- |
"""

_DIFFERS_BY_CONNECTOR: Mapping[str, Mapping[str, str]] = {
    "postgres": DIFFERS,
    "mysql": DIFFERS_OF_MYSQL,
    "mariadb": DIFFERS_OF_MYSQL,
    "oracle": DIFFERS_OF_ORACLE,
}
DATABASES = ("PostgreSQL", "MySQL", "Oracle")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
States: TypeAlias = dict[str, tuple[str, str]]


def states() -> States:
    """Return the state of each of Debezium's options for PostgreSQL, and a remark on it."""
    return _states([PostgresOptions], DIFFERS, (*NAMED_OTHERWISE, "connect.timeout.ms"))


def mysql_states() -> States:
    """Return the same for MySQL and MariaDB."""
    found = _states([MysqlOptions, MariadbOptions], DIFFERS_OF_MYSQL, NAMED_OTHERWISE)
    return found | dict.fromkeys(WITHOUT_MEANING, ("no effect", "there are no custom locks"))


def oracle_states() -> States:
    """Return the same for Oracle."""
    return _states([OracleOptions], DIFFERS_OF_ORACLE, (*NAMED_OTHERWISE, *OF_OTHER_DATABASES))


def _states(models: Sequence[type[Options]], differs: Mapping[str, str], without: Sequence[str]) -> States:
    found = {name: ("no effect", foreign.reason) for name, foreign in models[0].accepted.items()}
    found |= {name: ("refused", reason) for name, reason in models[0].refused.items()}
    for field in (field for model in models for field in model.model_fields.values()):
        name, text = str(field.alias), field.description or ""
        if own(field) or name in without:
            continue
        if text.startswith(NO_EFFECT):
            found[name] = ("no effect", text.removeprefix(NO_EFFECT).rstrip("."))
        else:
            found[name] = ("works", "")
    return found | {name: ("differs", text) for name, text in differs.items()}


def difference(connector: str, option: str) -> str:
    """Return how an option that works differs from Debezium's, as plain text; empty if it doesn't."""
    differs = _DIFFERS_BY_CONNECTOR.get(connector, {})
    # A converter's option can have any name.
    found = find({name: text for name, text in differs.items() if not name.startswith("<")}, option)
    return _LINK.sub(r"\1", differs[found]).replace("`", "") if found else ""


def own(field: FieldInfo) -> bool:
    """Return whether an option is Floodmark's own."""
    extra = field.json_schema_extra
    return isinstance(extra, dict) and extra.get("debezium", SAME) == OWN


def render() -> str:
    """Return the page."""
    columns = states(), mysql_states(), oracle_states()
    rows = [
        _row(name, *(found.get(name) for found in columns)) for name in sorted({*columns[0], *columns[1], *columns[2]})
    ]
    return INTRODUCTION + "\n".join(rows) + "\n"


def _row(name: str, *states: tuple[str, str] | None) -> str:
    texts = {database: found[1] for database, found in zip(DATABASES, states, strict=True) if found}
    said = "; ".join(f"{database}: {text}" for database, text in texts.items() if text)
    if len(set(texts.values())) == 1:
        said = next(iter(texts.values()))
    return f"| `{name}` | {' | '.join(found[0] if found else '–' for found in states)} | {said} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
