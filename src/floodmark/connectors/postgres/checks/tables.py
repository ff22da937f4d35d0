"""Checks the tables and the publication for what would make capture fail."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg.rows import TupleRow

from floodmark.connectors.contract.findings import Finding, name_list
from floodmark.connectors.guardrail import guarded
from floodmark.connectors.postgres.checks.role import Role
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import (
    Table,
    captured_tables,
    literal,
    quote,
    silent_tables,
    structures,
)
from floodmark.connectors.postgres.server.connection import run, server_version
from floodmark.connectors.postgres.server.publication import FOR_ALL_TABLES_CURE, for_all_tables

Conn = psycopg.Connection[TupleRow]
FILTERS_VERSION = 15

_ALL_TABLES = """
    SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    ORDER BY 1
"""

_RIGHTS = """
    SELECT oid::int8, relispartition, has_table_privilege(oid, 'SELECT'),
           has_schema_privilege(relnamespace, 'USAGE'), row_security_active(oid),
           pg_has_role(relowner, 'USAGE'),
           EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident)
    FROM pg_class c WHERE oid = ANY(ARRAY[{oids}]::oid[])
"""

# Tables on which UPDATE and DELETE fail once a publication holds them.
_UNIDENTIFIED = """
    SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND CASE c.relreplident
          WHEN 'f' THEN false
          WHEN 'd' THEN NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
          WHEN 'i' THEN NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident)
          ELSE true END
    ORDER BY 1
