"""Verifies that the publication lets through what the options require, and has always done so.

The server filters each change by the publication as it was when the change was made. So it isn't enough that the
publication is correct now: one that lacked something for a moment has left changes out silently. The catalogs show
whether anything was altered since an earlier check: their rows can't be changed in place, so any alteration, even one
that was undone, leaves rows of later transactions (``xmin``). A check remembers which transactions had ended by then.

Source: PostgreSQL documentation, "System Catalogs" (pg_publication, pg_publication_rel, pg_publication_namespace).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from floodmark.capture.gaps import AcceptedGaps, Gap
from floodmark.connectors.contract.findings import name_list
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.postgres.position import parse_position
from floodmark.connectors.postgres.position import position as position_of
from floodmark.connectors.postgres.server.catalog import Conn, Table, literal, quote, running_transactions
from floodmark.connectors.postgres.server.connection import run, server_version
from floodmark.connectors.postgres.server.publication import PUBLISHED
from floodmark.connectors.postgres.server.slots import TRUSTING, WAYS_OUT, end_of_log
from floodmark.errors import LogGoneError, SourceStateError
from floodmark.json_data import Json, stored_object
from floodmark.logger import get_logger

log = get_logger(__name__)

FILTERS_VERSION = 15
CHECK_SHARE = 20
"""Checks may use one part in this many of the time, however many tables a publication lists."""
MOST_BETWEEN_CHECKS_S = 5.0
WHOLE_CHECK_S = 10.0
"""How often to check that all captured tables are published, if nothing about the publication was altered."""
XIDS = 1 << 32
LOADING = ("LoadPublications", "get_publication_oid")
"""The server's functions that report, during decoding, that a publication doesn't exist."""

_PUBLICATION = """
    SELECT p.oid::int8, p.xmin::text::int8, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot, puballtables
    FROM pg_publication p WHERE pubname = {name}
"""

# The publication's tables, each with its entries: for the table, for one that it is a partition of, or for a schema.
# A table of a publication for all tables has no entry. pg_get_publication_tables() returns the same, but waits for
# locks on the tables.
_TABLES = """
    SELECT t.oid::int8, m.xid, coalesce(m.rows_filtered, false), m.columns
    FROM pg_class t
    LEFT JOIN LATERAL (
        SELECT entry.xid, entry.rows_filtered, entry.columns
        FROM (SELECT relid FROM pg_partition_ancestors(t.oid) UNION SELECT t.oid) a
        JOIN pg_class c ON c.oid = a.relid
        JOIN LATERAL ({entries}) entry ON true
    ) m ON true
    WHERE t.relkind IN ('r', 'p') AND t.relpersistence = 'p' AND t.oid >= {first_own}
      AND ({all_tables} OR m.xid IS NOT NULL)
"""
FIRST_OWN_OID = 16384
"""The server's own objects have lower OIDs (FirstNormalObjectId)."""
_LISTED = """
    SELECT r.xmin::text::int8 AS xid, {filtered} FROM pg_publication_rel r
    WHERE r.prpubid = {oid} AND r.prrelid = c.oid
"""
_SCHEMAS = """
    UNION ALL SELECT n.xmin::text::int8, false, NULL FROM pg_publication_namespace n
    WHERE n.pnpubid = {oid} AND n.pnnspid = c.relnamespace
"""

_COLUMNS = """
    SELECT attrelid::int8, array_agg(attnum::int4 ORDER BY attnum), array_agg(attname::text ORDER BY attnum)
    FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attgenerated = ''
      AND attrelid = ANY(ARRAY[{oids}]::oid[]) GROUP BY 1
"""

_UNLOGGED = """
    SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relpersistence = 'u'
"""

# The rows of a table's system columns are never updated, so they name the transaction that created it.
_CREATED = """
    SELECT attrelid::int8, xmin::text::int8 FROM pg_attribute
    WHERE attname = 'ctid' AND attnum < 0 AND attrelid = ANY(ARRAY[{oids}]::oid[])
"""

_THERE = "SELECT oid::int8 FROM pg_class WHERE oid = ANY(ARRAY[{oids}]::oid[])"

