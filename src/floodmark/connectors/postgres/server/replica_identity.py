"""Gives tables the replica identity that ``replica.identity.autoset.values`` names."""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.connectors.postgres.options import IdentityRule, PostgresOptions
from floodmark.connectors.postgres.server.catalog import Conn, Table, quote
from floodmark.connectors.postgres.server.connection import LOCK_WAIT_MS, run
from floodmark.errors import ConfigError, SourceStateError
from floodmark.logger import get_logger

OPTION = "replica.identity.autoset.values"
_WORDS = {"d": "DEFAULT", "n": "NOTHING", "f": "FULL"}
_INDEX = """
    SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indisreplident AND i.indrelid = {oid}
"""

log = get_logger(__name__)


def set_identities(conn: Conn, options: PostgresOptions, tables: Sequence[Table]) -> None:
    """Alter the captured tables whose replica identity differs from the one in the options.

    As in Debezium, a table that can't be altered stays as it is, and a warning with the reason is logged. The same
    applies to a table whose lock isn't free within ``LOCK_WAIT_MS``, since the stream waits meanwhile.

    Raises:
        ConfigError: several rules match a table.
    """
    for table in tables:
        rule = rule_of(table, options)
        if rule is None or _has(conn, table, rule):
            continue
        wanted = f"USING INDEX {quote(rule.index)}" if rule.index is not None else _WORDS[rule.identity]
        try:
            with conn.transaction():
                run(conn, f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}", "setting the lock timeout")
                run(conn, f"ALTER TABLE {table.quoted} REPLICA IDENTITY {wanted}", f"{OPTION}, {table.full_name}")
        except SourceStateError as exc:
            log.warning("replica_identity_not_set", table=table.full_name, identity=wanted, error=str(exc))
        else:
            log.info("replica_identity_set", table=table.full_name, identity=wanted)


def rule_of(table: Table, options: PostgresOptions) -> IdentityRule | None:
    """Return the rule for a table; None if there is none.

    Raises:
        ConfigError: several rules match the table.
    """
    rules = [rule for rule in options.replica_identity_autoset_values if rule.tables.fullmatch(table.full_name)]
    if len(rules) > 1:
        raise ConfigError(
            f"Several items of the option '{OPTION}' match the table {table.full_name}: "
            f"{', '.join(rule.tables.pattern for rule in rules)}.",
            "Let one item match each table.",
        )
    return rules[0] if rules else None


def _has(conn: Conn, table: Table, rule: IdentityRule) -> bool:
    if table.replica_identity != rule.identity:
        return False
    if rule.index is None:
        return True
    found = run(conn, _INDEX.format(oid=table.oid), "the replica identity's index")
    return [rule.index] == [name for (name,) in found]
