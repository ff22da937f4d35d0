"""Reads tables, keys, columns and types from the system catalogs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg.rows import TupleRow

from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.server.connection import run
from floodmark.connectors.postgres.server.structure import CatalogColumn, CurrentStructure
from floodmark.connectors.postgres.types.registry import MAPPED
from floodmark.connectors.postgres.types.type_info import TypeInfo, type_from_list

_TABLES = """
    SELECT c.oid::int8, n.nspname, c.relname, c.relkind::text, c.relreplident::text,
           greatest(c.reltuples, 0)::int8, EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary),
           coalesce(pg_partition_root(c.oid)::oid, c.oid)::int8
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
      AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'
    ORDER BY n.nspname, c.relname
"""

# A table's keys, the best first: its primary key, else a unique index over NOT NULL columns. The log marks the
# columns of a primary key only if it is not deferrable.
_KEYS = """
    SELECT relid, key, logged FROM (
        SELECT i.indrelid::int8 AS relid, i.indisprimary, i.indexrelid, i.indisprimary AND i.indimmediate AS logged,
               array_agg(a.attname::text ORDER BY k.n) AS key
        FROM pg_index i
        CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, n)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE k.n <= i.indnkeyatts AND i.indrelid = ANY(ARRAY[{oids}]::oid[])
          AND (i.indisprimary OR (i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
                                  AND i.indexprs IS NULL))
        GROUP BY 1, 2, 3, 4 HAVING bool_and(a.attnotnull)
    ) keys ORDER BY relid, indisprimary DESC, indexrelid
"""

_IDENTITY = """
    SELECT i.indrelid::int8, array_agg(a.attname::text)
    FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
    WHERE i.indisreplident AND i.indrelid = ANY(ARRAY[{oids}]::oid[]) GROUP BY 1
"""

_COLUMNS = """
    SELECT a.attrelid::int8,
           array_agg(CASE WHEN a.attisdropped THEN NULL ELSE a.attname::text END ORDER BY a.attnum),
           array_agg(a.atttypid::int8 ORDER BY a.attnum),
           array_agg(a.attgenerated <> '' ORDER BY a.attnum),
           array_agg(a.attnotnull OR coalesce(t.typnotnull, false) ORDER BY a.attnum)
    FROM pg_attribute a LEFT JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attnum > 0 AND a.attrelid = ANY(ARRAY[{oids}]::oid[]) GROUP BY 1
"""

# pg_get_expr is given 0 for the table, as a default refers to no columns; with the table's OID, the function would wait
# for its lock.
_DEFAULTS = """
    SELECT d.adrelid::int8, jsonb_object_agg(a.attname::text, pg_get_expr(d.adbin, 0))
    FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE a.attgenerated = '' AND d.adrelid = ANY(ARRAY[{oids}]::oid[]) GROUP BY 1
"""

_TYPES = """
    WITH RECURSIVE wanted AS (
        SELECT oid FROM pg_type WHERE oid = ANY(ARRAY[{oids}]::oid[])
        UNION
        SELECT b.oid FROM wanted w JOIN pg_type t ON t.oid = w.oid JOIN pg_type b ON b.oid IN (t.typbasetype, t.typelem)
    )
    SELECT t.oid::int8, t.typname::text, t.typtype::text, t.typbasetype::int8, t.typtypmod,
           coalesce((SELECT e.oid::int8 FROM pg_type e WHERE e.oid = t.typelem AND e.typarray = t.oid), 0),
           coalesce((SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e
                     WHERE e.enumtypid = t.oid), '{{}}')
    FROM wanted w JOIN pg_type t ON t.oid = w.oid
"""

Conn = psycopg.Connection[TupleRow]


@dataclass(frozen=True)
class Table:
    """A table that exists now.

    Attributes:
        kind: r (ordinary) or p (partitioned).
        rows: the planner's estimate.
        root: OID of the partitioned table that it is a partition of, at the top; else its own.
    """

    oid: int
    schema: str
    name: str
    kind: str
    replica_identity: str
    rows: int
    has_key: bool
    root: int

    @property
    def full_name(self) -> str:
        """``schema.table``, as the filters see it."""
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        """The name for an SQL statement."""
        return f"{quote(self.schema)}.{quote(self.name)}"


def quote(name: str) -> str:
    """Return an identifier for an SQL statement."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a string literal for an SQL statement."""
    escaped = text.replace("'", "''")
    return f"E'{escaped}'".replace("\\", "\\\\") if "\\" in text else f"'{escaped}'"


