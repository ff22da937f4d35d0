"""The statements of MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from floodmark.errors import TargetUnfitError
from floodmark.sinks.relational.dialect import Session, TargetColumn, TargetTable
from floodmark.sinks.relational.mysql.literals import representable
from floodmark.sinks.relational.mysql.rows import selected
from floodmark.sinks.relational.mysql.session import MysqlSession
from floodmark.sinks.relational.mysql.types import accepts, column_type, compared_as, holds, plain_type
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.sinks.relational.parts import POSITION
from floodmark.sinks.relational.url import Kind

_LONGEST = 64
"""Characters of a name. MySQL's manual: "Identifier Length Limits"."""
_LAST_PLAIN = 0xFFFF
_POSITION_TYPE = "varchar(64) CHARACTER SET ascii COLLATE ascii_bin"
_COLLATIONS = {"MySQL": "utf8mb4_0900_bin", "MariaDB": "utf8mb4_nopad_bin"}
"""Those in which texts are the same only if their bytes are, spaces at the end included."""
_OF_STAGES = {-1: "p", -2: "o"}
Columns = Sequence[tuple[int, str, str]]


class MysqlDialect:
    """What MySQL and MariaDB do and how (``Dialect``).

    Args:
        options: the sink's.
    """

    kind: Kind = "mysql"
    folds_names = True
    # To empty one costs more than to make one.
    keeps_stages = False

    def __init__(self, options: JdbcOptions) -> None:
        self._options = options
        self.title = "MySQL"

    def connect(self) -> MysqlSession:
        """Open a connection (``Dialect``)."""
        session = MysqlSession(self._options)
        self.title = session.title
        return session

    def schema(self) -> str:
        """Return the database of the targets."""
        return self._options.connection_url.database

    def identity(self, session: Session) -> tuple[str, ...]:
        """Return what tells the server's process from others."""
        statement = "SELECT @@hostname, @@port, @@datadir, @@server_id"
        (found,) = session.query(statement, doing="reading the server's identity")
        return tuple(map(str, found))

    def quote(self, name: str) -> str:
        """Return a name as statements have it."""
        return "`" + name.replace("`", "``") + "`"

    def full_name(self, name: str) -> str:
        """Return a table's name with that of its database."""
        return f"{self.quote(self._options.connection_url.database)}.{self.quote(name)}"

    def prove_name(self, name: str, what: str) -> None:
        """Check a name (``Dialect``)."""
        bad = not name or name != name.rstrip(" ") or "\0" in name or any(ord(one) > _LAST_PLAIN for one in name)
        if bad or len(name) > _LONGEST:
            raise TargetUnfitError(
                f"The {what} '{name}' can't be in {self.title}: names have at most {_LONGEST} characters, no space at "
                "the end, and only characters of Unicode's first plane.",
                "Change it with collection.name.format, or leave the column out with column.exclude.list.",
            )

    def column_type(self, kind: pa.DataType, keys: int = 0) -> str:
        """Return the type of a column (``Dialect``)."""
        found = column_type(kind, _COLLATIONS[self.title], keys)
        if found is None:
            raise TargetUnfitError(
                f"{self.title} has no type for values of the type {kind}{' in a key' if keys else ''}.",
                "Leave the column out, or convert it.",
            )
        return found

    def position_type(self) -> str:
        """Return the type of positions."""
        return _POSITION_TYPE

    def position_order(self) -> str:
        """Return what follows a position in a comparison."""
        return ""

    def text_types(self) -> tuple[str, str, str]:
        """Return the types of Floodmark's own tables (``Dialect``)."""
        texts = f"CHARACTER SET utf8mb4 COLLATE {_COLLATIONS[self.title]}"
        return f"longtext {texts}", f"varchar(190) {texts}", "tinyint(1)"

    def flag(self, value: bool) -> int:
        """Return a value for a flag."""
        return int(value)

    def accepts(self, found: str, kind: pa.DataType) -> bool:
        """Return whether a column takes the values of a type (``Dialect``)."""
        return accepts(found, kind)

    def widens(self, found: str, kind: pa.DataType) -> bool:
        """Return whether the type for values holds what a column has (``Dialect``)."""
        wanted = column_type(kind, "")
        return wanted is not None and holds(wanted, plain_type(found))

    def table(self, session: Session, name: str) -> TargetTable | None:
        """Return what a target is like (``Dialect``)."""
        place = (self._options.connection_url.database, name)
        found = session.query(
            "SELECT column_name, column_type FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            place,
            "reading a table's columns",
        )
        if not found:
            return None
        indexes = session.query(
            "SELECT index_name, column_name FROM information_schema.statistics "
            "WHERE table_schema = %s AND table_name = %s AND non_unique = 0 AND sub_part IS NULL "
            "ORDER BY index_name <> 'PRIMARY', index_name",
            place,
            "reading a table's indexes",
        )
        unique: dict[str, set[str]] = {}
        for index, column in indexes:
            unique.setdefault(index, set()).add(column)
        columns = {one: TargetColumn(one, _text(kind), "") for one, kind in found}
        return TargetTable(columns, [frozenset(names) for names in unique.values()])

    def create(self, name: str, columns: Sequence[tuple[str, str]], key: Sequence[str]) -> str:
        """Return the statement that makes a table (``Dialect``)."""
        parts = [f"{self.quote(one)} {kind}" for one, kind in columns]
        if key:
            parts.append(f"PRIMARY KEY ({', '.join(map(self.quote, key))})")
        return f"CREATE TABLE IF NOT EXISTS {self.full_name(name)} ({', '.join(parts)}) ENGINE = InnoDB"

    def create_shadow(self, session: Session, name: str, target: str, key: Sequence[str]) -> Sequence[str]:
        """Return the statement that makes a table for a target's rows (``Dialect``)."""
        found = session.query(
            "SELECT column_name, column_type, character_set_name, collation_name FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            (self._options.connection_url.database, target),
            "reading a table's columns",
        )
        texts = {one: f" CHARACTER SET {chars} COLLATE {order}" for one, _, chars, order in found if chars}
        folded = {one.casefold() for one in key}
        columns = [
            (one, f"{_text(kind)}{texts.get(one, '')}{'' if one.casefold() in folded else ' NULL'}")
            for one, kind, *_ in found
        ]
        return (self.create(name, columns, key),)

    def add_columns(self, name: str, columns: Sequence[tuple[str, str]]) -> str:
        """Return the statement that adds columns (``Dialect``)."""
        parts = [f"ADD COLUMN {self.quote(one)} {kind}" for one, kind in columns]
        return f"ALTER TABLE {self.full_name(name)} {', '.join(parts)}"

    def change_types(self, name: str, columns: Sequence[tuple[str, str]]) -> str:
        """Return the statement that widens columns (``Dialect``)."""
        parts = [f"MODIFY COLUMN {self.quote(one)} {kind}" for one, kind in columns]
        return f"ALTER TABLE {self.full_name(name)} {', '.join(parts)}"

    def create_stage(self, name: str, columns: pa.Schema, temporary: bool) -> str:
        """Return the statement that makes a staging table (``Dialect``)."""
        parts = [f"{one.name} {_POSITION_TYPE if one.name == 'p' else self.column_type(one.type)}" for one in columns]
        # Servers may demand a primary key of every table (sql_require_primary_key).
        parts.append("n bigint AUTO_INCREMENT PRIMARY KEY")
        kind = "TEMPORARY " if temporary else ""
        return f"CREATE {kind}TABLE {self.full_name(name)} ({', '.join(parts)}) ENGINE = InnoDB"

    def stage_name(self, name: str, temporary: bool) -> str:  # noqa: ARG002
        """Return the name of a staging table."""
        return self.full_name(name)

    def drop_stage(self, name: str, temporary: bool) -> str:
        """Return the statement that drops a staging table."""
        return f"DROP {'TEMPORARY ' if temporary else ''}TABLE IF EXISTS {self.full_name(name)}"

    def drop_own(self, stage: str) -> str:
        """Return the statement that drops a staging table of the session."""
        return f"DROP TEMPORARY TABLE {stage}"

    def stages(self, session: Session, prefix: str) -> list[str]:
        """Return the names of staging tables (``Dialect``)."""
        found = session.query(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND LEFT(table_name, %s) = %s",
            (self._options.connection_url.database, len(prefix), prefix),
            "looking for staging tables",
        )
        return [name for (name,) in found]

    def fill(self, target: str, stage: str, values: Columns, key: Columns) -> str:
        """Return the statement that fills in what the target has (``Dialect``)."""
        given = [f"s.c{number} = IF(s.u{number}, t.{self.quote(name)}, s.c{number})" for number, name, _ in values]
        at = " AND ".join(f"t.{self.quote(name)} = s.h{number}" for number, name, _ in key)
        return f"UPDATE {stage} AS s STRAIGHT_JOIN {target} AS t ON {at} SET {', '.join(given)}"

    def delete(self, target: str, stage: str, key: Columns) -> str:
        """Return the statement that deletes rows (``Dialect``)."""
        older = f"(t.{self.quote(POSITION)} IS NULL OR t.{self.quote(POSITION)} < s.p)"
        return f"DELETE t FROM {stage} AS s STRAIGHT_JOIN {target} AS t ON {self._same(key)} WHERE s.d AND {older}"

    def upsert(self, target: str, stage: str, columns: Columns, key: Sequence[str]) -> str:
        """Return the statement that inserts or updates rows (``Dialect``)."""
        names = ", ".join(self.quote(name) for _, name, _ in columns)
        values = ", ".join(f"s.c{number}" for number, _, _ in columns)
        position = f"{target}.{self.quote(POSITION)}"
        changed = [self.quote(name) for _, name, _ in columns if name not in key]
        # Assigned from left to right, so the position, which all others ask for, is the last. VALUES has the column's
        # own type, whereas the staged text and a column of the type json have no collation in common.
        given = ", ".join(
            f"{target}.{name} = IF(COALESCE({position} < s.p, TRUE), VALUES({name}), {target}.{name})"
            for name in (*changed, self.quote(POSITION))
        )
        return (
            f"INSERT INTO {target} ({names}, {self.quote(POSITION)}) SELECT {values}, s.p FROM {stage} AS s "
            f"WHERE NOT s.d ON DUPLICATE KEY UPDATE {given}"
        )

    def append(self, target: str, stage: str, columns: Columns) -> str:
        """Return the statement that appends rows (``Dialect``)."""
        names = ", ".join(self.quote(name) for _, name, _ in columns)
        values = ", ".join(f"s.{_OF_STAGES.get(number, f'c{number}')}" for number, _, _ in columns)
        return f"INSERT INTO {target} ({names}) SELECT {values} FROM {stage} AS s ORDER BY s.n"

    def defer(
        self, reads: str, later: str, log: str, columns: Sequence[str], key: Sequence[int], held: Sequence[int]
    ) -> Sequence[str]:
        """Return the statements that move rows to another staging table (``Dialect``)."""
        same = " AND ".join(f"s.h{at} = r.c{number}" for at, number in zip(held, key, strict=True))
        chosen = f"EXISTS (SELECT 1 FROM {log} AS s WHERE {same} AND s.p < r.p)"
        names = ", ".join(columns)
        return (
            f"INSERT INTO {later} ({names}) SELECT {names} FROM {reads} AS r WHERE {chosen}",
            f"DELETE r FROM {reads} AS r WHERE {chosen}",
        )

    def drop_superseded(self, reads: str, log: str, pairs: Sequence[tuple[int, int]]) -> str:
        """Return the statement that deletes rows with later changes (``Dialect``)."""
        same = " AND ".join(f"r.c{one} = s.c{other}" for one, other in pairs)
        return f"DELETE r FROM {reads} AS r JOIN {log} AS s ON {same} WHERE r.p < s.p"

    def compared_as(self, found: str, kind: pa.DataType) -> pa.DataType | None:
        """Return the type as which a column is compared (``Dialect``)."""
        return compared_as(found, kind)

    def representable(self, values: pa.Array) -> pa.Array:
        """Return values as the server holds them (``Dialect``)."""
        return representable(values)

    def select(self, name: str, columns: Sequence[tuple[str, pa.DataType]], condition: str = "") -> str:
        """Return the query for rows of a table (``Dialect``)."""
        where = f" WHERE {condition}" if condition else ""
        return f"SELECT {self._selected(columns)} FROM {self.full_name(name)} AS t{where}"

    def spans(self, session: Session, name: str) -> Sequence[str]:  # noqa: ARG002
        """Return no condition: there are no places by which rows can be read."""
        return [""]

    def select_keys(self, name: str, stage: str, columns: Sequence[tuple[str, pa.DataType]], key: Columns) -> str:
        """Return the query for the rows of some keys (``Dialect``)."""
        joined = f"{stage} AS s STRAIGHT_JOIN {self.full_name(name)} AS t ON {self._same(key)}"
        return f"SELECT {self._selected(columns)} FROM {joined}"

    def delete_unchanged(self, name: str, stage: str, key: Columns) -> str:
        """Return the statement that deletes rows that nobody has changed (``Dialect``)."""
        joined = f"{stage} AS s STRAIGHT_JOIN {self.full_name(name)} AS t ON {self._same(key)}"
        return f"DELETE t FROM {joined} WHERE t.{self.quote(POSITION)} <=> s.p"

    def _selected(self, columns: Sequence[tuple[str, pa.DataType]]) -> str:
        return ", ".join(selected(f"t.{self.quote(name)}", kind) for name, kind in columns)

    def _same(self, key: Columns) -> str:
        return " AND ".join(f"t.{self.quote(name)} = s.c{number}" for number, name, _ in key)

    def delete_others(self, target: str, shadow: str, key: Sequence[str]) -> str:
        """Return the statement that deletes the rows that a shadow hasn't (``Dialect``)."""
        same = " AND ".join(f"s.{one} = t.{one}" for one in map(self.quote, key))
        return f"DELETE t FROM {target} AS t WHERE NOT EXISTS (SELECT 1 FROM {shadow} AS s WHERE {same})"

    def take_over(self, target: str, shadow: str, columns: Sequence[str], key: Sequence[str]) -> str:
        """Return the statement that gives a target a shadow's rows (``Dialect``)."""
        names = ", ".join(map(self.quote, columns))
        changed = [self.quote(one) for one in columns if one not in key]
        given = ", ".join(f"{one} = VALUES({one})" for one in changed)
        return f"INSERT INTO {target} ({names}) SELECT {names} FROM {shadow} ON DUPLICATE KEY UPDATE {given}"

    def keep_offset(self) -> str:
        """Return the statement that keeps an offset (``Dialect``)."""
        table = self.full_name("floodmark_offsets").replace("%", "%%")
        return (
            f"INSERT INTO {table} (query, batch, marks) VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE "
            "batch = VALUES(batch), marks = VALUES(marks), changed = CURRENT_TIMESTAMP"
        )


def _text(kind: str | bytes) -> str:
    """Return a type's name, which some servers give as bytes."""
    return kind.decode() if isinstance(kind, bytes) else kind
