"""The statements of PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from floodmark.errors import TargetError, TargetUnfitError
from floodmark.sinks.relational.dialect import Session, TargetColumn, TargetTable
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.parts import POSITION
from floodmark.sinks.relational.postgres.copy_text import representable
from floodmark.sinks.relational.postgres.csv_rows import selected
from floodmark.sinks.relational.postgres.session import TITLE, PostgresSession
from floodmark.sinks.relational.postgres.types import accepts, column_type, compared_as, holds
from floodmark.sinks.relational.url import Kind

_LONGEST = 63
"""Bytes of a name; PostgreSQL cuts longer ones. Manual: "Identifiers and Key Words"."""
_BY_PLACE = 140_000
"""The version from which on rows are found by their places."""
_PAGES = 8192
Columns = Sequence[tuple[int, str, str]]


class PostgresDialect:
    """What PostgreSQL does and how (``Dialect``).

    Args:
        options: the sink's.
    """

    kind: Kind = "postgres"
    title = TITLE
    folds_names = False
    # Each table that is made leaves dead rows in the catalog.
    keeps_stages = True

    def __init__(self, options: JdbcOptions) -> None:
        self._options = options
        self._schema = options.connection_url.parameters.get("currentSchema", "")

    def connect(self) -> PostgresSession:
        """Open a connection (``Dialect``)."""
        session = PostgresSession(self._options)
        if not self._schema:
            ((found,),) = session.query("SELECT current_schema()", doing="reading the schema")
            if found is None:
                session.close()
                raise TargetError(
                    f"The user '{self._options.connection_username}' has no schema in the target "
                    f"{self._options.connection_url}.",
                    "Name one in connection.url, such as ?currentSchema=public, and grant USAGE and CREATE on it.",
                )
            self._schema = str(found)
        return session

    def schema(self) -> str:
        """Return the schema of the targets."""
        return self._schema

    def identity(self, session: Session) -> tuple[str, ...]:
        """Return the cluster's identifier and the database's name."""
        statement = "SELECT system_identifier::text, current_database()::text FROM pg_control_system()"
        ((system, database),) = session.query(statement, doing="reading the server's identity")
        return system, database

    def quote(self, name: str) -> str:
        """Return a name as statements have it."""
        return '"' + name.replace('"', '""') + '"'

    def full_name(self, name: str) -> str:
        """Return a table's name with that of its schema."""
        return f"{self.quote(self._schema)}.{self.quote(name)}"

    def prove_name(self, name: str, what: str) -> None:
        """Check a name (``Dialect``)."""
        if not name or "\0" in name or len(name.encode()) > _LONGEST:
            raise TargetUnfitError(
                f"The {what} '{name}' can't be in PostgreSQL, which cuts names after {_LONGEST} bytes.",
                "Shorten it with collection.name.format, or leave the column out with column.exclude.list.",
            )

    def column_type(self, kind: pa.DataType, keys: int = 0) -> str:  # noqa: ARG002
        """Return the type of a column (``Dialect``)."""
        found = column_type(kind)
        if found is None:
            raise TargetUnfitError(
                f"PostgreSQL has no type for values of the type {kind}.", "Leave the column out, or convert it."
            )
        return found

    def position_type(self) -> str:
        """Return the type of positions."""
        return 'text COLLATE "C"'

    def position_order(self) -> str:
        """Return what follows a position in a comparison."""
        return ' COLLATE "C"'

    def text_types(self) -> tuple[str, str, str]:
        """Return the types of Floodmark's own tables (``Dialect``)."""
        return "text", "text", "boolean"

    def flag(self, value: bool) -> bool:
        """Return a value for a flag."""
        return value

    def accepts(self, found: str, kind: pa.DataType) -> bool:
        """Return whether a column takes the values of a type (``Dialect``)."""
        return accepts(found, kind)

    def widens(self, found: str, kind: pa.DataType) -> bool:
        """Return whether the type for values holds what a column has (``Dialect``)."""
        wanted = column_type(kind)
        return wanted is not None and holds(wanted, found)

    def table(self, session: Session, name: str) -> TargetTable | None:
        """Return what a target is like (``Dialect``)."""
        place = (self._schema, name)
        found = session.query(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod), "
            "t.typtype = 'd' OR t.typname IN ('varchar', 'bpchar', 'bit', 'varbit') "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
            "JOIN pg_type t ON t.oid = a.atttypid "
            "WHERE n.nspname = %s AND c.relname = %s ORDER BY a.attnum",
            place,
            "reading a table's columns",
        )
        if not found:
            return None
        unique = session.query(
            "SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) "
            "WHERE n.nspname = %s AND c.relname = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL "
            "AND i.indexprs IS NULL GROUP BY i.indexrelid, i.indisprimary ORDER BY i.indisprimary DESC",
            place,
            "reading a table's indexes",
        )
        columns = {one: TargetColumn(one, kind, "" if is_cut else kind) for one, kind, is_cut in found}
        return TargetTable(columns, [frozenset(names) for (names,) in unique])

    def create(self, name: str, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> str:
        """Return the statement that makes a table (``Dialect``)."""
        parts = [f"{self.quote(one)} {kind}" for one, kind in columns]
        if key:
            parts.append(f"PRIMARY KEY ({', '.join(map(self.quote, key))})")
        return f"CREATE TABLE IF NOT EXISTS {self.full_name(name)} ({', '.join(parts)})"

    def create_shadow(self, session: Session, name: str, target: str, key: Sequence[str]) -> Sequence[str]:
        """Return the statements that make a table for a target's rows (``Dialect``)."""
        found = session.query(
            "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
            "AND attnotnull",
            (self.full_name(target),),
            "reading a table's columns",
        )
        shadow = self.full_name(name)
        made = f"CREATE TABLE {shadow} (LIKE {self.full_name(target)})"
        loose = [f"ALTER COLUMN {self.quote(one)} DROP NOT NULL" for (one,) in found if one not in key]
        parts = [*loose, f"ADD PRIMARY KEY ({', '.join(map(self.quote, key))})"]
        return made, f"ALTER TABLE {shadow} {', '.join(parts)}"

    def add_columns(self, name: str, columns: Sequence[tuple[str, str]]) -> str:
        """Return the statement that adds columns (``Dialect``)."""
        parts = [f"ADD COLUMN IF NOT EXISTS {self.quote(one)} {kind}" for one, kind in columns]
        return f"ALTER TABLE {self.full_name(name)} {', '.join(parts)}"

    def change_types(self, name: str, columns: Sequence[tuple[str, str]]) -> str:
        """Return the statement that widens columns (``Dialect``)."""
        parts = [f"ALTER COLUMN {self.quote(one)} TYPE {kind}" for one, kind in columns]
        return f"ALTER TABLE {self.full_name(name)} {', '.join(parts)}"

    def create_stage(self, name: str, columns: pa.Schema, temporary: bool) -> str:
        """Return the statement that makes a staging table (``Dialect``)."""
        parts = [f"{one.name} {self._stage_type(one)}" for one in columns]
        kind, end = (
            ("TEMPORARY", " ON COMMIT DELETE ROWS") if temporary else ("UNLOGGED", " WITH (autovacuum_enabled = off)")
        )
        return f"CREATE {kind} TABLE {self.stage_name(name, temporary)} ({', '.join(parts)}){end}"

    def _stage_type(self, field: pa.Field) -> str:
        return self.position_type() if field.name == "p" else self.column_type(field.type)

    def stage_name(self, name: str, temporary: bool) -> str:
        """Return the name of a staging table."""
        return f"pg_temp.{self.quote(name)}" if temporary else self.full_name(name)

    def drop_stage(self, name: str, temporary: bool) -> str:
        """Return the statement that drops a staging table."""
        return f"DROP TABLE IF EXISTS {self.stage_name(name, temporary)}"

    def drop_own(self, stage: str) -> str:
        """Return the statement that drops a staging table of the session."""
        return f"DROP TABLE {stage}"

    def stages(self, session: Session, prefix: str) -> list[str]:
        """Return the names of staging tables (``Dialect``)."""
        found = session.query(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relkind = 'r' AND starts_with(c.relname, %s)",
            (self._schema, prefix),
            "looking for staging tables",
        )
        return [name for (name,) in found]

    def fill(self, target: str, stage: str, values: Columns, key: Columns) -> str:
        """Return the statement that fills in what the target has (``Dialect``)."""
        given = [
            f"c{number} = CASE WHEN s.u{number} THEN CAST(t.{self.quote(name)} AS {kind}) ELSE s.c{number} END"
            for number, name, kind in values
        ]
        at = [f"t.{self.quote(name)} = {_cast(f's.h{number}', kind)}" for number, name, kind in key]
        return f"UPDATE {stage} AS s SET {', '.join(given)} FROM {target} AS t WHERE {' AND '.join(at)}"

    def delete(self, target: str, stage: str, key: Columns) -> str:
        """Return the statement that deletes rows (``Dialect``)."""
        position = f"t.{self.quote(POSITION)}"
        older = f'({position} IS NULL OR {position} < s.p COLLATE "C")'
        return f"DELETE FROM {target} AS t USING {stage} AS s WHERE s.d AND {self._same(key)} AND {older}"

    def upsert(self, target: str, stage: str, columns: Columns, key: Sequence[str]) -> str:
        """Return the statement that inserts or updates rows (``Dialect``)."""
        names, values = self._values(columns)
        changed = [name for _, name, _ in columns if name not in key]
        given = ", ".join(f"{one} = excluded.{one}" for one in map(self.quote, [*changed, POSITION]))
        position = self.quote(POSITION)
        return (
            f"INSERT INTO {target} AS t ({names}, {position}) SELECT {values}, s.p FROM {stage} AS s WHERE NOT s.d "
            f"ON CONFLICT ({', '.join(map(self.quote, key))}) DO UPDATE SET {given} "
            f'WHERE t.{position} IS NULL OR t.{position} < excluded.{position} COLLATE "C"'
        )

    def append(self, target: str, stage: str, columns: Columns) -> str:
        """Return the statement that appends rows (``Dialect``)."""
        names, values = self._values(columns)
        return f"INSERT INTO {target} ({names}) SELECT {values} FROM {stage} AS s"

    def _values(self, columns: Columns) -> tuple[str, str]:
        names = ", ".join(self.quote(name) for _, name, _ in columns)
        return names, ", ".join(_cast(f"s.{_stage_column(number)}", kind) for number, _, kind in columns)

    def defer(
        self, reads: str, later: str, log: str, columns: Sequence[str], key: Sequence[int], held: Sequence[int]
    ) -> Sequence[str]:
        """Return the statements that move rows to another staging table (``Dialect``)."""
        same = " AND ".join(f"s.h{at} = r.c{number}" for at, number in zip(held, key, strict=True))
        chosen = f"{reads} AS r WHERE EXISTS (SELECT FROM {log} AS s WHERE {same} AND s.p < r.p)"
        names = ", ".join(columns)
        return f"INSERT INTO {later} ({names}) SELECT {names} FROM {chosen}", f"DELETE FROM {chosen}"

    def drop_superseded(self, reads: str, log: str, pairs: Sequence[tuple[int, int]]) -> str:
        """Return the statement that deletes rows with later changes (``Dialect``)."""
        same = " AND ".join(f"r.c{one} = s.c{other}" for one, other in pairs)
        return f"DELETE FROM {reads} AS r USING {log} AS s WHERE {same} AND r.p < s.p"

    def compared_as(self, found: str, kind: pa.DataType) -> pa.DataType | None:
        """Return the type as which a column is compared (``Dialect``)."""
        return compared_as(found, kind)

    def representable(self, values: pa.Array) -> pa.Array:
        """Return values as PostgreSQL holds them (``Dialect``)."""
        return representable(values)

    def select(self, name: str, columns: Sequence[tuple[str, pa.DataType]], condition: str = "") -> str:
        """Return the query for rows of a table (``Dialect``)."""
        where = f" WHERE {condition}" if condition else ""
        return f"SELECT {self._selected(columns)} FROM {self.full_name(name)} AS t{where}"

    def spans(self, session: Session, name: str) -> Sequence[str]:
        """Return conditions on the places of rows (``Dialect``)."""
        size = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int, current_setting("
        statement = f"{size}'server_version_num')::int"
        ((pages, version),) = session.query(statement, (self.full_name(name),), "reading the size of a table")
        if version < _BY_PLACE or pages <= _PAGES:
            return [""]
        firsts = range(0, pages, _PAGES)
        # The table may grow meanwhile.
        ends = [*(f" AND t.ctid < '({first},0)'" for first in firsts[1:]), ""]
        return [f"t.ctid >= '({first},0)'{end}" for first, end in zip(firsts, ends, strict=True)]

    def select_keys(self, name: str, stage: str, columns: Sequence[tuple[str, pa.DataType]], key: Columns) -> str:
        """Return the query for the rows of some keys (``Dialect``)."""
        return (
            f"SELECT {self._selected(columns)} FROM {stage} AS s JOIN {self.full_name(name)} AS t ON {self._same(key)}"
        )

    def delete_unchanged(self, name: str, stage: str, key: Columns) -> str:
        """Return the statement that deletes rows that nobody has changed (``Dialect``)."""
        same = f'{self._same(key)} AND t.{self.quote(POSITION)} COLLATE "C" IS NOT DISTINCT FROM s.p'
        return f"DELETE FROM {self.full_name(name)} AS t USING {stage} AS s WHERE {same}"

    def _selected(self, columns: Sequence[tuple[str, pa.DataType]]) -> str:
        return ", ".join(selected(f"t.{self.quote(name)}", kind) for name, kind in columns)

    def _same(self, key: Columns) -> str:
        return " AND ".join(f"t.{self.quote(name)} = {_cast(f's.c{number}', kind)}" for number, name, kind in key)

    def delete_others(self, target: str, shadow: str, key: Sequence[str]) -> str:
        """Return the statement that deletes the rows that a shadow hasn't (``Dialect``)."""
        same = " AND ".join(f"s.{one} = t.{one}" for one in map(self.quote, key))
        return f"DELETE FROM {target} AS t WHERE NOT EXISTS (SELECT FROM {shadow} AS s WHERE {same})"

    def take_over(self, target: str, shadow: str, columns: Sequence[str], key: Sequence[str]) -> str:
        """Return the statement that gives a target a shadow's rows (``Dialect``)."""
        names = ", ".join(map(self.quote, columns))
        changed = [self.quote(one) for one in columns if one not in key]
        given = ", ".join(f"{one} = excluded.{one}" for one in changed)
        return (
            f"INSERT INTO {target} ({names}) SELECT {names} FROM {shadow} "
            f"ON CONFLICT ({', '.join(map(self.quote, key))}) DO UPDATE SET {given}"
        )

    def keep_offset(self) -> str:
        """Return the statement that keeps an offset (``Dialect``)."""
        table = self.full_name("floodmark_offsets").replace("%", "%%")
        return (
            f"INSERT INTO {table} (query, batch, marks) VALUES (%s, %s, %s) ON CONFLICT (query) DO UPDATE "
            "SET batch = excluded.batch, marks = excluded.marks, changed = now()"
        )


def _cast(value: str, kind: str) -> str:
    return f"CAST({value} AS {kind})" if kind else value


def _stage_column(number: int) -> str:
    """Return a column of a staging table; below 0 are those that every one has."""
    return f"c{number}" if number >= 0 else {-1: "p", -2: "o"}[number]
