"""Suggests what to write instead of an option that a connector doesn't have.

It looks up, in this order: names of Debezium 1.x, options of the other connectors, options of Debezium for other
databases, options of Spark's other sources, and the nearest name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from floodmark.config.debezium import find
from floodmark.config.model import ALL_OPTIONS, Options, nearest
from floodmark.connectors.registry import all_specs

_FORMER: Mapping[str, str] = {
    "database.server.name": "topic.prefix",
    "database.history.store.only.monitored.tables.ddl": "schema.history.internal.store.only.captured.tables.ddl",
    "slot.drop_on_stop": "slot.drop.on.stop",
    "toasted.value.placeholder": "unavailable.value.placeholder",
    "transaction.topic": "topic.transaction",
    **{f"{what}.whitelist": f"{what}.include.list" for what in ("column", "database", "schema", "table")},
    **{f"{what}.blacklist": f"{what}.exclude.list" for what in ("column", "database", "schema", "table")},
}
"""Debezium 1.x's names, and today's."""
_FORMER_HISTORY = "database.history"
_HISTORY = "schema.history.internal"
_REPLACED: Mapping[str, str] = {
    "include.schema.events": "include.schema.changes",
    "snapshot.custom.class": "snapshot.mode.custom.name",
    "snapshot.minimal.locks": "snapshot.locking.mode",
    "truncate.handling.mode": "skipped.operations",
}
"""Debezium 1.x's options that others with other values have replaced."""

_SPARK: Mapping[str, str] = {
    "assign": "Write 'table.include.list' to choose tables.",
    "checkpointlocation": "It is an option of the query: df.writeStream.option('checkpointLocation', …).",
    "database": "Write 'database.dbname' (PostgreSQL) or 'database.include.list' (MySQL, MariaDB).",
    "dbname": "Write 'database.dbname' (PostgreSQL) or 'database.include.list' (MySQL, MariaDB).",
    "dbtable": "Write 'table.include.list', with a regular expression of 'schema.table'.",
    "driver": "The option 'connector' names the database: no JDBC driver is used.",
    "host": "Write 'database.hostname'.",
    "hostname": "Write 'database.hostname'.",
    "kafka.bootstrap.servers": "The source reads a database; the sink writes to Kafka.",
    "maxfilespertrigger": "Write 'max.batch.rows' or 'max.batch.bytes' to limit a micro-batch.",
    "maxoffsetspertrigger": "Write 'max.batch.rows' or 'max.batch.bytes' to limit a micro-batch.",
    "path": "The options name the source: call load() without an argument.",
    "port": "Write 'database.port'.",
    "query": "Write 'table.include.list', with a regular expression of 'schema.table'.",
    "startingoffsets": "Write 'snapshot.mode', which decides what a new query reads first.",
    "subscribe": "Write 'table.include.list' to choose tables.",
    "table": "Write 'table.include.list', with a regular expression of 'schema.table'.",
    "tables": "Write 'table.include.list', with regular expressions of 'schema.table'.",
    "url": "Write 'database.hostname', 'database.port' and the name of the database instead.",
    "user": "Write 'database.user'.",
    "username": "Write 'database.user'.",
}
"""Options of Spark's other sources and of common drivers, in lower case, and what stands for them here."""

_OTHER_DATABASES: Mapping[str, str] = {
    "capture.<option>": "MongoDB",
    "collection.<option>": "MongoDB",
    "data.query.mode": "SQL Server",
    "database.names": "SQL Server",
    "mongodb.<option>": "MongoDB",
}
"""Options of databases that Floodmark doesn't read."""


def advice(model: type[Options], key: str) -> tuple[str, str]:
    """Describe an option that a model lacks, as the end of a sentence or empty, and what to do about it.

    Args:
        model: the model of the connector that the option was given to.
        key: the option's name as it was given.
    """
    former = now_called(key.lower())
    if former:
        owners = _owners(former)
        connector = _connector(model)
        if not owners or connector in owners:
            return f", which is what Debezium 1.x called '{former}'", f"Write '{former}' instead."
        what = f", which is what Debezium 1.x called '{former}'; {_not_here(connector, owners)}"
        return what, _instead(model, former) or "Remove it."
    if key.lower() in _REPLACED:
        return ", which only Debezium 1.x has", f"See '{_REPLACED[key.lower()]}', which took its place."
    owners = _owners(key)
    if owners:
        return f": {_not_here(_connector(model), owners)}", _instead(model, key) or "Remove it."
    other = find(_OTHER_DATABASES, key)
    if other is not None:
        return f": it is one of Debezium's for {_OTHER_DATABASES[other]}, which Floodmark does not read", "Remove it."
    if key.lower() in _SPARK:
        return "", _SPARK[key.lower()]
    close = nearest(key, model.names())
    owner, dot, rest = key.partition(".")
    if not close and dot and rest.lower() == "type":
        return "", f"If '{owner}' is a converter, name it in 'converters'."
    return "", close or ALL_OPTIONS


def now_called(key: str) -> str:
    """Return the current name of an option of Debezium 1.x, given in small letters; empty if it isn't one."""
    if key in _FORMER:
        return _FORMER[key]
    rest = key.removeprefix(_FORMER_HISTORY)
    return _HISTORY + rest if rest != key and rest[:1] in ("", ".") else ""


def _connector(model: type[Options]) -> str:
    return next((spec.name for spec in all_specs() if model.__name__ in (spec.options, spec.batch_options)), "")


def _owners(key: str) -> list[str]:
    """Return the connectors that have an option, accept it without effect, or refuse it for a reason of their own."""
    models = {spec.name: spec.option_model for spec in all_specs()}
    return [
        name
        for name, model in models.items()
        if model.knows(key) or find(model.accepted, key) is not None or find(model.refused, key) is not None
    ]


def _not_here(connector: str, owners: Sequence[str]) -> str:
    *others, last = [f"'{name}'" for name in owners]
    names = f"{', '.join(others)} and {last}" if others else last
    plural = "s" if len(owners) > 1 else ""
    return f"the connector '{connector}' does not have it, only the connector{plural} {names}"


def _instead(model: type[Options], key: str) -> str:
    same = model.similar.get(key.lower())
    return f"Use '{same}', or remove it." if same else nearest(key, model.names(), cutoff=0.85)
