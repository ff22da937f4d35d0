"""Checks that options of columns and keys do what the user may expect of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from floodmark.changes.column_plan import event_key
from floodmark.config.model import matches
from floodmark.config.patterns import Pattern
from floodmark.connectors.contract.findings import Finding, name_list
from floodmark.connectors.postgres.decode.relation import Column
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.catalog import Conn, Table, captured_tables, structures
from floodmark.connectors.postgres.server.replica_identity import rule_of
from floodmark.connectors.postgres.server.structure import CatalogStructure
from floodmark.connectors.postgres.snapshot.chunks import describe_tables
from floodmark.connectors.postgres.types.source_types import source_type

CHECK = "columns"
FULL, DEFAULT, INDEX = "f", "d", "i"

Described = dict[str, Column]


def check_columns(conn: Conn, options: PostgresOptions) -> list[Finding]:
    """Check that options of columns match some, that masks hide them, and that deletes contain the keys."""
    if not options.shapes_columns:
        return []
    tables = captured_tables(conn, options)
    listed = describe_tables(conn, [table.oid for table in tables], options.publication_name) if tables else {}
    known = structures(conn, {oid: {int(column[1]) for column in columns} for oid, columns in listed.items()})
    described = {
        table.full_name: {
            name: Column(name, oid, modifier, False, not required)
            for name, oid, modifier, required in listed[table.oid]
        }
        for table in tables
    }
    findings = [*_unmatched(options, described), *_unhidden(options, tables, described, known)]
    findings += [finding for table in tables for finding in _unknown_keys(options, table, described, known[table.oid])]
    return findings or [Finding(CHECK, "ok", "all options of columns match some")]


def _patterns(options: PostgresOptions) -> Iterator[tuple[str, Sequence[Pattern]]]:
    yield "column.include.list", options.column_include_list
    yield "column.exclude.list", options.column_exclude_list
    yield "column.propagate.source.type", options.column_propagate_source_type
    yield "message.key.columns", options.message_key_columns
    for name, rules in (
        ("column.truncate.to.…", options.column_truncate),
        ("column.mask.with.…", options.column_mask),
        ("column.mask.hash.…", (*options.column_hash, *options.column_hash_v2)),
    ):
        for rule in rules:
            yield name, rule.columns


def _unmatched(options: PostgresOptions, described: dict[str, Described]) -> Iterator[Finding]:
    names = [f"{table}.{column}" for table, columns in described.items() for column in columns]
    for option, patterns in _patterns(options):
        lacking = [pattern.pattern for pattern in patterns if not any(pattern.fullmatch(name) for name in names)]
        if lacking:
            text = f"No captured column matches {name_list(lacking)} of {option}."
            yield Finding(CHECK, "warning", text, "Correct the name (schema.table.column), unless it is yet to come.")


def _unhidden(
    options: PostgresOptions,
    tables: Sequence[Table],
    described: dict[str, Described],
    known: Mapping[int, CatalogStructure],
) -> Iterator[Finding]:
    """Report columns that a mask matches but does not hide."""
    rules = [rule.columns for rule in options.column_mask]
    rules += [rule.columns for rule in (*options.column_hash, *options.column_hash_v2)]
    clear = []
    for table in tables:
        types = known[table.oid].types
        for column in described[table.full_name].values():
            name = f"{table.full_name}.{column.name}"
            hidden = source_type(column.type_oid, column.modifier, types).text
            if not hidden and options.has_column(name) and any(matches(rule, name) for rule in rules):
                clear.append(name)
    if clear:
        text = f"Masks are for text alone, so the values of {name_list(clear)} are not hidden."
        yield Finding(CHECK, "warning", text, "Leave them out by column.exclude.list, unless they may be seen.")


def _unknown_keys(
    options: PostgresOptions, table: Table, described: dict[str, Described], structure: CatalogStructure
) -> Iterator[Finding]:
    """Report columns of ``message.key.columns`` that the old row of a delete lacks."""
    rule = rule_of(table, options)
    identity = table.replica_identity if rule is None else rule.identity
    if identity == FULL:
        return
    names = list(described[table.full_name])
    key = event_key(table.schema, table.name, names, structure.key, options)
    held = {DEFAULT: structure.key if table.has_key else (), INDEX: structure.identity}.get(identity, ())
    lacking = [name for name in key if name not in held]
    if options.message_key_columns and tuple(key) != structure.key and lacking:
        text = f"Deletes from {table.full_name} do not hold {name_list(lacking)} of its message.key.columns."
        fix = f"ALTER TABLE {table.quoted} REPLICA IDENTITY FULL."
        yield Finding(CHECK, "warning", text, fix)
