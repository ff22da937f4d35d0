"""Plans and reads a batch read of one table.

All chunks are read from one held snapshot (``snapshot_holder``). If that is lost, or the table has been rewritten
meanwhile, the read fails: rows of another snapshot would not be consistent with the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import psycopg
import pyarrow as pa
from psycopg.rows import TupleRow

from floodmark.changes.typed_rows import RowVersion
from floodmark.connectors.contract.chunk import Chunk, DescribedTable, PageChunk
from floodmark.connectors.contract.conditions import Condition, SqlCondition
from floodmark.connectors.postgres.batch.conditions import to_sql
from floodmark.connectors.postgres.batch.snapshot_holder import HeldSnapshot, announce_reader
from floodmark.connectors.postgres.decode.relation import Relation
from floodmark.connectors.postgres.options import PostgresBatchOptions
from floodmark.connectors.postgres.server.catalog import Table, captured_tables, quote
from floodmark.connectors.postgres.server.connection import MIN_VERSION, connect, connection, run, server_version
from floodmark.connectors.postgres.snapshot import chunks
from floodmark.connectors.postgres.snapshot.token import ReadPointToken
from floodmark.connectors.postgres.typed_schema import keyless_relations, row_fields
from floodmark.errors import ConfigError, SourceStateError
from floodmark.json_data import Json, stored_object

AGAIN = "Load the DataFrame again (spark.read), which takes a new snapshot."

_LEAVES = """
    SELECT c.oid::int8, n.nspname, c.relname, c.relkind::text
    FROM pg_partition_tree({oid}) p JOIN pg_class c ON c.oid = p.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE p.isleaf ORDER BY c.oid
"""
# A snapshot sees the catalogs as they were; the function tells the file that the table has now.
_REWRITTEN = """
    SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = ANY(ARRAY[{oids}]::oid[]) AND c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid)
"""


def table_schema(options: PostgresBatchOptions) -> pa.Schema:
    """Return the columns of the one table that the options let through, as they are now.

    Raises:
        ConfigError: the filters match no table, or more than one.
    """
    with connection(options) as conn:
        return pa.schema(row_fields(keyless_relations(conn, [_table(conn, options)], options)[0], options))


def sql_conditions(options: PostgresBatchOptions, conditions: Sequence[Condition | None]) -> list[SqlCondition | None]:
    """Return conditions as SQL, in order; None for those that the server can't decide."""
    with connection(options) as conn:
        relation = keyless_relations(conn, [_table(conn, options)], options)[0]
        utf8 = conn.info.parameter_status("server_encoding") == "UTF8"
    return [None if one is None else to_sql(one, relation, options, utf8) for one in conditions]


def plan(options: PostgresBatchOptions, load: str, schema: pa.Schema, conditions: Sequence[str]) -> Sequence[Chunk]:
    """Take a snapshot and return the chunks of the table in it.

    The snapshot is held until no task has read for ``batch.snapshot.idle.ms``, or until Spark ends.

    Args:
        options: the source's options.
        load: identifies the loaded DataFrame; when it is planned again, it sees the same snapshot.
        schema: the columns to read, some or all of the table's.
        conditions: SQL conditions on the rows to read.

    Raises:
        ConfigError: the options or the schema don't fit the table.
    """
    known = HeldSnapshot.known(load)
    held = known or HeldSnapshot.open(options, load)
    try:
        with connection(options) as conn:
            return _chunks(conn, options, schema, conditions, held.token)
    except BaseException:
        if known is None:
            held.release()
        raise