"""


@dataclass(frozen=True)
class _Captured:
    table: Table
    is_partition: bool
    readable: bool
    schema_usable: bool
    hidden_rows: bool
    owned: bool
    identity_index: bool

    @property
    def name(self) -> str:
        return self.table.full_name

    @property
    def identity(self) -> str:
        kind = self.table.replica_identity
        if kind == "f":
            return "full"
        if kind == "i" and self.identity_index:
            return "index"
        return "default" if kind == "d" and self.table.has_key else "none"


def _captured(conn: Conn, options: PostgresOptions) -> list[_Captured]:
    tables = captured_tables(conn, options)
    if not tables:
        return []
    oids = ",".join(str(table.oid) for table in tables)
    rights = {row[0]: row[1:] for row in run(conn, _RIGHTS.format(oids=oids), "the privileges on the tables")}
    return [_Captured(table, *rights[table.oid]) for table in tables if table.oid in rights]


def _emitting(captured: Sequence[_Captured], via_root: bool) -> list[_Captured]:
    """Return the tables under whose names changes come: partitions, or the tables that they belong to."""
    return [item for item in captured if (not item.is_partition if via_root else item.table.kind == "r")]


def check_tables(conn: Conn, options: PostgresOptions, snapshot: bool) -> list[Finding]:
    """Check that captured tables exist, can be read if a snapshot may be taken, and identify their rows."""
    captured = _captured(conn, options)
    emitting = _emitting(captured, options.publish_via_partition_root)
    if not emitting:
        return _silent(options, captured, True) or [_no_tables(conn, options)]
    names = [item.name for item in emitting]
    findings = [Finding("tables", "ok", f"{len(names)} captured: {name_list(names)}")]
    findings += _silent(options, captured, False)
    findings += _unmatched_filters(options, captured)
    findings += guarded(len(captured), options)
    if snapshot:
        findings += _rights(options, emitting)
    findings += _identity(conn, emitting)
    return findings


def silent_tables_text(names: Sequence[str], via_root: bool) -> tuple[str, str]:
    """Return the problem with captured tables under whose names no changes come, and the cure."""
    if via_root:
        text = f"Changes of {name_list(names)} come as those of their root tables, which the filters leave out."
        return text, "Let table.include.list match the root tables."
    text = f"Changes of {name_list(names)} come as those of their partitions, which the filters leave out."
    return text, "Set publish.via.partition.root to true, or let table.include.list match the partitions."


def _silent(options: PostgresOptions, captured: Sequence[_Captured], all_are: bool) -> list[Finding]:
    via_root = options.publish_via_partition_root
    silent = silent_tables([item.table for item in captured], via_root)
    if not silent or not (all_are or options.table_include_list):
        return []
    text, fix = silent_tables_text([table.full_name for table in silent], via_root)
    return [Finding("tables", "error" if all_are else "warning", text, fix)]


def _no_tables(conn: Conn, options: PostgresOptions) -> Finding:
    existing = [str(row[0]) for row in run(conn, _ALL_TABLES, "the list of tables")]
    if not existing:
        return Finding("tables", "error", f"Database {options.dbname} has no tables.", "Create them first.")
    text = f"No table of database {options.dbname} matches the filters."
    wanted = [pattern.pattern.replace("\\", "") for pattern in options.table_include_list]
    close = [name for word in wanted for name in difflib.get_close_matches(word, existing, n=1)]
    hint = f"Did you mean {name_list(close)}?" if close else f"It has {name_list(existing)}."
    return Finding("tables", "error", text, f"Correct table.include.list. {hint}")


def _unmatched_filters(options: PostgresOptions, captured: Sequence[_Captured]) -> list[Finding]:
    names = [item.name for item in captured]
    unmatched = [
        pattern.pattern for pattern in options.table_include_list if not any(pattern.fullmatch(name) for name in names)
    ]
    if not unmatched:
        return []
    text = f"Nothing matches {name_list(unmatched)} of table.include.list."
    return [Finding("tables", "warning", text, "Correct the name, unless the table is yet to be created.")]


def _rights(options: PostgresOptions, captured: Sequence[_Captured]) -> list[Finding]:
    patterns = options.snapshot_include_collection_list
    captured = [item for item in captured if not patterns or options.names_for_snapshot(item.name)]
    unusable = sorted({item.table.schema for item in captured if not item.schema_usable})
    unreadable = [item for item in captured if not item.readable]
    findings = []
    if unusable:
        fix = f"GRANT USAGE ON SCHEMA {', '.join(map(quote, unusable))} TO {quote(options.user)}."
        text = f"No USAGE on schema {name_list(unusable)}."
        findings.append(Finding("select privilege", "error", text, fix))
    if unreadable:
        text = f"No SELECT on {name_list([item.name for item in unreadable])}: the snapshot would fail."
        tables = ", ".join(item.table.quoted for item in unreadable)
        fix = f"GRANT SELECT ON {tables} TO {quote(options.user)}."
        findings.append(Finding("select privilege", "error", text, fix))
    hidden = [item.name for item in captured if item.hidden_rows]
    if hidden:
        text = f"Row-level security hides rows of {name_list(hidden)} from the snapshot."
        fix = f"ALTER ROLE {quote(options.user)} BYPASSRLS."
        findings.append(Finding("select privilege", "error", text, fix))
    return findings or [Finding("select privilege", "ok", "all captured tables can be read")]


def _identity(conn: Conn, captured: Sequence[_Captured]) -> list[Finding]:
    findings = []
    by_identity: dict[str, list[_Captured]] = {}
    for item in captured:
        by_identity.setdefault(item.identity, []).append(item)
    good = [f"{len(items)} {kind}" for kind, items in by_identity.items() if kind != "none"]
    if good:
        findings.append(Finding("replica identity", "ok", ", ".join(good)))
    if by_identity.get("none"):
        names = [item.name for item in by_identity["none"]]
        findings.append(
            Finding(
                "replica identity",
                "warning",
                f"None for {name_list(names)}: once published, UPDATE and DELETE on them fail at the source.",
                "Add a primary key, or ALTER TABLE … REPLICA IDENTITY FULL (or USING INDEX …).",
            )
        )
    keys = structures(conn, {item.table.oid: set() for item in captured})
    keyless = [item.name for item in captured if not keys[item.table.oid].key]
    if keyless:
        text = f"{name_list(keyless)} without a key: events have none, and their order per row is not kept."
        fix = "Add a primary key, or a unique index on NOT NULL columns."
        findings.append(Finding("keys", "warning", text, fix))
    else:
        findings.append(Finding("keys", "ok", "all captured tables have one"))
    return findings


def check_publication(conn: Conn, options: PostgresOptions, role: Role) -> list[Finding]:
    """Check that the publication holds the captured tables, or can be created."""
    name = options.publication_name
    sql = f"""
        SELECT pubinsert, pubupdate, pubdelete, pubtruncate, puballtables, pubviaroot, pg_has_role(pubowner, 'USAGE')
        FROM pg_publication WHERE pubname = {literal(name)}
    """
    rows = run(conn, sql, "the publications")
    captured = _captured(conn, options)
    if not rows:
        findings = [_creatable(options, captured, role)]
        if options.publication_autocreate_mode == "all_tables" and findings[0].status != "error":
            findings += _harmful(conn, captured)
        return findings
    *_, all_tables, via_root, owned = rows[0]
    if all_tables and options.publication_autocreate_mode == "filtered":
        return [Finding("publication", "error", for_all_tables(name), FOR_ALL_TABLES_CURE)]
    emitting = _emitting(captured, via_root)
    findings = [_content(conn, options, emitting, owned)]
    findings += _published_operations(options, dict(zip("cudt", rows[0][:4], strict=True)))
    if via_root != options.publish_via_partition_root:
        text = f"Publication {name} has publish_via_partition_root = {via_root}, the options say otherwise."
        fix = "Set publish.via.partition.root to the publication's value."
        findings.append(Finding("publication", "error", text, fix))
    if server_version(conn) >= FILTERS_VERSION:
        findings += _filters(conn, options, emitting)
    return findings


def _creatable(options: PostgresOptions, captured: Sequence[_Captured], role: Role) -> Finding:
    name, mode = options.publication_name, options.publication_autocreate_mode
    missing = f"Publication {name} does not exist"
    tables = ", ".join(item.table.quoted for item in captured) or "…"
    command = f"CREATE PUBLICATION {quote(name)} FOR TABLE {tables}"
    if mode == "disabled" or role.standby:
        why = "the server is a standby" if role.standby else "publication.autocreate.mode is disabled"
        fix = f"As a superuser on the primary: {command}."
        return Finding("publication", "error", f"{missing}, and {why}.", fix)
    if role.superuser:
        return Finding("publication", "ok", f"{name} will be created ({mode})")
    if mode == "all_tables":
        text = f"{missing}, and only a superuser can create it for all tables."
        fix = f"Set publication.autocreate.mode to filtered, or as a superuser: {command}."
        return Finding("publication", "warning" if role.admin else "error", text, fix)
    if not role.create:
        grant = f"GRANT CREATE ON DATABASE {quote(options.dbname)} TO {quote(options.user)}"
        fix = f"{grant}, or as a superuser: {command}."
        return Finding("publication", "error", f"{missing}, and {options.user} may not create it.", fix)
    foreign = [item.name for item in captured if not item.owned]
    if mode == "filtered" and foreign:
        text = f"{missing}, and {options.user} cannot add {name_list(foreign)}: only a table's owner can."
        fix = f"Make the role a member of the owner, or as a superuser: {command}."
        return Finding("publication", "error", text, fix)
    return Finding("publication", "ok", f"{name} will be created ({mode})")


def _harmful(conn: Conn, captured: Sequence[_Captured]) -> list[Finding]:
    """Report the tables, outside the captured ones, that publishing all tables would break."""
    known = {item.name for item in captured}
    rows = run(conn, _UNIDENTIFIED, "the replica identities")
    others = [str(name) for (name,) in rows if name not in known]
    if not others:
        return []
    text = f"A publication for all tables makes UPDATE and DELETE fail on {name_list(others)}: no key."
    return [Finding("publication", "warning", text, "Set publication.autocreate.mode to filtered.")]


def _content(conn: Conn, options: PostgresOptions, emitting: Sequence[_Captured], owned: bool) -> Finding:
    name, mode = options.publication_name, options.publication_autocreate_mode
    sql = f"SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = {literal(name)}"
    published = {str(row[0]) for row in run(conn, sql, "the publication's tables")}
    missing = [item for item in emitting if item.name not in published]
    names = name_list([item.name for item in missing])
    if mode == "filtered":
        # Each start sets its tables to the captured ones where they differ.
        foreign = [item.name for item in emitting if not item.owned]
        if owned and not foreign:
            return Finding("publication", "ok", f"{name} will be set to the captured tables")
        text = f"{options.user} may not set the tables of publication {name}: only its owner can, owning the tables."
        fix = "Set publication.autocreate.mode to disabled, or make the role a member of the owner."
        return Finding("publication", "error", text, fix)
    if not missing:
        return Finding("publication", "ok", f"{name} holds all captured tables")
    text = f"Publication {name} lacks {names}: their changes would not arrive."
    command = f"ALTER PUBLICATION {quote(name)} ADD TABLE {', '.join(item.table.quoted for item in missing)}"
    return Finding("publication", "error", text, f"As the owner of publication and tables: {command}.")


def _published_operations(options: PostgresOptions, published: dict[str, bool]) -> list[Finding]:
    names = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}
    missing = [names[op] for op, is_there in published.items() if not (is_there or options.skips(op))]
    if not missing:
        return []
    text = f"Publication {options.publication_name} does not publish {name_list(missing)}."
    name = quote(options.publication_name)
    fix = f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')."
    return [Finding("publication", "error", text, fix)]


def _filters(conn: Conn, options: PostgresOptions, emitting: Sequence[_Captured]) -> list[Finding]:
    sql = f"""
        SELECT r.prrelid::int8, r.prqual IS NOT NULL
        FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
        WHERE p.pubname = {literal(options.publication_name)}
          AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL)
    """
    filtered: dict[int, bool] = {}
    for oid, rows in run(conn, sql, "the publication's filters"):
        filtered[oid] = rows or filtered.get(oid, False)
    names = [item.name for item in emitting if item.table.oid in filtered]
    if not names:
        return []
    text = f"The publication filters rows or columns of {name_list(names)}; the snapshot doesn't."
    if any(filtered.get(item.table.oid) for item in emitting):
        return [Finding("publication", "error", text, "Publish the tables without WHERE.")]
    fix = "Name the columns in column.exclude.list, or publish the tables without a list of columns."
    return [Finding("publication", "warning", text, fix)]