def running_transactions(conn: Conn) -> tuple[int, int]:
    """Return the oldest transaction that hasn't ended, and the next one to begin, as 64 bit numbers."""
    statement = "SELECT pg_snapshot_xmin(s)::text::int8, pg_snapshot_xmax(s)::text::int8 FROM pg_current_snapshot() s"
    oldest, following = run(conn, statement, "the running transactions")[0]
    return oldest, following


def captured_tables(conn: Conn, options: PostgresOptions) -> list[Table]:
    """Return the existing tables that the filters let through, by name."""
    return [table for table in _all_tables(conn) if options.captures(table.schema, table.name)]


def stored_tables(conn: Conn, options: PostgresOptions) -> list[tuple[Table, Table]]:
    """Return the tables that hold captured rows, each with the one under whose name its changes come.

    That is the table itself, or the root of a partition with ``publish.via.partition.root``.
    """
    tables = _all_tables(conn)
    roots = {table.oid: table for table in tables} if options.publish_via_partition_root else {}
    pairs = [(table, roots.get(table.root, table)) for table in tables if table.kind == "r"]
    return [(table, published) for table, published in pairs if options.captures(published.schema, published.name)]


def silent_tables(tables: Sequence[Table], via_root: bool) -> list[Table]:
    """Return captured tables under whose names no changes come.

    Args:
        tables: those that the filters let through.
        via_root: whether changes of partitions come as those of their roots.

    Returns:
        Roots of which no partition is captured or, with ``via_root``, partitions whose root isn't.
    """
    if via_root:
        captured = {table.oid for table in tables}
        return [table for table in tables if table.root not in captured]
    heard = {table.root for table in tables if table.kind == "r"}
    return [table for table in tables if table.root not in heard]


def _all_tables(conn: Conn) -> list[Table]:
    return [Table(*row) for row in run(conn, _TABLES, "the list of tables")]


def key_names(conn: Conn, oids: Collection[int]) -> dict[int, list[str]]:
    """Return the columns of the tables' keys, in the key's order; tables without one are left out."""
    return {oid: keys[0][0] for oid, keys in _all_keys(conn, oids).items()}


def _all_keys(conn: Conn, oids: Collection[int]) -> dict[int, list[tuple[list[str], bool]]]:
    """Return each table's keys, the best first, and whether the log marks their columns."""
    keys: dict[int, list[tuple[list[str], bool]]] = {}
    for oid, names, logged in run(conn, _KEYS.format(oids=_oid_list(oids)), "the primary keys"):
        keys.setdefault(oid, []).append((names, logged))
    return keys


def structures(conn: Conn, relations: Mapping[int, set[int]]) -> dict[int, CurrentStructure]:
    """Return the structure of tables that Relation messages don't contain, by table OID.

    Args:
        conn: an ordinary connection.
        relations: the type OIDs of the columns, by table OID.
    """
    if not relations:
        return {}
    oids = _oid_list(relations)
    keys = _all_keys(conn, relations)
    identity: dict[int, list[str]] = dict(run(conn, _IDENTITY.format(oids=oids), "the replica identities"))
    columns = {
        oid: list(zip(*rest, strict=True)) for oid, *rest in run(conn, _COLUMNS.format(oids=oids), "the columns")
    }
    defaults: dict[int, dict[str, str]] = dict(run(conn, _DEFAULTS.format(oids=oids), "the columns' defaults"))
    others = {oid for type_oids in relations.values() for oid in type_oids if oid not in MAPPED}
    types: dict[int, TypeInfo] = {}
    if others:
        for oid, *rest in run(conn, _TYPES.format(oids=_oid_list(others)), "the types"):
            types[oid] = type_from_list(rest)
    return {
        oid: CurrentStructure(
            key=next((tuple(names) for names, _ in keys.get(oid, [])), ()),
            unmarked_key=next((tuple(names) for names, logged in keys.get(oid, []) if not logged), ()),
            identity=tuple(identity.get(oid, [])),
            required=tuple(name for name, _, _, required in columns.get(oid, []) if name is not None and required),
            defaults=defaults.get(oid, {}),
            types={} if type_oids <= MAPPED else types,
            columns=tuple(CatalogColumn(*column[:3]) for column in columns.get(oid, [])),
        )
        for oid, type_oids in relations.items()
    }


def _oid_list(oids: Collection[int]) -> str:
    return ",".join(str(int(oid)) for oid in sorted(oids))