def read(options: PostgresBatchOptions, schema: pa.Schema, chunk: Chunk) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk.

    Raises:
        SourceStateError: the snapshot is gone, or the table has been rewritten.
    """
    relation: Relation = chunk.table.structure
    version = RowVersion(relation, options, pa.struct(list(schema)))
    name = f"{relation.schema}.{relation.table}"
    conn = connect(options)
    try:
        if not chunks.import_snapshot(conn, ReadPointToken.from_json(chunk.token)):
            raise SourceStateError(
                f"The snapshot of {name} that this batch read began with is gone: no task read from it for "
                f"batch.snapshot.idle.ms ({options.batch_snapshot_idle_ms} ms), or the server ended its connection.",
                AGAIN,
            )
        announce_reader(conn, stored_object(chunk.token, "The token of a read point").integer("lock"))
        if not chunks.same_file(conn, chunk.table, chunk.file):
            raise _rewritten(name)
        conditions = [chunk.condition] if chunk.condition else []
        query = chunks.chunk_query(chunk, conditions)
        for _, columns in chunks.copy_rows(conn, query, len(relation.columns)):
            yield pa.RecordBatch.from_arrays(version.values(columns), schema=schema)
    finally:
        conn.close()


def _rewritten(name: str) -> SourceStateError:
    return SourceStateError(
        f"The table {name} was dropped, truncated or rewritten after the snapshot of this batch read.", AGAIN
    )


def _table(conn: psycopg.Connection[TupleRow], options: PostgresBatchOptions) -> Table:
    """Return the table to read; partitions that are matched along with their partitioned table are part of it."""
    if server_version(conn) < MIN_VERSION:
        raise SourceStateError(
            f"The server is PostgreSQL {server_version(conn)}; {MIN_VERSION} or later is needed.", "Upgrade the server."
        )
    matched = captured_tables(conn, options)
    oids = {table.oid for table in matched}
    tables = [table for table in matched if table.root == table.oid or table.root not in oids]
    if len(tables) != 1:
        found = ", ".join(table.full_name for table in tables[:5]) or "none"
        raise ConfigError(
            f"A batch read needs exactly one table; the filters match {len(tables)} of the database "
            f"'{options.dbname}' ({found}).",
            "Set table.include.list to one table, as schema.table; for a stream give topic.prefix and state.dir.",
        )
    return tables[0]


def _chunks(
    conn: psycopg.Connection[TupleRow],
    options: PostgresBatchOptions,
    schema: pa.Schema,
    conditions: Sequence[str],
    token: dict[str, Json],
) -> Sequence[Chunk]:
    # The catalogs are read in the snapshot too, so partitions and columns are those of its rows.
    if not chunks.import_snapshot(conn, ReadPointToken.from_json(token)):
        raise SourceStateError("The snapshot of a batch read was lost while its tasks were planned.", AGAIN)
    table = _table(conn, options)
    relation = _selected(keyless_relations(conn, [table], options)[0], schema, options)
    if options.batch_where:
        _check_where(conn, table, options.batch_where)
        # The line break ends a comment.
        conditions = [f"({options.batch_where}\n)", *conditions]
    step = max(options.snapshot_chunk_bytes // chunks.block_size(conn), 1)
    leaves = _leaves(conn, table)
    # Spark may plan a DataFrame again, long after the snapshot. Such a table seems to be empty.
    if found := run(conn, _REWRITTEN.format(oids=",".join(map(str, leaves))), "the files of the table"):
        raise _rewritten(found[0][0])
    sizes = chunks.table_pages(conn, list(leaves))
    files = chunks.fingerprints(conn, list(leaves))
    return [
        PageChunk(
            table=DescribedTable(oid, name, relation),
            file=files[oid],
            token=token,
            condition=" AND ".join(conditions),
            first=first,
            last=min(first + step, sizes[oid]),
        )
        for oid, name in leaves.items()
        if oid in sizes and oid in files
        for first in range(0, sizes[oid], step)
    ]


def _selected(relation: Relation, schema: pa.Schema, options: PostgresBatchOptions) -> Relation:
    """Return the relation with only the schema's columns.

    Raises:
        ConfigError: the relation lacks a column or has it with another type, or the schema has no columns.
    """
    held = dict(row_fields(relation, options))
    for field in schema:
        if field.name not in held:
            raise ConfigError(
                f"The schema has a column '{field.name}', which {relation.schema}.{relation.table} has not: "
                f"its columns are {', '.join(held)}.",
                "Load the DataFrame again, or correct the schema that was given.",
            )
        if field.type != held[field.name]:
            raise ConfigError(
                f"The schema has the column '{field.name}' as {field.type}; in {relation.schema}.{relation.table} it "
                f"is read as {held[field.name]}.",
                "Load the DataFrame again, or correct the schema that was given; cast in Spark.",
            )
    if not len(schema):
        raise ConfigError(
            f"{relation.schema}.{relation.table} has no columns to read, or the schema that was given has none.",
            "Name at least one column that is not generated.",
        )
    wanted = set(schema.names)
    return dataclasses.replace(relation, columns=tuple(c for c in relation.columns if c.name in wanted))


def _check_where(conn: psycopg.Connection[TupleRow], table: Table, where: str) -> None:
    """Make the server parse the condition, also without parentheses, so that none in it can close the outer ones."""
    for condition in (where, f"({where}\n)"):
        statement = f"SELECT FROM {table.quoted} WHERE {condition}\nLIMIT 0"
        run(conn, statement, f"the option 'batch.where' ({where})", "Correct the condition.", one=True)


def _leaves(conn: psycopg.Connection[TupleRow], table: Table) -> dict[int, str]:
    """Return the tables that hold the rows: OIDs and names for SQL."""
    if table.kind != "p":
        return {table.oid: table.quoted}
    leaves = run(conn, _LEAVES.format(oid=table.oid), "the partitions of the table")
    for _, schema, name, kind in leaves:
        if kind == "f":
            raise SourceStateError(
                f"The partition {schema}.{name} of {table.full_name} is a foreign table, which no snapshot holds.",
                "Read the other partitions one by one.",
            )
    return {oid: f"{quote(schema)}.{quote(name)}" for oid, schema, name, kind in leaves if kind == "r"}
