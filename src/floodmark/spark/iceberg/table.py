"""An Iceberg table as Spark writes it.

A micro-batch is written to a branch of the table first. Then one commit makes the branch what readers see and names the
micro-batch in the table's properties, so that a repeated one is recognized whatever becomes of its snapshot.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from floodmark.errors import ConfigError, TargetError
from floodmark.sinks.delta.format.data_files import with_position
from floodmark.sinks.iceberg.changes import FILES, Changes
from floodmark.sinks.iceberg.columns import as_staged, prove_names, renamed_columns
from floodmark.sinks.iceberg.data_files import IcebergFiles
from floodmark.sinks.iceberg.layout import Layout, stored
from floodmark.sinks.iceberg.protocols import Form, Gone
from floodmark.sinks.iceberg.state import Done, Snapshot, TableState, done_property
from floodmark.spark.iceberg.failures import SPARK_ERRORS, is_conflict, java_names, target_error
from floodmark.spark.iceberg.row_delta import RowDelta
from floodmark.spark.targets.merged import MergedTable
from floodmark.spark.targets.names import catalog_name, literal, quoted, spark_folder
from floodmark.spark.targets.sessions import Sessions
from floodmark.spark.versions import arrow_schema, minor_version, spark_schema

_MAIN = "main"
_BRANCHES = "floodmark_"
"""The beginning of the names of branches that micro-batches are written to."""
_BRANCH_MS = 7 * 24 * 3600 * 1000
"""After so long without a change, the branch of a query that has ended goes with the snapshots that expire."""
_TARGET_SIZE, _TARGET_BYTES = "write.target-file-size-bytes", 1 << 29
"""The property with the size of files that are written, and what it is by default."""
_ENCRYPTED = "encryption.key-id"
"""The property of tables whose files are encrypted."""
_MISSING = "org.apache.iceberg.exceptions.NoSuchTableException"


class IcebergTable(MergedTable):
    """A target table.

    Args:
        sessions: sessions of Spark.
        location: the mirror's path, where changes are staged.
        table: the source's name of the table, ``schema.table``.
        schema: the catalogue and its schema, such as ``lake.shop``.
        soft: whether deleted rows are only marked.
    """

    failures = SPARK_ERRORS

    def __init__(self, sessions: Sessions, location: str, table: str, schema: str, soft: bool = False) -> None:
        self._sessions = sessions
        self._session: SparkSession | None = None
        self._table = table
        self._full = catalog_name(schema, table)
        self._catalog, self._within = schema.split(".", maxsplit=1)
        self._branch = ""
        super().__init__(spark_folder(location, table), self._full)
        self._renamed = renamed_columns(soft)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let this thread use the table, with a session of its own (``CatalogTable``)."""
        with self._sessions.one() as session:
            self._session = session
            try:
                yield
            finally:
                self._session = None

    @property
    def session(self) -> SparkSession:
        """The session with which the table is opened."""
        assert self._session is not None
        return self._session

    def is_conflict(self, error: Exception) -> bool:
        """Return whether the table may be another one now (``CatalogTable``)."""
        return is_conflict(error)

    def failure(self, error: Exception) -> TargetError:
        """Return the error that a user gets for one of Spark's."""
        return target_error(self._table, error)

    @property
    def renamed(self) -> Mapping[str, str]:
        """Columns of the mirror's own that the table has under other names."""
        return self._renamed

    @property
    def name(self) -> str:
        """Its quoted name in the catalogue."""
        return self._full

    def state(self, since: str) -> TableState | None:
        """Return the newest state; None: there is no table (``CatalogTable``)."""
        table = self._loaded()
        if table is None:
            return None
        properties = {str(name): str(value) for name, value in dict(table.properties()).items()}
        java = self._jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(table.schema())
        columns = as_staged(arrow_schema(StructType.fromJson(json.loads(java.json()))), self._renamed)
        newest = table.currentSnapshot()
        if newest is None:
            return TableState(properties, columns, None, False)
        head = _snapshot(newest)
        found = TableState(properties, columns, head, _has_rows(newest))
        done = found.done(since)
        if done is None or done.snapshot == head.number:
            return found

        def known(number: int) -> Snapshot | None:
            one = table.snapshot(number)
            return None if one is None else _snapshot(one)

        return found.since(done, known)

    def create(self, rows: pa.Schema, properties: Mapping[str, str], replace: bool) -> None:
        """Make the table, without rows (``CatalogTable``)."""
        prove_names(rows, self._table, self._renamed)
        columns = self._declared(with_position(rows))
        listed = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
        verb = "REPLACE" if replace else "CREATE"
        self.session.sql(f"{verb} TABLE {self._full} ({columns}) USING iceberg TBLPROPERTIES ({listed})")

    def begin(self) -> None:
        """Give the table a first snapshot, without rows, since a branch begins with one."""
        self._known().newFastAppend().commit()

    def set(self, properties: Mapping[str, str]) -> None:
        """Give the table properties."""
        update = self._known().updateProperties()
        for name, value in properties.items():
            update.set(name, value)
        update.commit()

    def add_columns(self, columns: pa.Schema) -> None:
        """Add columns, in which all rows have null."""
        prove_names(columns, self._table, self._renamed)
        self.session.sql(f"ALTER TABLE {self._full} ADD COLUMNS ({self._declared(columns)})")

    def widen(self, wider: Mapping[str, pa.DataType]) -> None:
        """Give columns types that hold more (``CatalogTable``)."""
        for name, kind in wider.items():
            self.session.sql(
                f"ALTER TABLE {self._full} ALTER COLUMN {quoted(name)} TYPE {declared(pa.field(name, kind))}"
            )

    def open_branch(self, base: Snapshot) -> None:
        """See to it that what is written next goes to a branch that begins with a snapshot.

        Args:
            base: the snapshot; what readers see.
        """
        table = self._known()
        refs = dict(table.refs())
        own = refs.get(self._branch)
        if own is None or own.snapshotId() != base.number:
            # Each has a name of its own: a commit whose outcome isn't known may still come to the one before.
            self._branch = f"{_BRANCHES}{uuid4().hex[:12]}"
            change = table.manageSnapshots().createBranch(self._branch, base.number)
            change.setMaxRefAgeMs(self._branch, _BRANCH_MS)
            for name, ref in refs.items():
                if str(name).startswith(_BRANCHES) and ref.isBranch():
                    change.removeBranch(name)
            change.commit()
        self._name = f"{self._full}.{quoted('branch_' + self._branch)}"

    def publish(self, base: Snapshot, application: str, batch: int, mark: int) -> bool:
        """Let readers see the branch, and say in the same commit which micro-batch that is.

        Args:
            base: the snapshot that the branch began with.
            application: the query.
            batch: the number of the micro-batch.
            mark: tells it from others with that number.

        Returns:
            Whether it was done; if not, somebody else has changed the table.
        """
        self._name = self._full
        transaction = self._known().newTransaction()
        seen = transaction.table()
        refs = dict(seen.refs())
        main, branch = refs.get(_MAIN), refs.get(self._branch)
        if main is None or branch is None or main.snapshotId() != base.number:
            return False
        end = _snapshot(seen.snapshot(branch.snapshotId()))
        if end.number != base.number:
            if end.parent != base.number:
                return False
            change = transaction.manageSnapshots()
            change.fastForwardBranch(_MAIN, self._branch)
            change.commit()
        _commit_done(transaction, application, Done(batch, mark, end.number, end.sequence))
        return True

    def form(self) -> Form:
        """Return how the table's files are made (``CatalogTable``)."""
        table, parser = self._known(), self._jvm.org.apache.iceberg.SchemaParser
        schema = table.schema()
        layout = Layout.from_json(str(parser.toJson(schema)), f"{table.uuid()}/{schema.schemaId()}")
        version = int(table.operations().current().formatVersion())
        special = "" if table.spec().isUnpartitioned() else "partitions"
        return Form(layout, version, "encrypted files" if _ENCRYPTED in table.properties() else special)

    def files(self, snapshot: Snapshot) -> list[Mapping[str, Any]]:
        """Return the files of a snapshot (``CatalogTable``)."""
        chosen = ", ".join(FILES)
        query = f"SELECT {chosen} FROM {self._full}.files VERSION AS OF {snapshot.number}"
        found: list[Mapping[str, Any]] = self.session.sql(query).toArrow().to_pylist()
        return found

    def commit(
        self,
        base: Snapshot,
        changes: Changes,
        files: IcebergFiles,
        application: str,
        batch: int,
        mark: int,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Change the table's files, and say in the same commit which micro-batch that is (``CatalogTable``)."""
        table = self._known()
        transaction = table.newTransaction()
        main = dict(transaction.table().refs()).get(_MAIN)
        if main is None or main.snapshotId() != base.number:
            return None
        end = base
        if not changes.is_empty:
            # Other than a snapshot of the main branch, one of a branch of its own isn't tried again on what others
            # have committed meanwhile: the commit fails then.
            branch = f"{_BRANCHES}{uuid4().hex[:12]}"
            begin = transaction.manageSnapshots()
            begin.createBranch(branch, base.number)
            begin.commit()
            RowDelta(self._jvm, table, files).commit(transaction, changes, branch, base.number)
            seen = transaction.table()
            end = _snapshot(seen.snapshot(dict(seen.refs())[branch].snapshotId()))
            finish = transaction.manageSnapshots()
            finish.fastForwardBranch(_MAIN, branch)
            finish.removeBranch(branch)
            finish.commit()
        _commit_done(transaction, application, Done(batch, mark, end.number, end.sequence), properties)
        return end

    def compact(self, least_files: int, below_bytes: int | None) -> None:
        """Write small files again as larger ones, and apply what is deleted in them (``CatalogTable``)."""
        actions, table = self._actions(), self._known()
        rewrite = actions.rewriteDataFiles(table).option("min-input-files", str(least_files))
        if below_bytes is not None and below_bytes < int(table.properties().get(_TARGET_SIZE) or _TARGET_BYTES):
            rewrite = rewrite.option("min-file-size-bytes", str(below_bytes))
        rewrite.execute()
        if table.properties().get("format-version") != "3":
            actions.rewritePositionDeletes(self._known()).execute()

    def expire(self, hours: int) -> None:
        """Remove snapshots of an age, and the files that only they need (``CatalogTable``)."""
        before = int(time.time() * 1000) - hours * 3600 * 1000
        expire = self._actions().expireSnapshots(self._known())
        expire.expireOlderThan(before).retainLast(1).execute()

    def exists(self) -> bool:
        """Return whether the catalogue has a table of its name."""
        return self._loaded() is not None

    def _whole(self, session: SparkSession, rows: DataFrame) -> DataFrame:
        if minor_version(session.version) > (4, 0):
            return rows
        # Spark 4.0 wants all columns that the table has.
        given = {name.casefold() for name in rows.columns}
        others = [one for one in session.table(self._name).schema if one.name.casefold() not in given]
        return rows.withColumns({one.name: F.lit(None).cast(one.dataType) for one in others})

    def _declared(self, columns: pa.Schema) -> str:
        """Return columns as SQL declares them."""
        return ", ".join(f"{quoted(self._renamed.get(one.name, one.name))} {declared(one)}" for one in columns)

    def _known(self) -> Any:
        """Return the table as Iceberg has it, which must be there."""
        table = self._loaded()
        if table is None:
            raise Gone
        return table

    def _loaded(self) -> Any | None:
        jvm = self._jvm
        catalog = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(self.session._jsparkSession, self._catalog)
        own = self._full.rsplit(".", maxsplit=1)[-1].strip("`")
        identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"{self._within}.{own}")
        # The catalogue keeps tables, and this one may have been changed elsewhere.
        catalog.invalidateTable(identifier)
        try:
            return catalog.loadTable(identifier)
        except SPARK_ERRORS as error:
            if _MISSING in java_names(error):
                return None
            raise

    def _actions(self) -> Any:
        return self._jvm.org.apache.iceberg.spark.actions.SparkActions.get(self.session._jsparkSession)

    @property
    def _jvm(self) -> Any:
        jvm = self.session.sparkContext._jvm
        if jvm is None:
            raise ConfigError("Spark has been stopped.")
        return jvm


def declared(field: pa.Field) -> str:
    """Return the type of a column in Spark's SQL."""
    (found,) = spark_schema(pa.schema([field.with_type(stored(field.type))]))
    return str(found.dataType.simpleString())


def _commit_done(transaction: Any, application: str, done: Done, properties: Mapping[str, str] | None = None) -> None:
    """Commit a transaction, with the property that says what a query has written last, and further ones."""
    update = transaction.updateProperties()
    for name, value in (done_property(application, done), *(properties or {}).items()):
        update.set(name, value)
    update.commit()
    transaction.commitTransaction()


def _snapshot(java: Any) -> Snapshot:
    parent = java.parentId()
    return Snapshot(int(java.snapshotId()), None if parent is None else int(parent), int(java.sequenceNumber()))


def _has_rows(java: Any) -> bool:
    """Return whether a snapshot may have rows: other writers needn't say how many files it has."""
    return bool(java.summary().get("total-data-files") != "0")