_TRACE = """
    SELECT p.oid::text || ':' || p.xmin::text || ' ' || coalesce((
               SELECT md5(string_agg(r.oid::text || ':' || r.xmin::text, ' ' ORDER BY r.oid))
               FROM pg_publication_rel r WHERE r.prpubid = p.oid), '') {schemas}
    FROM pg_publication p WHERE p.pubname = {name}
"""
_TRACED_SCHEMAS = """ || ' ' || coalesce((
               SELECT md5(string_agg(n.oid::text || ':' || n.xmin::text, ' ' ORDER BY n.oid))
               FROM pg_publication_namespace n WHERE n.pnpubid = p.oid), '')
"""


@dataclass(frozen=True)
class Seen:
    """The transactions that had ended when the catalogs were checked.

    Attributes:
        oldest: all transactions below it had ended; 64 bits.
        later: transactions not below it that had ended too, of those that made the publication's entries; 32 bits.
        created: transactions not below it that had ended and had created a table of a ``filtered`` publication; None if
            these were not checked.
    """

    oldest: int
    later: tuple[int, ...] = ()
    created: tuple[int, ...] | None = None

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON data."""
        created = {} if self.created is None else {"created": list(self.created)}
        return {"oldest": self.oldest, "later": list(self.later), **created}

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return what ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        seen = stored_object(data, "What was known of the publication")
        created = None if seen.value("created") is None else seen.integers("created")
        return cls(seen.integer("oldest"), seen.integers("later"), created)

    def made_since(self, xids: Iterable[int], following: int) -> list[int]:
        """Return those transactions that had not ended.

        Args:
            xids: transactions of catalog rows, 32 bits.
            following: the next transaction's number, 64 bits. After more than four billion transactions, 32-bit numbers
                are ambiguous, and all of them count as made since.
        """
        return [xid for xid in xids if (xid - self.oldest) % XIDS < following - self.oldest and xid not in self.later]


@dataclass(frozen=True)
class _Member:
    """A table of the publication.

    Attributes:
        entries: the transactions that made its entries; none if the publication is for all tables.
        rows_filtered: whether the publication leaves out rows of it.
        columns: its lists of published columns, as numbers; none if all columns are published.
    """

    entries: tuple[int, ...]
    rows_filtered: bool
    columns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _Publication:
    xid: int
    operations: frozenset[str]
    via_root: bool
    members: Mapping[int, _Member]


class PublicationProof:
    """Verifies that the log holds what the options require.

    Args:
        options: the source's options.
        gaps: collects the changes that are left out with the user's consent.
    """

    def __init__(self, options: PostgresOptions, gaps: AcceptedGaps) -> None:
        self._options = options
        self._gaps = gaps
        self._seen: Seen | None = None
        self._known: set[str] = set()
        self._unpublished: set[str] = set()
        self._again: frozenset[str] = frozenset()
        self._trace = ""
        self._after = ""
        self._next = self._next_whole = 0.0

    @property
    def seen(self) -> Seen | None:
        """What the last check remembered, for the checkpoint."""
        return self._seen

    def begin(
        self,
        conn: Conn,
        tables: Sequence[Table],
        after: str | None = None,
        seen: Seen | None = None,
        known: Collection[str] = (),
    ) -> None:
        """Verify it at the start of a query.

        Args:
            conn: an ordinary connection.
            tables: the captured tables.
            after: up to here the log has been delivered; None for a new query.
            seen: what the last check before the checkpoint remembered; None if that isn't known.
            known: the names of the tables that were captured by then.

        Raises:
            SourceStateError: the publication lacks something.
            LogGoneError: it was altered since, so that changes may be missing.
        """
        self._seen, self._known, self._after = seen, set(known), after or ""
        self._check_catalogs(conn, tables, starting=True)

    def follow(self, conn: Conn, tables: Sequence[Table], known: Collection[str] | None = None) -> None:
        """Verify it again, for the tables that are captured now.

        A table that wasn't captured before and isn't published is left out until it is. So is one that was dropped and
        created again, until it isn't known any more: then it is a new table.

        Args:
            conn: an ordinary connection.
            tables: the captured tables.
            known: the names of those that aren't new; None: the same as before.
        """
        if known is not None:
            # A table that is new to the query is read in full, so changes that the log lacks don't matter.
            self._known &= set(known)
        self._check_catalogs(conn, tables, starting=False)

    @property
    def due(self) -> bool:
        """Whether the last check for alterations was long enough ago, for the time that it takes."""
        return time.monotonic() >= self._next

    def outdated(self, conn: Conn, position: str) -> bool:
        """Return whether it must be verified again: the publication was altered, or the last full check is long ago.

        Args:
            conn: an ordinary connection.
            position: up to here the log is delivered; if nothing was altered, a later gap begins here.
        """
        now = time.monotonic()
        trace = self._read_trace(conn)
        self._next = now + min(CHECK_SHARE * (time.monotonic() - now), MOST_BETWEEN_CHECKS_S)
        if trace != self._trace:
            return True
        self._after = position
        return now >= self._next_whole

    def published(self, name: str) -> bool:
        """Return whether a captured table is in the log, by the last check."""
        return name not in self._unpublished

    def _read_trace(self, conn: Conn) -> str:
        schemas = _TRACED_SCHEMAS if server_version(conn) >= FILTERS_VERSION else ""
        statement = _TRACE.format(name=literal(self._options.publication_name), schemas=schemas)
        rows = run(conn, statement, "the publication")
        return str(rows[0][0]) if rows else ""

    def _check_catalogs(self, conn: Conn, tables: Sequence[Table], starting: bool) -> None:
        begun = time.monotonic()
        # The trace and the running transactions are read before the publication, so that the next check finds an
        # alteration that is made in between.
        trace = self._read_trace(conn)
        oldest, following = running_transactions(conn)
        found = self._read(conn)
        wanted = _publishing(tables, self._options.publish_via_partition_root)
        missing = _still_there(conn, [table for table in wanted if table.oid not in found.members])
        given = self._given_since(found, wanted, following)
        again = self._created_again(conn, [*missing, *given], following)
        new = [table for table in missing if table.full_name not in self._known or table.full_name in again]
        if not starting or self._options.publication_autocreate_mode in ("no_tables", "filtered"):
            missing = [table for table in missing if table not in new]
            self._leave_out({table.full_name for table in new} | again)
        self._prove_logged(conn, tables)
        self._check(conn, found, missing, [table for table in wanted if table.oid in found.members])
        if self._seen is not None:
            self._prove_unaltered(conn, found, [table for table in given if table.full_name not in again], following)
        if not again:
            self._seen = self._remember(conn, found, oldest, following)
            self._known |= {table.full_name for table in wanted if table.oid in found.members}
        self._trace = trace
        took = time.monotonic() - begun
        self._next_whole = begun + max(WHOLE_CHECK_S, CHECK_SHARE * took)

    def _prove_logged(self, conn: Conn, tables: Sequence[Table]) -> None:
        """Verify that no captured table was made one whose changes are not logged."""
        gone = self._known - {table.full_name for table in tables}
        if not gone:
            return
        unlogged = [name for (name,) in run(conn, _UNLOGGED, "the unlogged tables") if name in gone]
        if unlogged:
            raise SourceStateError(
                f"The changes of {name_list(unlogged)} are not logged any more: the table was made UNLOGGED.",
                "ALTER TABLE … SET LOGGED, and read it again (execute-snapshot): changes made meanwhile are missing.",
            )

    def _leave_out(self, names: set[str]) -> None:
        added = sorted(names - self._unpublished)
        if added:
            log.warning(
                "tables_are_not_published",
                tables=name_list(added),
                publication=self._options.publication_name,
                next="they are left out until they are",
            )
        self._unpublished = names

    def _given_since(self, found: _Publication, tables: Sequence[Table], following: int) -> list[Table]:
        """Return the known tables that the publication was given since the last check: all their entries are new."""
        seen = self._seen
        if seen is None:
            return []
        return [
            table
            for table in tables
            if table.full_name in self._known
            and (entries := found.members[table.oid].entries if table.oid in found.members else ())
            and len(seen.made_since(entries, following)) == len(entries)
        ]

    def _created_again(self, conn: Conn, tables: Sequence[Table], following: int) -> frozenset[str]:
        """Return the known tables that were dropped and created again since the last check and can be read as new ones.

        What was written to such a table before a ``filtered`` publication held it is not in the log. As long as the
        query knows the table, the result of this check isn't remembered, so that a start from any checkpoint finds the
        table.
        """
        seen = self._seen
        known = [table for table in tables if table.full_name in self._known]
        if seen is None or seen.created is None or not self._reads_new_tables or not known:
            return frozenset()
        created = _created(conn, [table.oid for table in known])
        since = {oid for oid, xid in created.items() if xid not in seen.created and seen.made_since([xid], following)}
        again = frozenset(table.full_name for table in known if table.oid in since)
        if again - self._again:
            log.warning(
                "tables_were_created_again",
                tables=name_list(sorted(again)),
                next="they are read as new tables; rows of the dropped ones stay in the target, since the log "
                "holds no DROP",
            )
        self._again = again
        return again

    @property
    def _reads_new_tables(self) -> bool:
        """Whether the query publishes new tables and reads what they held before."""
        options = self._options
        return options.publication_autocreate_mode == "filtered" and options.snapshot_new_tables != "off"

    def _remember(self, conn: Conn, found: _Publication, oldest: int, following: int) -> Seen:
        """Return what later checks need to know of this one."""
        seen = Seen(oldest)
        entries = {xid for member in found.members.values() for xid in member.entries} | {found.xid}
        created = None
        if self._reads_new_tables:
            # A table is created before it is listed, so only tables with new entries can be new.
            later = [oid for oid, member in found.members.items() if seen.made_since(member.entries, following)]
            created = tuple(sorted(set(seen.made_since(_created(conn, later).values(), following))))
        return Seen(oldest, tuple(sorted(seen.made_since(entries, following))), created)

    def _read(self, conn: Conn) -> _Publication:
        name = self._options.publication_name
        rows = run(conn, _PUBLICATION.format(name=literal(name)), "the publication")
        if not rows:
            raise SourceStateError(
                f"The publication '{name}' does not exist any more.",
                f"Create it again, or set publication.name if it was renamed. Changes that were made meanwhile are "
                f"missing. {WAYS_OUT}",
            )
        oid, xid, *operations, via_root, all_tables = rows[0]
        filters = server_version(conn) >= FILTERS_VERSION
        listed = _LISTED.format(
            oid=oid,
            filtered="r.prqual IS NOT NULL AS rows_filtered, r.prattrs::int2[]::int4[] AS columns"
            if filters
            else "false AS rows_filtered, NULL::int4[] AS columns",
        )
        entries = listed + (_SCHEMAS.format(oid=oid) if filters else "")
        members: dict[int, list[tuple[int | None, bool, list[int] | None]]] = {}
        statement = _TABLES.format(
            entries=entries, first_own=FIRST_OWN_OID, all_tables="true" if all_tables else "false"
        )
        for table, *entry in run(conn, statement, "the publication's tables"):
            members.setdefault(table, []).append((entry[0], entry[1], entry[2]))
        return _Publication(
            xid,
            frozenset(op for op, there in zip("cudt", operations, strict=True) if there),
            via_root,
            {
                table: _Member(
                    tuple(xid for xid, _, _ in entries if xid is not None),
                    any(filtered for _, filtered, _ in entries),
                    tuple(tuple(columns) for _, _, columns in entries if columns is not None),
                )
                for table, entries in members.items()
            },
        )

    def _check(self, conn: Conn, found: _Publication, missing: Sequence[Table], published: Sequence[Table]) -> None:
        """Verify that the publication now has what the options require."""
        options = self._options
        name = options.publication_name
        alter = f"ALTER PUBLICATION {quote(name)}"
        lacking = [word for op, word in PUBLISHED.items() if op not in found.operations and not options.skips(op)]
        if lacking:
            every = ", ".join(w for op, w in PUBLISHED.items() if op in found.operations or not options.skips(op))
            raise SourceStateError(
                f"The publication '{name}' does not publish {name_list(lacking)}: these changes would not arrive.",
                f"As its owner: {alter} SET (publish = '{every}'); or leave them out with skipped.operations.",
            )
        if found.via_root != options.publish_via_partition_root:
            wanted = str(options.publish_via_partition_root).lower()
            raise SourceStateError(
                f"The publication '{name}' has publish_via_partition_root = {str(found.via_root).lower()}, but "
                f"'publish.via.partition.root' is {wanted}: changes of partitions would come under other names.",
                f"Set publish.via.partition.root, or as the publication's owner: {alter} SET "
                f"(publish_via_partition_root = {wanted}).",
            )
        if missing:
            raise SourceStateError(
                f"The publication '{name}' lacks {name_list([table.full_name for table in missing])}: their changes "
                "would not arrive.",
                f"As the owner of publication and tables: {alter} ADD TABLE "
                f"{', '.join(table.quoted for table in missing)}; or narrow table.include.list.",
            )
        filtered = [table for table in published if found.members[table.oid].rows_filtered]
        if filtered:
            raise SourceStateError(
                f"The publication '{name}' leaves out rows of {name_list([table.full_name for table in filtered])} (a "
                "WHERE clause), which no option asks for.",
                f"As its owner: {alter} DROP TABLE …, and ADD TABLE … without WHERE.",
            )
        self._check_columns(conn, found, [table for table in published if found.members[table.oid].columns])

    def _check_columns(self, conn: Conn, found: _Publication, tables: Sequence[Table]) -> None:
        if not tables:
            return
        oids = ",".join(str(table.oid) for table in tables)
        known = {
            oid: dict(zip(numbers, names, strict=True))
            for oid, numbers, names in run(conn, _COLUMNS.format(oids=oids), "the columns of published tables")
        }
        name = self._options.publication_name
        for table in tables:
            # An entry of a partitioned table has that table's column numbers, which may differ in its partitions.
            if table.root != table.oid and not self._options.publish_via_partition_root:
                continue
            published = set.intersection(*(set(columns) for columns in found.members[table.oid].columns))
            lacking = [
                column
                for number, column in known.get(table.oid, {}).items()
                if number not in published and self._options.has_column(f"{table.full_name}.{column}")
            ]
            if lacking:
                raise SourceStateError(
                    f"The publication '{name}' leaves out the columns {name_list(lacking)} of {table.full_name}, which "
                    "the options capture.",
                    "Name them in column.exclude.list, or publish the table without a list of columns.",
                )

    def _prove_unaltered(self, conn: Conn, found: _Publication, given: Sequence[Table], following: int) -> None:
        """Verify that the publication has always let through what it does now, for tables that were captured before.

        Args:
            conn: an ordinary connection.
            found: the publication.
            given: the tables that it was given since the last check.
            following: the next transaction's number.
        """
        assert self._seen is not None
        altered = ""
        if self._seen.made_since([found.xid], following):
            altered = "was altered, or dropped and created again,"
        elif given:
            altered = f"was given {name_list([table.full_name for table in given])} (again)"
        if not altered:
            return
        name = self._options.publication_name
        what = f"The publication '{name}' {altered} since the log at {self._after or 'the start'}"
        if self._options.offset_mismatch_strategy not in TRUSTING:
            raise LogGoneError(
                f"{what}: changes that were made meanwhile may be missing in the log.", WAYS_OUT + ACCEPT
            )
        end = position_of(end_of_log(conn))
        option = f"offset.mismatch.strategy={self._options.offset_mismatch_strategy}"
        log.warning("publication_was_altered", what=what, strategy=self._options.offset_mismatch_strategy)
        self._gaps.add(Gap(self._after or end, end, f"{what}.", option))


ACCEPT = (
    " Where nothing can be missing (its owner was changed, say), offset.mismatch.strategy=trust_slot goes on, and "
    "records the gap."
)


def _created(conn: Conn, oids: Sequence[int]) -> dict[int, int]:
    """Return the transactions that created tables, 32 bits; those that are gone are left out."""
    if not oids:
        return {}
    statement = _CREATED.format(oids=",".join(map(str, oids)))
    return dict(run(conn, statement, "when tables were created"))


def _publishing(tables: Sequence[Table], via_root: bool) -> list[Table]:
    """Return the tables under whose names changes come: partitions, or the tables that they belong to."""
    return [table for table in tables if (table.root == table.oid if via_root else table.kind == "r")]


def _still_there(conn: Conn, tables: Sequence[Table]) -> list[Table]:
    """Return those of the tables that have not been dropped since they were listed."""
    if not tables:
        return []
    oids = ",".join(str(table.oid) for table in tables)
    there = {oid for (oid,) in run(conn, _THERE.format(oids=oids), "the tables that are not published")}
    return [table for table in tables if table.oid in there]


def lacks_publication(fields: Mapping[str, str]) -> bool:
    """Return whether an error or a notice of the stream reports that there was no publication when a change was made.

    Version 18 and later only send a notice, and leave the changes out. The function's name is compared, as it is not
    translated.

    Args:
        fields: the message's fields by their type letter.
    """
    return fields.get("R") in LOADING


def publication_was_missing(options: PostgresOptions, position: str) -> LogGoneError:
    """Return the error for a publication that was missing when changes were made.

    Args:
        options: the source's options.
        position: up to here the log was received.
    """
    lsn, _ = parse_position(position)
    return LogGoneError(
        f"The publication '{options.publication_name}' did not exist when changes were made after "
        f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X} (it was dropped or renamed): they are not in the log.",
        f"Create it again if it doesn't exist. {WAYS_OUT}",
    )
